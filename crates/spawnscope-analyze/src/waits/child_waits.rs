//! Recognizes waits for children that a recording shows as waits for a CPU. A parent that is woken
//! on the CPU where its child runs stays runnable until the child has ended, and then reaps it
//! without blocking. In effect it waited for the child, and with a free CPU it would have blocked.
//! Such slices are rewritten as waits that the child's end ended.

use crate::model::external_wait::waker_is_cause;
use crate::model::grouped::GroupedItems;
use crate::model::timeline::{ThreadIndex, Timelines, ended_by, last_threads, returned_at, run_queue_span};
use crate::model::tree::Forest;
use foldhash::HashSet;
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::SliceRow;

/// The reaped children of each launch, in order of reaping.
#[derive(Clone, Debug)]
pub(crate) struct Reaps(GroupedItems<Reap>);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reap {
    pub(crate) child: u32,
    /// When the child became a zombie, which can be reaped.
    pub(crate) zombie: Nanos,
    /// When the parent's wait for it returned, after `zombie`.
    pub(crate) reaped: Nanos,
}

impl Reaps {
    /// Collects the reaped children of all launches. Leaves out children that the kernel reaped
    /// itself, which need no wait.
    pub(crate) fn new(forest: &Forest<'_>) -> Reaps {
        let mut reaps: Vec<(u32, Reap)> = Vec::new();
        for (child, launch) in (0..).zip(&forest.launches) {
            if let Some(zombie) = launch.instants.zombie.get()
                && let Some(reaped) = launch.instants.reaped.get()
                && let Some(parent) = forest.parent(child as usize)
                && zombie < reaped
            {
                reaps.push((parent as u32, Reap { child, zombie, reaped }));
            }
        }
        reaps.sort_unstable_by_key(|(parent, reap)| (*parent, reap.reaped, reap.child));
        Reaps(GroupedItems::new(forest.launches.len(), reaps))
    }

    pub(crate) fn of_launch(&self, launch: u32) -> &[Reap] {
        self.0.items_of(launch as usize)
    }

    /// Returns the children that a launch reaped after `from`, up to `to`.
    pub(crate) fn between(&self, launch: u32, from: Nanos, to: Nanos) -> &[Reap] {
        let all = self.of_launch(launch);
        let start = all.partition_point(|reap| reap.reaped <= from);
        let end = all.partition_point(|reap| reap.reaped <= to);
        &all[start..end.max(start)]
    }
}

/// Rewrites the slices after which a thread waited for a CPU until its child had ended.
pub(crate) fn rewrite_waits(timelines: &mut Timelines, reaps: &Reaps) {
    let found: Vec<(ThreadIndex, usize, Reap)> =
        (0..timelines.threads.len() as ThreadIndex).flat_map(|thread| waits_of(timelines, reaps, thread)).collect();
    let children: HashSet<u32> = found.iter().map(|(.., reap)| reap.child).collect();
    let last = last_threads(timelines, |launch| children.contains(&launch));
    for (thread, index, reap) in found {
        let ended_with = last.get(&reap.child).copied().unwrap_or(reap.child);
        let task = timelines.slices(ended_with).last().map(|slice| slice.task);
        let task = task.filter(|_| is_created(timelines, ended_with));
        if let Some((slice, task)) = timelines.slices(thread).get(index).zip(task) {
            timelines.replace(thread, index, waiting_for(&slice, reap.zombie, task));
        }
    }
}

/// Returns the slices of a thread that show a wait for a child as a wait for a CPU: the thread, the
/// index of the slice, and the child.
fn waits_of(timelines: &Timelines, reaps: &Reaps, thread: ThreadIndex) -> Vec<(ThreadIndex, usize, Reap)> {
    if reaps.of_launch(timelines.launch_of(thread)).is_empty() {
        return Vec::new();
    }
    let slices = timelines.slices(thread);
    let mut waits = Vec::new();
    for (index, (slice, next)) in slices.iter().zip(slices.iter().skip(1)).enumerate() {
        if let Some(reap) = awaited_child(timelines, reaps, thread, [&slice, &next]) {
            waits.push((thread, index, reap));
        }
    }
    waits
}

/// Returns the child that a thread waited for in a slice, if it reaped the child before the next.
fn awaited_child(
    timelines: &Timelines,
    reaps: &Reaps,
    thread: ThreadIndex,
    [slice, next]: [&SliceRow; 2],
) -> Option<Reap> {
    let launch = timelines.launch_of(thread);
    let returned = returned_at(slice)?;
    let woken = Nanos(returned.0.saturating_sub(run_queue_span(slice)?.0));
    let ended = reaps.between(launch, returned, next.off).iter();
    let ended = ended.filter(|reap| woken < reap.zombie && reap.zombie <= returned);
    let ended = ended.filter(|reap| creator_of(timelines, reap.child, launch) == thread);
    let reap = *ended.max_by_key(|reap| reap.zombie)?;
    let waited = reap.zombie.since(woken);
    // The work of the parent before the reaping is shorter than the wait, so on a free CPU the
    // parent would have waited as well.
    let worked = reap.reaped.since(returned);
    (worked < waited && may_be_rewritten(slice, waited)).then_some(reap)
}

/// Returns the thread that created a child; the parent's first thread if unknown.
pub(crate) fn creator_of(timelines: &Timelines, child: u32, parent: u32) -> ThreadIndex {
    timelines.threads[child as usize].creator.get().unwrap_or(parent)
}

/// Whether the recording contains the creation of a thread. A replay never starts a thread without
/// it, so a wait for that thread would not end.
pub(crate) fn is_created(timelines: &Timelines, thread: ThreadIndex) -> bool {
    let thread = timelines.threads[thread as usize];
    thread.creator.get().is_some() && thread.created.get().is_some()
}

/// Whether the wait of a slice may be rewritten as a wait for a child. A sleep, a wait for a disk,
/// and a wait for an object such as a pipe that took longer than the wait for the child (`waited`)
/// must not be rewritten.
fn may_be_rewritten(slice: &SliceRow, waited: Nanos) -> bool {
    let is_for_object = slice.object.is_some() && slice.wake_span.is_none_or(|span| span > waited);
    match slice.reason {
        LeftCpu::Created | LeftCpu::Ended => false,
        LeftCpu::Preempted => true,
        _ if is_for_object => false,
        _ => waker_is_cause(&SliceRow { is_waker_certain: None, ..*slice }),
    }
}

/// Returns the slice as a wait for the end of a child. The reason of a preempted thread changes to
/// blocked, because it would have called wait next.
fn waiting_for(slice: &SliceRow, ended: Nanos, by: TaskId) -> SliceRow {
    let reason = match slice.reason {
        LeftCpu::Preempted => LeftCpu::Interruptible,
        reason => reason,
    };
    SliceRow { reason, object: None, ..ended_by(slice, by, ended) }
}
