//! Threads that the exit of their process killed. The thread that exits ends the waits and the
//! sleeps of all others. A recording shows the last sleep of such a thread as a wait for a timer,
//! so that a supervisor or a ticker, which nothing waits for, would seem to determine when its
//! process ends.

use crate::model::launch::MaybeKnown;
use crate::model::timeline::{Kill, State, ThreadIndex, Timelines, ended_by, woken_at};
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::SliceRow;

/// Finds all threads that were killed, and rewrites the sleeps that this ended as waits for the
/// thread that exited. `exits` contains the start of each launch's exit.
pub(super) fn find(timelines: &mut Timelines, exits: &[MaybeKnown]) -> Vec<Kill> {
    let processes = timelines.multithreaded.iter();
    let exited = processes.filter_map(|(launch, threads)| Some((threads, exits[*launch as usize].get()?)));
    let kills: Vec<Kill> = exited.flat_map(|(threads, exit)| kills_of(timelines, threads, exit)).collect();
    for kill in &kills {
        if let Some((index, slice)) = last_sleep(timelines, kill) {
            timelines.replace(kill.killed, index, slice);
        }
    }
    kills
}

/// Returns the threads that were alive when their process exited, except the one that exited.
fn kills_of(timelines: &Timelines, threads: &[ThreadIndex], exit: Nanos) -> Vec<Kill> {
    let is_alive = |thread: &&ThreadIndex| {
        let last = timelines.slices(**thread).last().filter(|last| last.reason == LeftCpu::Ended);
        last.is_some_and(|last| exit < last.off)
    };
    let alive: Vec<ThreadIndex> = threads.iter().filter(is_alive).copied().collect();
    let is_on_cpu = |thread: &ThreadIndex| {
        let moment = timelines.state_before(*thread, Nanos(exit.0 + 1));
        moment.is_some_and(|moment| moment.state == State::Running)
    };
    let Some(by) = alive.iter().copied().find(is_on_cpu) else { return Vec::new() };
    let others = alive.into_iter().filter(|thread| *thread != by);
    others.map(|killed| Kill { at: exit, by, killed }).collect()
}

/// Returns the wait that a kill ended, if it has no other cause, as a wait for the thread that
/// exited.
fn last_sleep(timelines: &Timelines, kill: &Kill) -> Option<(usize, SliceRow)> {
    let slices = timelines.slices(kill.killed);
    let index = slices.partition_point(|slice| slice.off < kill.at).checked_sub(1)?;
    let slice = slices.get(index)?;
    let woken = woken_at(&slice)?;
    let is_ended_by_kill = slice.reason == LeftCpu::Interruptible && woken >= kill.at;
    if !is_ended_by_kill || timelines.cause(kill.killed, &slice).is_some() {
        return None;
    }
    let task = timelines.slices(kill.by).last()?.task;
    // Only a timer ends a sleep, so this is not a sleep.
    Some((index, SliceRow { syscall: None, ..ended_by(&slice, task, woken) }))
}
