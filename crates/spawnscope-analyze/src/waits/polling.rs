//! Threads that poll: schedulers of runtimes, tickers, watchers. They sleep most of the time, and
//! wake other threads of their process for a moment of work. A thread that waits for a lock of a
//! polling thread, or for its next round, does not depend on the earlier rounds: without the
//! launches in between, it would wait for a different round. So such a wait is a wait for work that
//! another thread did before that round, and then for the next round; if no other thread worked, it
//! is rewritten as an external wait of the recorded length. Otherwise critical paths that enter a
//! polling thread would stay in its sleeps, and in a replay every round would delay the threads
//! that once waited for one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::external_wait::waker_is_cause;
use crate::model::grouped::grouped;
use crate::model::launch::MaybeKnown;
use crate::model::poll_loop::{Round, Rounds};
use crate::model::timeline::{ThreadIndex, Timelines, ended_by, woken_at, worked_until};
use crate::waits::poll_loops::{self, RESTART_SYSCALL};
use foldhash::HashSet;
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::SliceRow;

/// Minimum number of sleeps of a polling thread.
const MIN_NAPS: usize = 8;

/// Maximum number of rounds that a wait goes on after the work that it was for.
const MAX_ROUNDS: usize = 8;

/// Rewrites the waits that a polling thread of the same process ended. Returns the uncertainty of
/// their total length in a what-if, in which each would wait for a different round. The waits of
/// one thread vary independently; the result is the largest uncertainty of any thread. `exits`
/// contains the start of each launch's exit.
pub(crate) fn rewrite_waits(timelines: &mut Timelines, exits: &[MaybeKnown]) -> Nanos {
    let mut found: Vec<(ThreadIndex, usize, SliceRow)> = Vec::new();
    let mut rounds = Rounds::default();
    let (mut largest, mut timers) = (0.0_f64, Vec::new());
    for threads in timelines.multithreaded.values() {
        let polling: HashSet<ThreadIndex> =
            threads.iter().filter(|thread| is_polling(timelines, **thread)).copied().collect();
        if polling.is_empty() {
            continue;
        }
        let process = Process { timelines, threads, polling: &polling, exit: exits[threads[0] as usize] };
        for &thread in threads {
            let waits = process.waits_for_rounds(thread);
            if polling.contains(&thread) {
                let repeated = process.repeated_waits(thread);
                timers.extend(repeated.iter().map(|(_, _, slice)| (thread, *slice)));
                found.extend(repeated);
            } else {
                largest = largest.max(uncertainty(&waits));
            }
            for wait in waits {
                match wait.round {
                    Some(round) => drop(rounds.insert((thread, wait.slice.off), round)),
                    // A thread as its own waker stands for a wait without a known cause.
                    None => found.push((thread, wait.index, ended_by(&wait.slice, wait.slice.task, wait.woken))),
                }
            }
        }
    }
    let squares = squares_with_effect(timelines, timers);
    for (thread, index, slice) in found {
        timelines.replace(thread, index, slice);
    }
    timelines.rounds = rounds;
    Nanos(squares.into_values().map(f64::sqrt).fold(largest, f64::max) as u64)
}

/// Returns the sums of the squares of waits by thread. Nothing depended on a wait, such as one of a
/// virtual machine's watchers, if the thread neither woke nor created another one before a thread
/// of its process woke it: these waits do not count.
pub(crate) fn squares_with_effect(
    timelines: &Timelines,
    waits: Vec<(ThreadIndex, SliceRow)>,
) -> BTreeMap<ThreadIndex, f64> {
    let mut waits = grouped(waits);
    if waits.is_empty() {
        return BTreeMap::new();
    }
    let actions = actions_of(timelines, waits.keys().copied());
    let sum = |(thread, waits): (&ThreadIndex, &mut Vec<SliceRow>)| {
        let slices = timelines.slices(*thread);
        let is_woken = |slice: &SliceRow| {
            let waker = timelines.cause(*thread, slice);
            waker.is_some_and(|waker| timelines.launch_of(waker) == timelines.launch_of(*thread))
        };
        let mut later = (0..slices.len()).rev().filter_map(|index| slices.get(index)).peekable();
        let (mut until, mut sum) = (Nanos(u64::MAX), 0.0);
        waits.sort_unstable_by_key(|wait| Reverse(wait.off));
        for wait in waits {
            while let Some(slice) = later.next_if(|slice| slice.off > wait.off) {
                until = woken_at(&slice).filter(|_| is_woken(&slice)).unwrap_or(until);
            }
            let Some((from, span)) = woken_at(wait).zip(wait.wake_span) else { continue };
            let next = actions[thread].partition_point(|at| *at < from);
            let has_effect = actions[thread].get(next).is_some_and(|at| *at <= until);
            sum += if has_effect { (span.0 as f64).powi(2) } else { 0.0 };
        }
        (*thread, sum)
    };
    waits.iter_mut().map(sum).collect()
}

/// Returns when threads woke or created another thread, in order. The end of a process depends on
/// its first thread.
fn actions_of(timelines: &Timelines, threads: impl Iterator<Item = ThreadIndex>) -> BTreeMap<ThreadIndex, Vec<Nanos>> {
    let ends = |thread: ThreadIndex| (timelines.launch_of(thread) == thread).then_some(Nanos(u64::MAX));
    let mut actions: BTreeMap<_, Vec<Nanos>> = threads.map(|thread| (thread, Vec::from_iter(ends(thread)))).collect();
    let mut acts = |thread: Option<ThreadIndex>, at: Option<Nanos>| {
        let of = thread.and_then(|thread| actions.get_mut(&thread));
        of.zip(at).into_iter().for_each(|(actions, at)| actions.push(at));
    };
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let each = timelines.threads[thread as usize];
        acts(each.creator.get(), each.created.get());
        timelines.slices(thread).iter().for_each(|slice| acts(timelines.cause(thread, &slice), woken_at(&slice)));
    }
    actions.values_mut().for_each(|actions| actions.sort_unstable());
    actions
}

/// A wait that a polling thread ended.
struct RoundWait {
    index: usize,
    slice: SliceRow,
    woken: Nanos,
    /// What it was for. `None` if no other thread worked meanwhile.
    round: Option<Round>,
}

/// Returns the uncertainty of the total time that waits went on until a round. The uncertainty of
/// each wait is the recorded length of this part.
fn uncertainty(waits: &[RoundWait]) -> f64 {
    let squares = waits.iter().map(|wait| {
        let begins = wait.round.map_or(wait.slice.off, |round| round.until);
        (wait.woken.since(begins).0 as f64).powi(2)
    });
    squares.sum::<f64>().sqrt()
}

/// Whether a thread sleeps often, and longer than it works. Time in the run queue counts as
/// neither, because it depends on how busy the machine is.
fn is_polling(timelines: &Timelines, thread: ThreadIndex) -> bool {
    let slices = timelines.slices(thread);
    let naps = slices.iter().filter(|slice| is_nap(timelines, thread, slice));
    let naps: Vec<u64> = naps.filter_map(|slice| Some(slice.wake_span?.0)).collect();
    let worked: u64 = slices.iter().filter_map(|slice| Some(slice.on_span?.0)).sum();
    naps.len() >= MIN_NAPS && naps.iter().sum::<u64>() > worked
}

/// Whether a timer, and no other thread, ended the wait after a slice.
fn is_nap(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    poll_loops::is_nap(slice) && timelines.cause(thread, slice).is_none()
}

/// Whether a wait ended by its timeout in a call that another thread could have ended earlier,
/// unlike a sleep.
pub(crate) fn has_timed_out(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    is_nap(timelines, thread, slice) && waker_is_cause(&SliceRow { is_waker_certain: None, ..*slice })
}

struct Process<'t> {
    timelines: &'t Timelines,
    threads: &'t [ThreadIndex],
    polling: &'t HashSet<ThreadIndex>,
    /// When the exit of the process started.
    exit: MaybeKnown,
}

impl Process<'_> {
    fn waits_for_rounds(&self, thread: ThreadIndex) -> Vec<RoundWait> {
        let slices = self.timelines.slices(thread).iter().enumerate();
        slices.filter_map(|(index, slice)| self.wait_for_round(thread, index, &slice)).collect()
    }

    /// If a third thread worked between the start of the wait and the round that ended it, the
    /// polling thread may have passed on its result, so the wait was for the third thread, and then
    /// for that round.
    fn wait_for_round(&self, thread: ThreadIndex, index: usize, slice: &SliceRow) -> Option<RoundWait> {
        let woken = woken_at(slice)?;
        let waker = self.timelines.cause(thread, slice)?;
        if slice.reason != LeftCpu::Interruptible || !self.polling.contains(&waker) {
            return None;
        }
        let worked = self.worked_last(thread, slice.off, self.rounds_before(waker, woken).next()?);
        let round = worked.and_then(|(task, until)| {
            let rounds = self.rounds_before(waker, woken).take(MAX_ROUNDS);
            let count = rounds.take_while(|round| *round >= until).count();
            Some(Round { worker: self.timelines.thread(task)?, until, polling: waker, count })
        });
        Some(RoundWait { index, slice: *slice, woken, round })
    }

    /// Returns rewritten slices for the waits of a polling thread that timed out and were repeated.
    /// If another thread ended the last repetition, all of them become waits for that thread, since
    /// the timeout did not change what the polling thread waited for. Otherwise they become waits
    /// for the thread that worked during the last repetition. Sleeps are not rewritten.
    fn repeated_waits(&self, thread: ThreadIndex) -> Vec<(ThreadIndex, usize, SliceRow)> {
        let slices = self.timelines.slices(thread);
        let mut awaited: Option<(TaskId, Option<u16>)> = None;
        let (mut is_continued, mut rewritten) = (false, Vec::new());
        for (index, slice) in (0..slices.len()).rev().filter_map(|index| Some((index, slices.get(index)?))) {
            let Some(ended) = woken_at(&slice).filter(|_| slice.reason == LeftCpu::Interruptible) else {
                continue;
            };
            if self.exit.get().is_some_and(|exit| exit <= ended) {
                // The exit of the process ended this wait, not what the thread waited for.
                continue;
            }
            // A signal interrupted this wait, and the kernel continued it.
            let was_interrupted = std::mem::replace(&mut is_continued, slice.syscall == Some(RESTART_SYSCALL));
            if !was_interrupted && let Some(cause) = self.timelines.cause(thread, &slice) {
                if !self.polling.contains(&cause) {
                    awaited = self.task_of(cause).map(|task| (task, slice.syscall));
                }
                continue;
            }
            if !was_interrupted && !has_timed_out(self.timelines, thread, &slice) {
                continue;
            }
            awaited = awaited.or_else(|| Some((self.worked_last(thread, slice.off, ended)?.0, slice.syscall)));
            if let Some((task, call)) = awaited
                && (call == slice.syscall || [call, slice.syscall].contains(&Some(RESTART_SYSCALL)))
                && self.exists(task, ended)
            {
                rewritten.push((thread, index, ended_by(&slice, task, ended)));
            }
        }
        rewritten
    }

    /// Returns the task id of a thread of this process. `None` for a thread of another process.
    fn task_of(&self, thread: ThreadIndex) -> Option<TaskId> {
        let is_own = self.threads.contains(&thread);
        self.timelines.slices(thread).last().filter(|_| is_own).map(|slice| slice.task)
    }

    fn exists(&self, task: TaskId, at: Nanos) -> bool {
        let thread = self.timelines.thread(task).map(|thread| self.timelines.threads[thread as usize]);
        thread.and_then(|thread| thread.created.get()).is_some_and(|created| created < at)
    }

    /// Returns which other thread that does not poll worked last between two instants, and until
    /// when. `None` if none did.
    fn worked_last(&self, waiting: ThreadIndex, from: Nanos, to: Nanos) -> Option<(TaskId, Nanos)> {
        let others = self.threads.iter().filter(|thread| **thread != waiting && !self.polling.contains(thread));
        let worked = others.filter_map(|other| {
            let slices = self.timelines.slices(*other);
            Some((slices.last()?.task, worked_until(slices, (from, to))?))
        });
        worked.max_by_key(|(_, until)| *until)
    }

    /// Returns when the sleeps that a thread began before an instant ended, the last one first.
    fn rounds_before(&self, thread: ThreadIndex, before: Nanos) -> impl Iterator<Item = Nanos> + '_ {
        let slices = self.timelines.slices(thread);
        let begun = slices.partition_point(|slice| slice.off < before);
        let earlier = (0..begun).rev().filter_map(move |index| slices.get(index));
        earlier.filter(move |slice| is_nap(self.timelines, thread, slice)).filter_map(|nap| woken_at(&nap))
    }
}
