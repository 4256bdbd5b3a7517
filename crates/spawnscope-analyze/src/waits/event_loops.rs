//! Recognizes processes that wait for a child although each of their threads waits for something
//! else: event loops with timers such as Node's, runtimes with scheduler threads such as Go's, and
//! repeated calls with a timeout. The threads wake each other, or their timers expire, but the
//! process as a whole waits for the child. So the waits that the process itself ended while the
//! child ran are rewritten as waits for the child. Otherwise critical paths would stay in the
//! process, and in a replay its timers would take their recorded time even without the child.

use crate::model::timeline::{ThreadIndex, Timelines, ended_by, woken_at};
use crate::waits::child_waits::{Reap, Reaps, is_created};
use crate::waits::polling::{has_timed_out, squares_with_effect};
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::SliceRow;

/// A parent waits for its child only if its threads together work for at most this share of the
/// child's lifetime.
const MAX_WORK_SHARE: f64 = 0.5;

/// Maximum time from a reaping until the reaping thread wakes the thread that continues. Go's
/// scheduler hands over work in this way.
const MAX_HAND_OVER: Nanos = Nanos(1_000_000);

/// Rewrites the waits. Returns the uncertainty of their total length in a what-if: some of the
/// rewritten timers may not have waited for the child.
pub(crate) fn rewrite_waits(timelines: &mut Timelines, reaps: &Reaps) -> Nanos {
    let (mut timers, mut rewritten) = (Vec::new(), HashSet::default());
    let repeated = timelines.repeated_waits.values();
    let begun: HashMap<u32, Nanos> = repeated.map(|each| (each.last, each.begun)).collect();
    for launch in 0..timelines.launch_count() {
        let all = reaps.of_launch(launch);
        let threads = if all.is_empty() { continue } else { timelines.threads_of(launch) };
        let alone = (0..all.len()).filter(|index| is_alone(timelines, all, *index));
        let found: Vec<_> =
            alone.flat_map(|index| waits_during_child(timelines, &begun, (launch, &threads), all, index)).collect();
        for (thread, index, slice) in found {
            let before = timelines.slices(thread).get(index);
            let timer = before.filter(|before| has_timed_out(timelines, thread, before));
            timers.extend(timer.map(|timer| (thread, timer)));
            rewritten.extend(timelines.slices(thread).indices().nth(index));
            timelines.replace(thread, index, slice);
        }
    }
    // A rewritten wait ends with the child. It is no longer repeated for another wait, nor are
    // others repeated for it.
    timelines.repeated_waits.retain(|nap, each| !rewritten.contains(nap) && !rewritten.contains(&each.last));
    let squares = squares_with_effect(timelines, timers);
    Nanos(squares.values().sum::<f64>().sqrt() as u64)
}

/// Whether no other reaped child of the same parent ran at the same time.
fn is_alone(timelines: &Timelines, reaps: &[Reap], index: usize) -> bool {
    let Some(begins) = timelines.threads[reaps[index].child as usize].created.get() else { return false };
    let before = index.checked_sub(1).map(|before| &reaps[before]);
    let after = reaps.get(index + 1).and_then(|after| timelines.threads[after.child as usize].created.get());
    before.is_none_or(|before| before.zombie <= begins) && after.is_none_or(|after| after >= reaps[index].zombie)
}

/// Returns the waits that a parent ended itself while a child ran, rewritten as waits for the
/// child. Empty if the parent was busy meanwhile, or if the child serves the parent. Leaves out
/// waits that began before the previous child ended: they were for another thread, not for this
/// child. In Go, a thread often waits while several children run, and then continues the work of
/// another thread.
fn waits_during_child(
    timelines: &Timelines,
    begun: &HashMap<u32, Nanos>,
    parent: (u32, &[ThreadIndex]),
    reaps: &[Reap],
    index: usize,
) -> Vec<(ThreadIndex, usize, SliceRow)> {
    let (reap, before) = (reaps[index], index.checked_sub(1).map(|before| reaps[before].zombie));
    let begins = timelines.threads[reap.child as usize].created.get();
    let task = timelines.slices(reap.child).last().map(|slice| slice.task);
    let (Some(begins), Some(task)) = (begins, task.filter(|_| is_created(timelines, reap.child))) else {
        return Vec::new();
    };
    // Repeated waits are one wait, which began with the first of them.
    let began = |index: u32, slice: &SliceRow| {
        let of_nap = timelines.repeated_waits.get(&index).map(|each| each.begun);
        of_nap.or_else(|| begun.get(&index).copied()).unwrap_or(slice.off)
    };
    let (mut worked, mut waits) = (0, Vec::new());
    for &thread in parent.1 {
        let slices = timelines.slices(thread);
        let first = slices.partition_point(|slice| slice.off < begins).saturating_sub(1);
        let end = slices.partition_point(|slice| slice.off < reap.zombie);
        for (index, slice) in (first..end).filter_map(|index| Some((index, slices.get(index)?))) {
            worked += slice.on_span.filter(|_| slice.off >= begins).unwrap_or_default().0;
            if let Some(woken) = self_ended_wait(timelines, (parent.0, thread), &slice)
                && before.is_none_or(|before| before <= began(slices.indices().start + index as u32, &slice))
                && begins < woken.at
                && woken.at <= woken.latest(&reap)
            {
                waits.push((thread, index, ended_by(&slice, task, woken.at.min(reap.zombie))));
            }
        }
    }
    let is_idle = worked as f64 <= MAX_WORK_SHARE * reap.zombie.since(begins).0 as f64;
    if is_idle && !waits.is_empty() && !serves_parent(timelines, reap.child, parent.0) { waits } else { Vec::new() }
}

struct SelfEndedWait {
    at: Nanos,
    by_timer: bool,
}

impl SelfEndedWait {
    /// Returns the latest instant at which a wait for this child can end. A timer that expires
    /// after the child's end only delays the parent.
    fn latest(&self, reap: &Reap) -> Nanos {
        if self.by_timer { reap.zombie } else { Nanos(reap.reaped.0 + MAX_HAND_OVER.0) }
    }
}

/// Returns the end of a wait that a timer or another thread of the process ended. `None` if the
/// waker is uncertain, because the thread may have waited for something else.
fn self_ended_wait(
    timelines: &Timelines,
    (launch, thread): (u32, ThreadIndex),
    slice: &SliceRow,
) -> Option<SelfEndedWait> {
    let at = woken_at(slice)?;
    let cause = timelines.cause(thread, slice);
    let is_known = slice.is_waker_certain != Some(false);
    let is_by_process = is_known
        && cause.map_or_else(|| has_timed_out(timelines, thread, slice), |cause| timelines.launch_of(cause) == launch);
    let by_timer = cause.is_none();
    (slice.reason == LeftCpu::Interruptible && is_by_process).then_some(SelfEndedWait { at, by_timer })
}

/// Whether a child ever waited for its parent. Such a child serves requests, so the parent does not
/// wait for its end.
fn serves_parent(timelines: &Timelines, child: u32, parent: u32) -> bool {
    let slices = timelines.slices(child);
    let mut causes = slices.iter().filter_map(|slice| timelines.cause(child, &slice));
    causes.any(|cause| timelines.launch_of(cause) == parent)
}
