//! Waits of recordings without wakers. perf shows when threads were off their CPU, ptrace only counts their CPU time at some instants; neither
//! shows what ended a wait. `ties` connects recorded waits with what happened at their end: the end of a child, its exec after a vfork.
//! `fill` makes the slices of threads without any. What is not proved goes to `UnknownWaits`, which widen the interval of each prediction.

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

/// Adds the causes of waits to a recording whose collector did not see wakers. Other recordings stay as they are.
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
    let events = ChildEvents::of(forest);
    if recording.info.sees_cpus() {
        timelines = with_start_of_command(forest, timelines);
    }
    let (mut unknown, reaps) = ties::tie(forest, &events, &mut timelines);
    if !recording.info.sees_cpus() {
        let (slices, more) = fill::fill(forest, &events, threads, &timelines);
        unknown.extend(more);
        timelines = timelines.with_slices(slices);
    }
    let creations = creations::of(forest, &events);
    timelines.with_unknown(UnknownWaits::new(unknown, reaps, creations))
}

/// Adds the time before the command was on a CPU first. Its events begin there, and the wall begins when the recorder releases it.
fn with_start_of_command(forest: &Forest<'_>, timelines: Timelines) -> Timelines {
    let root = forest.root.map(|root| (root as ThreadIndex, &forest.launches[root]));
    let start = root.and_then(|(thread, launch)| {
        let first = timelines.slices(thread).get(0)?;
        let created = launch
            .instants
            .created
            .get()
            .filter(|_| launch.origin == Origin::Command)?;
        // A stretch that begins with the wall would not be played.
        let from = Nanos(created.0 + 1);
        let waited = Wait {
            from,
            woken: beginning(&first),
            to: beginning(&first),
            syscall: None,
            waker: None,
        };
        (beginning(&first) > from).then(|| SliceRow {
            is_waker_certain: Some(false),
            ..waited.slice(first.task, from)
        })
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
    /// When its cause ended it.
    woken: Nanos,
    /// When the thread was on a CPU again.
    to: Nanos,
    syscall: Option<u16>,
    waker: Option<TaskId>,
}

impl Wait {
    /// Returns the slice of a thread that got its CPU at `on` and waited next.
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
