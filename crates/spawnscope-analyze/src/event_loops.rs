//! Processes that only wait for a child, although their threads do not: event loops with timers such as Node's, runtimes with scheduler threads
//! such as Go's, and calls with a timeout that are repeated. Their threads wake each other and themselves meanwhile, but what they wait for is
//! the child. So the waits that they ended themselves while the child ran are rewritten as waits for the child. Otherwise, critical paths stay in
//! the process, and in a replay its timers keep their time although the child is gone.

use crate::child_waits::{Reap, Reaps, is_created};
use crate::polling::is_repeatable;
use crate::timeline::{ThreadIndex, Timelines};
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// Maximum share of a child's time that all threads of its parent together work during the child's life. More is their own work.
const MAX_WORK: f64 = 0.5;

/// How long after a reaping the thread that reaped may wake the one that continues, as the scheduler of Go does.
const HAND_OVER: Nanos = Nanos(1_000_000);

/// Rewrites the waits. Returns how uncertain it is how long they would take together after a change, since timers may have a purpose of their
/// own.
pub(super) fn mark(timelines: &mut Timelines, reaps: &Reaps) -> Nanos {
    let mut uncertain = 0.0;
    let threads_of_parents = timelines.threads_of_launches(|launch| !reaps.of_launch(launch).is_empty());
    for (launch, threads) in threads_of_parents {
        let all = reaps.of_launch(launch);
        let alone = (0..all.len()).filter(|index| is_alone(timelines, all, *index));
        let found: Vec<_> = alone
            .flat_map(|index| waits_beside(timelines, (launch, &threads), all[index]))
            .collect();
        for (thread, index, slice) in found {
            let before = timelines.slices(thread).get(index);
            let timer = before.filter(|before| is_repeatable(timelines, thread, before));
            uncertain += (timer.and_then(|timer| timer.wake_span).unwrap_or_default().0 as f64).powi(2);
            timelines.replace(thread, index, slice);
        }
    }
    Nanos(uncertain.sqrt() as u64)
}

/// Whether no other child of the same parent ran at the same time, as far as the parent reaped them.
fn is_alone(timelines: &Timelines, reaps: &[Reap], index: usize) -> bool {
    let created = |reap: &Reap| timelines.threads[reap.child as usize].created.get();
    let Some(begins) = created(&reaps[index]) else {
        return false;
    };
    let before = index.checked_sub(1).map(|before| &reaps[before]);
    let after = reaps.get(index + 1).and_then(created);
    before.is_none_or(|before| before.zombie <= begins) && after.is_none_or(|after| after >= reaps[index].zombie)
}

/// Returns the waits of a parent that it ended itself while a child ran, rewritten, if it worked little meanwhile.
fn waits_beside(
    timelines: &Timelines,
    parent: (u32, &[ThreadIndex]),
    reap: Reap,
) -> Vec<(ThreadIndex, usize, SliceRow)> {
    let begins = timelines.threads[reap.child as usize].created.get();
    let task = timelines.slices(reap.child).last().map(|slice| slice.task);
    let (Some(begins), Some(task)) = (begins, task.filter(|_| is_created(timelines, reap.child))) else {
        return Vec::new();
    };
    let (mut worked, mut waits) = (0, Vec::new());
    for &thread in parent.1 {
        let slices = timelines.slices(thread);
        let first = slices.partition_point(|slice| slice.off < begins).saturating_sub(1);
        let end = slices.partition_point(|slice| slice.off < reap.zombie);
        for (index, slice) in (first..end).filter_map(|index| Some((index, slices.get(index)?))) {
            worked += slice.on_span.filter(|_| slice.off >= begins).unwrap_or_default().0;
            if let Some(woken) = by_itself(timelines, (parent.0, thread), &slice)
                && begins < woken.at
                && woken.at <= woken.latest(&reap)
            {
                let wake_span = Some(woken.at.min(reap.zombie).since(slice.off));
                waits.push((thread, index, waiting_for(&slice, task, wake_span)));
            }
        }
    }
    let is_idle = worked as f64 <= MAX_WORK * reap.zombie.since(begins).0 as f64;
    if is_idle && !waits.is_empty() && !serves(timelines, reap.child, parent.0) {
        waits
    } else {
        Vec::new()
    }
}

/// The end of a wait that a process ended itself.
struct Woken {
    at: Nanos,
    by_timer: bool,
}

impl Woken {
    /// Returns when a wait for a child ends at the latest. A timer that ends after the child is the delay of its parent.
    fn latest(&self, reap: &Reap) -> Nanos {
        if self.by_timer {
            reap.zombie
        } else {
            Nanos(reap.reaped.0 + HAND_OVER.0)
        }
    }
}

/// Returns the end of a wait that a timer or another thread of the process ended. If its waker is in doubt, it may have waited for something else.
fn by_itself(timelines: &Timelines, (launch, thread): (u32, ThreadIndex), slice: &SliceRow) -> Option<Woken> {
    let at = Nanos(slice.off.0 + slice.wake_span?.0);
    let cause = timelines.cause(thread, slice);
    let is_own = |cause: ThreadIndex| timelines.threads[cause as usize].launch == launch;
    let is_known = slice.is_waker_certain != Some(false);
    let is_its = is_known && cause.map_or_else(|| is_repeatable(timelines, thread, slice), is_own);
    let by_timer = cause.is_none();
    (slice.reason == LeftCpu::Interruptible && is_its).then_some(Woken { at, by_timer })
}

/// Returns the slice as one that waits for the end of a child.
fn waiting_for(slice: &SliceRow, child: TaskId, wake_span: Option<Nanos>) -> SliceRow {
    SliceRow {
        waker: Some(WakerRow::Task(child)),
        is_waker_certain: Some(true),
        wake_span,
        ..*slice
    }
}

/// Whether a child waited for its parent: it does what it is asked for, and its parent does not wait for its end.
fn serves(timelines: &Timelines, child: u32, parent: u32) -> bool {
    let slices = timelines.slices(child);
    let mut causes = slices.iter().filter_map(|slice| timelines.cause(child, &slice));
    causes.any(|cause| timelines.threads[cause as usize].launch == parent)
}
