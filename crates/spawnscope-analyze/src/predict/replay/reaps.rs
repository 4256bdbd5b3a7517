//! Reaps that did not block, because the child had already ended. The parent still depends on the
//! end of the child: in a what-if, it may have to wait for it.

use crate::model::timeline::{ThreadIndex, Timelines, beginning, last_threads};
use crate::model::tree::Forest;
use crate::waits::child_waits::{creator_of, is_created};
use foldhash::HashSet;
use spawnscope_data::event::Nanos;

/// A child that a thread reaped without waiting for it.
pub(super) struct Reap {
    pub(super) parent: ThreadIndex,
    pub(super) child: ThreadIndex,
    /// When the child could be reaped.
    pub(super) zombie: Nanos,
    /// When the parent's wait returned.
    pub(super) reaped: Nanos,
}

/// Returns the reaps in the window that did not end a recorded wait.
pub(super) fn without_wait<'f>(
    forest: &'f Forest<'_>,
    timelines: &'f Timelines,
    (start, end): (Nanos, Nanos),
) -> impl Iterator<Item = Reap> + 'f {
    // Only a launch with several threads can end with another thread than its first.
    let multithreaded: HashSet<u32> =
        timelines.threads[forest.launches.len()..].iter().map(|thread| thread.launch).collect();
    let last = last_threads(timelines, |launch| multithreaded.contains(&launch));
    let reaps = (0..).zip(&forest.launches).filter_map(move |(index, launch)| {
        let at = &launch.instants;
        let (zombie, reaped) = (at.zombie.get()?, at.reaped.get()?);
        let parent = creator_of(timelines, index, forest.parent(index as usize)? as u32);
        let child = last.get(&index).copied().unwrap_or(index);
        let is_inside = start < zombie && zombie < reaped && reaped <= end && is_created(timelines, child);
        let did_not_wait = is_inside && is_on_cpu_without_wait_for(timelines, parent, reaped, index);
        did_not_wait.then_some(Reap { parent, child, zombie, reaped })
    });
    let supposed = timelines.unknown.as_ref().map_or(&[][..], |unknown| &unknown.reaps).iter();
    let supposed = supposed.filter(move |reap| start < reap.ended && reap.wait_end <= end);
    let supposed =
        supposed.map(|reap| Reap { parent: reap.thread, child: reap.child, zombie: reap.ended, reaped: reap.wait_end });
    reaps.chain(supposed)
}

/// Whether a thread was on a CPU at an instant, and its wait before that was not for the launch.
fn is_on_cpu_without_wait_for(timelines: &Timelines, thread: ThreadIndex, at: Nanos, launch: u32) -> bool {
    let slices = timelines.slices(thread);
    let begun = slices.partition_point(|slice| beginning(slice) < at);
    let current = begun.checked_sub(1).and_then(|index| slices.get(index));
    let before = begun.checked_sub(2).and_then(|index| slices.get(index));
    let cause = before.and_then(|slice| timelines.cause(thread, &slice));
    let has_waited = cause.is_some_and(|cause| timelines.threads[cause as usize].launch == launch);
    current.is_some_and(|slice| at <= slice.off) && !has_waited
}
