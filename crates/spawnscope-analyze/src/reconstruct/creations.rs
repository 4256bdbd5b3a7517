//! Estimates how long the creation of a launch took, if the entry of the parent's call was not
//! recorded.

use spawnscope_data::event::Nanos;

use super::events::ChildEvents;
use crate::tree::Forest;

/// Returns, for each launch, the time of its parent that may have been the creation of the launch.
/// Zero if the creation is known.
pub(super) fn possible_creations(forest: &Forest<'_>, events: &ChildEvents) -> Vec<Nanos> {
    let mut all = vec![Nanos(0); forest.launches.len()];
    for parent in 0..forest.launches.len() {
        let spans = before_creations(forest, events, parent);
        // Creations by one parent take about the same time, and the parent may do other work before some of them.
        let mut sorted: Vec<Nanos> = spans.iter().map(|(_, span)| *span).collect();
        sorted.sort_unstable();
        let Some(median) = sorted.get(sorted.len().saturating_sub(1) / 2) else {
            continue;
        };
        for (child, span) in spans {
            all[child] = span.min(*median);
        }
    }
    all
}

/// Returns the children of a parent whose creation is unknown, each with the time since the last
/// known event of the parent or of its children.
fn before_creations(forest: &Forest<'_>, events: &ChildEvents, parent: usize) -> Vec<(usize, Nanos)> {
    let events_of_children = events.of_launch(parent as u32);
    let launch = &forest.launches[parent];
    let mut before = launch.start();
    let mut spans = Vec::new();
    for &child in forest.children(parent) {
        let at = &forest.launches[child].instants;
        let Some(created) = at.created.get() else { continue };
        let earlier = events_of_children.partition_point(|event| event.at < created);
        let execs = launch.execs_until(created).last().and_then(|exec| exec.returned.get());
        let last = [before, earlier.checked_sub(1).map(|index| events_of_children[index].at), execs];
        let last = last.into_iter().flatten().filter(|at| *at <= created).max();
        if let Some(last) = last.filter(|_| at.create.get().is_none()) {
            spans.push((child, created.since(last)));
        }
        before = Some(created);
    }
    spans
}
