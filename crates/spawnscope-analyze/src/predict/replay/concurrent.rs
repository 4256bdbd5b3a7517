//! The work of a thread for children that run at the same time, as those of an event loop or of a
//! pool. After the last creation before it waits, and between a wait that a child ended and the
//! reaping of that child, the thread works for the child, unless it prepares another one. What it
//! does after the reaping may be work with the result.

use super::activity::{Activity, Interval, Stage, is_alone, reaped};
use crate::model::timeline::{ThreadIndex, Timelines, beginning};
use crate::model::tree::Forest;
use spawnscope_data::event::{LeftCpu, Nanos};

/// Returns the intervals in which a thread works for one of several of its children, which are in
/// order of creation. Without recorded causes, nothing tells for which.
pub(super) fn work(
    forest: &Forest<'_>,
    timelines: &Timelines,
    thread: ThreadIndex,
    children: &[usize],
) -> Vec<Interval> {
    let instants = |child: usize| &forest.launches[child].instants;
    let created = |child: usize| instants(child).created.get().unwrap_or_default();
    let reaped = |child: usize| reaped(forest, timelines, child);
    let is_concurrent =
        |position: &usize| !timelines.is_reconstructed() && !is_alone(forest, children, *position, reaped);
    let concurrent: Vec<usize> = (0..children.len()).filter(is_concurrent).map(|position| children[position]).collect();
    // What follows a creation is for that child only if no other creation follows.
    let (mut work, mut pending) = (Vec::new(), Vec::new());
    let (mut awaited, mut newest) = (None, None);
    for slice in timelines.slices(thread).iter().take_while(|_| !concurrent.is_empty()) {
        let interval = |child: usize, from: Nanos| {
            let next = children.get(children.partition_point(|other| created(*other) <= from));
            let next = next.and_then(|next| instants(*next).prepare.get().or(instants(*next).create.get()));
            let until = slice.off.min(next.unwrap_or(slice.off)).min(reaped(child).unwrap_or(slice.off));
            (from, until, Activity { launch: child as u32, stage: Stage::SUPERVISION })
        };
        let begun = beginning(&slice);
        work.extend(awaited.map(|child| interval(child, begun)));
        pending.extend(newest.map(|child| interval(child, begun)));
        let last = concurrent[..concurrent.partition_point(|child| created(*child) < slice.off)].last().copied();
        if let Some(child) = last.filter(|child| begun <= created(*child)) {
            (awaited, newest, pending) = (None, Some(child), vec![interval(child, created(child))]);
        }
        // A thread that a vfork suspends, or that is preempted, has not finished.
        if slice.reason == LeftCpu::Interruptible {
            work.append(&mut pending);
            (awaited, newest) = (None, None);
        }
        let cause = timelines.cause(thread, &slice).map(|cause| timelines.launch_of(cause) as usize);
        awaited = cause.filter(|cause| concurrent.binary_search(cause).is_ok()).or(awaited);
    }
    work
}
