//! Reconstructs the waits of recordings without wakers. The perf collector records when threads
//! were off their CPU, and the ptrace collector only their CPU time at some instants; neither
//! records what ended a wait. `ties` connects recorded waits with the event of a child that ended
//! them: its end, or its exec after a vfork. `fill` creates slices for threads without slices.
//! Waits with an uncertain cause are stored in `UnknownWaits`, which widen the confidence interval
//! of each prediction.

mod creations;
mod events;
mod fill;
mod running;
mod ties;

use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{Origin, Recording, SliceRow, ThreadRow, WakerRow};

use crate::timeline::{ThreadIndex, Timelines, beginning};
use crate::tree::Forest;
use crate::unknown_waits::UnknownWaits;
use events::ChildEvents;

/// Adds the causes of waits to a recording whose collector did not record wakers. Does not change
/// other recordings.
#[must_use]
pub fn reconstruct(
    recording: &Recording,
    forest: &Forest<'_>,
    threads: &[ThreadRow],
    mut timelines: Timelines,
) -> Timelines {
    if recording.info.sees_scheduler() || forest.root.is_none() {
        return timelines;
    }
    let events = ChildEvents::new(forest);
    if recording.info.sees_cpus() {
        timelines = with_start_of_command(forest, timelines);
    }
    let (mut unknown, reaps) = ties::tie(forest, &events, &mut timelines);
    if !recording.info.sees_cpus() {
        let (slices, more) = fill::fill(forest, &events, threads, &timelines);
        unknown.extend(more);
        timelines = timelines.with_slices(slices);
    }
    let creations = creations::possible_creations(forest, &events);
    timelines.with_unknown(UnknownWaits::new(unknown, reaps, creations))
}

/// Adds the wait before the command was first on a CPU. The command's first slice begins there, but
/// the wall begins earlier, when the recorder releases the command.
fn with_start_of_command(forest: &Forest<'_>, timelines: Timelines) -> Timelines {
    let root = forest.root.map(|root| (root as ThreadIndex, &forest.launches[root]));
    let start = root.and_then(|(thread, launch)| {
        let first = timelines.slices(thread).get(0)?;
        let created = launch.instants.created.get().filter(|_| launch.origin == Origin::Command)?;
        // The replay would leave out a slice that begins at the start of the wall.
        let from = Nanos(created.0 + 1);
        let wait = Wait { from, woken: beginning(&first), to: beginning(&first), syscall: None, waker: None };
        (beginning(&first) > from).then(|| SliceRow { is_waker_certain: Some(false), ..wait.slice(first.task, from) })
    });
    match start {
        Some(start) => timelines.with_slice(start),
        None => timelines,
    }
}

/// A wait to be written as a slice.
#[derive(Clone, Copy, Debug)]
struct Wait {
    from: Nanos,
    /// When the cause of the wait ended it.
    woken: Nanos,
    /// When the thread was on a CPU again.
    to: Nanos,
    syscall: Option<u16>,
    waker: Option<TaskId>,
}

impl Wait {
    /// Returns the slice of a thread that got a CPU at `on` and then made this wait.
    fn slice(&self, task: TaskId, on: Nanos) -> SliceRow {
        SliceRow {
            off_span: Some(self.to.since(self.from)),
            wake_span: Some(self.woken.since(self.from)),
            syscall: self.syscall,
            waker: self.waker.map(WakerRow::Task),
            ..slice(task, on, self.from, LeftCpu::Interruptible)
        }
    }
}

/// Returns a slice without a wait.
fn slice(task: TaskId, on: Nanos, off: Nanos, reason: LeftCpu) -> SliceRow {
    SliceRow {
        task,
        off,
        on_span: Some(off.since(on)),
        off_span: None,
        wake_span: None,
        reason,
        syscall: None,
        argument: None,
        waker: None,
        object: None,
        calls: None,
        is_waker_certain: None,
    }
}
