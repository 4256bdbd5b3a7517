//! Threads that run timers while they wait for a child: event loops such as Node's, and calls with a timeout that are repeated. What such a
//! thread waited for is the child, and its timers would have found it sooner without the launch. So the waits that timed out while the child
//! ran are rewritten as waits for the child. Otherwise, critical paths stay in the thread, and in a replay its timers keep their time although
//! the child is gone.

use crate::child_waits::{Reap, Reaps, creator_of, is_created};
use crate::polling::is_repeatable;
use crate::timeline::{ThreadIndex, Timelines};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{SliceRow, WakerRow};

/// Rewrites the waits. Returns how uncertain it is how long they would take together after a change, since the timers may have had a purpose
/// of their own.
pub(super) fn mark(timelines: &mut Timelines, reaps: &Reaps) -> Nanos {
    let launches = timelines.first_threads();
    let found: Vec<(ThreadIndex, usize, SliceRow)> = launches
        .flat_map(|launch| {
            let all = reaps.of_launch(launch);
            let alone = (0..all.len()).filter(|place| is_alone(timelines, all, *place));
            let timelines = &*timelines;
            alone.flat_map(move |place| timers_beside(timelines, launch, all[place]))
        })
        .collect();
    let mut uncertain = 0.0;
    for (thread, index, slice) in found {
        uncertain += (slice.wake_span.unwrap_or_default().0 as f64).powi(2);
        timelines.replace(thread, index, slice);
    }
    Nanos(uncertain.sqrt() as u64)
}

/// Whether no other child of the same parent ran at the same time, as far as the parent reaped them.
fn is_alone(timelines: &Timelines, reaps: &[Reap], place: usize) -> bool {
    let created = |reap: &Reap| timelines.threads[reap.child as usize].created.get();
    let Some(begins) = created(&reaps[place]) else {
        return false;
    };
    let before = place.checked_sub(1).map(|before| &reaps[before]);
    let after = reaps.get(place + 1).and_then(created);
    before.is_none_or(|before| before.zombie <= begins) && after.is_none_or(|after| after >= reaps[place].zombie)
}

/// Returns the waits of the thread that created a child that timed out while the child ran, rewritten, if the thread slept longer than it
/// worked.
fn timers_beside(timelines: &Timelines, parent: u32, reap: Reap) -> Vec<(ThreadIndex, usize, SliceRow)> {
    let thread = creator_of(timelines, reap.child, parent);
    let begins = timelines.threads[reap.child as usize].created.get();
    let task = timelines.slices(reap.child).last().map(|slice| slice.task);
    let (Some(begins), Some(task)) = (begins, task.filter(|_| is_created(timelines, reap.child))) else {
        return Vec::new();
    };
    let slices = timelines.slices(thread);
    let within =
        slices.partition_point(|slice| slice.off < begins)..slices.partition_point(|slice| slice.off < reap.zombie);
    let (mut worked, mut slept, mut timers) = (0, 0, Vec::new());
    for (index, slice) in within.filter_map(|index| Some((index, slices.get(index)?))) {
        worked += slice.on_span.unwrap_or_default().0;
        let span = slice.wake_span.unwrap_or_default().0;
        if slice.off.0 + span <= reap.zombie.0 && is_repeatable(timelines, thread, &slice) {
            slept += span;
            let waiting = SliceRow {
                waker: Some(WakerRow::Task(task)),
                is_waker_certain: Some(true),
                ..slice
            };
            timers.push((thread, index, waiting));
        }
    }
    if worked < slept { timers } else { Vec::new() }
}
