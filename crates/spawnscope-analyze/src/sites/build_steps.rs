//! Finds the launches that belong to the steps of a build tool's log. Such a log has no processes,
//! and its times count from an unknown instant. A step contains the launch that it is for, and
//! nearly nothing else, so the tool is the process whose children fit best.

use std::collections::BTreeMap;

use crate::model::tree::Forest;
use spawnscope_data::event::{LaunchId, Nanos};
use spawnscope_data::rows::{BuildStep, EdgeRow, Recording};

/// A launch may begin before its step, or end after it, by this time. Some logs round to 10 ms.
const TOLERANCE_NS: i64 = 15_000_000;
/// This many processes are tried as the tool: those with the most children.
const MAX_TOOLS: usize = 16;
/// This many builds of a log are tried: the last ones.
const MAX_BUILDS: usize = 16;
/// Each of this many first launches is paired with each of as many first steps, to guess the
/// instant from which the log counts.
const FIRST: usize = 12;
/// A guess is rated by this many of the first launches.
const COMPARED: usize = 200;
/// Number of steps before a launch that may contain it.
const MAX_CONCURRENT: usize = 512;

/// A launch: its id, its start and its end in nanoseconds.
type Child = (LaunchId, i64, i64);

/// Names launches by the steps of builds: adds their names as outputs of edges. Returns how many
/// launches have a step.
pub fn name_by_steps(recording: &mut Recording, builds: &[Vec<BuildStep>]) -> usize {
    let tools = tools(&Forest::build(recording));
    let mut found: BTreeMap<LaunchId, &[u8]> = BTreeMap::new();
    for steps in builds.iter().rev().take(MAX_BUILDS) {
        let mut steps: Vec<&BuildStep> = steps.iter().collect();
        steps.sort_by_key(|step| (step.from, step.to));
        let best =
            tools.iter().filter_map(|children| fit(children, &steps)).max_by_key(|fit| (fit.pairs.len(), -fit.gap));
        for (launch, step) in best.into_iter().flat_map(|fit| fit.pairs) {
            found.entry(launch).or_insert(&steps[step].name);
        }
    }
    for edge in &recording.edges {
        found.remove(&edge.launch);
    }
    let count = found.len();
    for (launch, name) in found {
        let output = recording.texts.push(name);
        recording.edges.push(EdgeRow { launch, output });
    }
    count
}

/// Returns the children of the processes that may be the tool.
fn tools(forest: &Forest<'_>) -> Vec<Vec<Child>> {
    let mut by_parent: BTreeMap<usize, Vec<Child>> = BTreeMap::new();
    for (index, launch) in forest.launches.iter().enumerate().filter(|(_, launch)| launch.is_launch()) {
        let times = launch.start().zip(launch.end()).map(|(start, end)| (start.0.cast_signed(), end.0.cast_signed()));
        if let (Some(parent), Some((start, end))) = (forest.parent(index), times) {
            by_parent.entry(parent).or_default().push((launch.id, start, end));
        }
    }
    let mut tools: Vec<Vec<Child>> = by_parent.into_values().collect();
    tools.sort_by_key(|children| std::cmp::Reverse(children.len()));
    tools.truncate(MAX_TOOLS);
    tools.iter_mut().for_each(|children| children.sort_by_key(|(_, start, _)| *start));
    tools
}

/// Which launch belongs to which step.
struct Fit {
    pairs: Vec<(LaunchId, usize)>,
    /// How much the steps begin earlier or end later than their launches, in all.
    gap: i64,
}

/// Matches launches with steps. `None` if most of them do not fit.
fn fit(children: &[Child], steps: &[&BuildStep]) -> Option<Fit> {
    let middle = |step: &BuildStep| i64::midpoint(step.from.0.cast_signed(), step.to.0.cast_signed());
    let instants = children.iter().take(FIRST).flat_map(|(_, start, end)| {
        steps.iter().take(FIRST).map(move |step| i64::midpoint(*start, *end) - middle(step))
    });
    let first = &children[..children.len().min(COMPARED)];
    let best = instants.max_by_key(|instant| {
        let fit = matched(first, steps, *instant);
        (fit.pairs.len(), -fit.gap)
    })?;
    let fit = matched(children, steps, best);
    (2 * fit.pairs.len() > children.len().min(steps.len())).then_some(fit)
}

/// Gives each launch the step that contains it most closely. `instant` is what the times of steps
/// count from.
fn matched(children: &[Child], steps: &[&BuildStep], instant: i64) -> Fit {
    let mut fit = Fit { pairs: Vec::new(), gap: 0 };
    let mut is_taken = vec![false; steps.len()];
    for (launch, start, end) in children {
        let before = steps.partition_point(|step| step.from.0.cast_signed() + instant <= start + TOLERANCE_NS);
        let near = before.saturating_sub(MAX_CONCURRENT)..before;
        let gap = |step: &usize| {
            let [from, to] = [steps[*step].from, steps[*step].to].map(|Nanos(at)| at.cast_signed() + instant);
            (start - from).abs().max((to - end).abs())
        };
        let contains = |step: &usize| steps[*step].to.0.cast_signed() + instant + TOLERANCE_NS >= *end;
        let best = near.filter(|step| !is_taken[*step] && contains(step)).min_by_key(gap);
        if let Some(step) = best {
            is_taken[step] = true;
            fit.gap += gap(&step);
            fit.pairs.push((*launch, step));
        }
    }
    fit
}
