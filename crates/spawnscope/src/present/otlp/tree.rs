//! Decides which spans a trace has. Viewers cannot show tens of thousands of spans. So if there are
//! too many launches, similar siblings (launches of one program by the same span) become one span.

use std::collections::{BTreeMap, VecDeque};

use crate::analyze::Forest;
use crate::analyze::model::launch::Command;

/// Numbers of similar siblings that may have a span each. They are tried in this order until there
/// are few enough spans.
const SIBLING_LIMITS: [usize; 7] = [usize::MAX, 1024, 256, 64, 16, 4, 1];

/// A span: one launch, or similar siblings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) launches: Vec<usize>,
    pub(super) parent: Option<usize>,
}

/// The spans of a trace, parents first.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    /// Number of launches without a span, because there were too many spans even after aggregation.
    pub(super) dropped: u64,
}

impl Tree {
    /// Arranges the launches for which `has_time` returns true in at most `max_spans` spans.
    pub(super) fn arrange(forest: &Forest<'_>, max_spans: usize, has_time: impl Fn(usize) -> bool) -> Tree {
        let mut tree = Tree::aggregate(forest, SIBLING_LIMITS[0], &has_time);
        for sibling_limit in &SIBLING_LIMITS[1..] {
            if tree.nodes.len() <= max_spans {
                return tree;
            }
            tree = Tree::aggregate(forest, *sibling_limit, &has_time);
        }
        // Nodes are ordered level by level, so the deepest ones are dropped.
        let dropped = tree.nodes.iter().skip(max_spans).map(|node| node.launches.len() as u64).sum();
        tree.nodes.truncate(max_spans);
        Tree { dropped, ..tree }
    }

    /// Arranges the launches. If there are more than `sibling_limit` similar siblings, they become
    /// one span.
    fn aggregate(forest: &Forest<'_>, sibling_limit: usize, has_time: &impl Fn(usize) -> bool) -> Tree {
        let tops = [forest.roots.as_slice(), &forest.orphans].concat();
        let mut nodes: Vec<Node> = Vec::new();
        let mut pending: VecDeque<(Option<usize>, Vec<usize>)> =
            VecDeque::from([(None, visible(forest, tops, has_time))]);
        while let Some((parent, siblings)) = pending.pop_front() {
            let mut alike: BTreeMap<Command<'_>, Vec<usize>> = BTreeMap::new();
            for index in siblings {
                alike.entry(*forest.launches[index].command).or_default().push(index);
            }
            let each = alike.into_values().flat_map(|launches| {
                let size = if launches.len() > sibling_limit { launches.len() } else { 1 };
                launches.chunks(size).map(<[usize]>::to_vec).collect::<Vec<_>>()
            });
            for launches in each {
                let children = launches.iter().flat_map(|index| forest.children(*index).iter().copied());
                let children = visible(forest, children.collect(), has_time);
                if !children.is_empty() {
                    pending.push_back((Some(nodes.len()), children));
                }
                nodes.push(Node { launches, parent });
            }
        }
        Tree { nodes, dropped: 0 }
    }
}

/// Replaces processes that are not launches, or whose time is unknown, with their children.
fn visible(forest: &Forest<'_>, indices: Vec<usize>, has_time: &impl Fn(usize) -> bool) -> Vec<usize> {
    let mut visible = Vec::with_capacity(indices.len());
    let mut pending = indices;
    while let Some(index) = pending.pop() {
        if forest.launches[index].is_launch() && has_time(index) {
            visible.push(index);
        } else {
            pending.extend_from_slice(forest.children(index));
        }
    }
    visible.sort_unstable();
    visible
}
