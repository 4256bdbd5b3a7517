//! Selects which lines of a tree are shown. Options fold similar siblings into one line, show only
//! some launches with their ancestors, or show only the upper levels.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::tree::{Forest, Step};
use foldhash::HashMap;
use spawnscope_data::event::Nanos;

/// At least this many similar siblings are folded: only the first is shown, and the others are
/// counted.
const MIN_FOLDED: usize = 4;

/// Which lines of a tree are shown. The default shows all launches.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeOptions<'o> {
    /// For each launch, whether it is shown. `None` shows all.
    pub shown: Option<&'o [bool]>,
    pub depth: Option<usize>,
    pub fold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    Launch(Step),
    /// Siblings that are similar to the launch in the line above, with their descendants.
    Folded {
        depth: usize,
        /// Whether no further sibling follows.
        is_last: bool,
        count: u64,
        /// Their summed wall time.
        total: Nanos,
    },
    /// The launches below the deepest level that is shown.
    Below {
        depth: usize,
        count: u64,
    },
}

impl Line {
    /// Returns the depth, and whether no further sibling follows.
    pub fn position(&self) -> (usize, bool) {
        match self {
            Line::Launch(step) => (step.depth, step.is_last),
            Line::Folded { depth, is_last, .. } => (*depth, *is_last),
            Line::Below { depth, .. } => (*depth, true),
        }
    }
}

/// Returns for each launch whether it is selected or has a selected descendant.
pub fn with_ancestors(forest: &Forest<'_>, selected: impl IntoIterator<Item = u32>) -> Vec<bool> {
    let mut shown = vec![false; forest.launches.len()];
    for launch in selected {
        let mut at = Some(launch as usize);
        while let Some(index) = at.filter(|index| !shown[*index]) {
            shown[index] = true;
            at = forest.parent(index);
        }
    }
    shown
}

pub struct TreeView<'v, 'a> {
    forest: &'v Forest<'a>,
    options: TreeOptions<'v>,
    /// For each launch, its shape as `shapes` returns it. Empty without folding.
    shapes: Vec<u64>,
}

impl<'v, 'a> TreeView<'v, 'a> {
    pub fn new(forest: &'v Forest<'a>, options: TreeOptions<'v>) -> TreeView<'v, 'a> {
        let shapes = if options.fold { shapes(forest) } else { Vec::new() };
        TreeView { forest, options, shapes }
    }

    pub fn lines<'f>(&'f self, tops: &[usize]) -> impl Iterator<Item = Line> + use<'f, 'v, 'a> {
        let mut pending = Vec::new();
        self.push(&mut pending, tops, 0);
        std::iter::from_fn(move || {
            let line = pending.pop()?;
            if let Line::Launch(step) = line {
                self.push(&mut pending, self.forest.children(step.index), step.depth + 1);
            }
            Some(line)
        })
    }

    /// Pushes the lines of siblings on the stack, the first line on top.
    fn push(&self, pending: &mut Vec<Line>, siblings: &[usize], depth: usize) {
        let siblings: Vec<usize> =
            siblings.iter().copied().filter(|index| self.options.shown.is_none_or(|shown| shown[*index])).collect();
        if siblings.is_empty() {
            return;
        }
        if self.options.depth.is_some_and(|levels| depth >= levels) {
            let count = self.forest.walk(&siblings).count() as u64;
            pending.push(Line::Below { depth, count });
            return;
        }
        let first_line = pending.len();
        for similar in self.by_shape(siblings) {
            let is_folded = similar.len() >= MIN_FOLDED;
            let shown = if is_folded { &similar[..1] } else { &similar[..] };
            pending.extend(shown.iter().map(|index| Line::Launch(Step { index: *index, depth, is_last: false })));
            if is_folded {
                pending.push(self.folded(&similar[1..], depth));
            }
        }
        if let Some(last) = pending.last_mut() {
            match last {
                Line::Launch(step) => step.is_last = true,
                Line::Folded { is_last, .. } => *is_last = true,
                Line::Below { .. } => {}
            }
        }
        pending[first_line..].reverse();
    }

    fn folded(&self, siblings: &[usize], depth: usize) -> Line {
        Line::Folded {
            depth,
            is_last: false,
            count: siblings.len() as u64,
            total: Nanos(
                siblings
                    .iter()
                    .map(|index| self.forest.launches[*index].total(self.forest.end).unwrap_or_default().0)
                    .sum(),
            ),
        }
    }

    /// Groups the siblings that are folded. Each group is at the position of its first member;
    /// every other sibling is a group of its own.
    fn by_shape(&self, siblings: Vec<usize>) -> Vec<Vec<usize>> {
        let mut counts: HashMap<u64, usize> = HashMap::default();
        for shape in siblings.iter().filter_map(|index| self.shapes.get(*index)) {
            *counts.entry(*shape).or_default() += 1;
        }
        let mut positions: HashMap<u64, usize> = HashMap::default();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for index in siblings {
            let shape = self.shapes.get(index).filter(|shape| counts[*shape] >= MIN_FOLDED);
            let position = shape.map_or(groups.len(), |shape| *positions.entry(*shape).or_insert(groups.len()));
            if position == groups.len() {
                groups.push(Vec::new());
            }
            groups[position].push(index);
        }
        groups
    }
}

/// Returns a hash of each launch's subtree: the programs, outcomes and numbers of failed execs, but
/// not arguments and times. Similar subtrees have the same hash.
fn shapes(forest: &Forest<'_>) -> Vec<u64> {
    let mut shapes = vec![0; forest.launches.len()];
    let parents_first: Vec<usize> = forest.walk_all().map(|step| step.index).collect();
    for index in parents_first.into_iter().rev() {
        let launch = &forest.launches[index];
        let mut hasher = DefaultHasher::new();
        (*launch.command).hash(&mut hasher);
        launch.outcome.hash(&mut hasher);
        forest.failed_execs(index).len().hash(&mut hasher);
        let children = forest.children(index).iter();
        children.for_each(|child| shapes[*child].hash(&mut hasher));
        shapes[index] = hasher.finish();
    }
    shapes
}
