//! Threads that poll: schedulers of runtimes, tickers, watchers. They sleep most of the time, and wake other threads of their process for a
//! moment of work. A thread that waits for a lock of such a thread, or for its next round, does not depend on the earlier rounds:
//! without the launches in between, it would wait for a different round. So these waits are external ones of the recorded length, or end
//! with what another thread did before that round. Otherwise, critical paths that enter a polling thread stay in its sleeps, and in a
//! replay every round delays the threads that once met it.

use std::collections::{HashMap, HashSet};

use crate::external_wait::{ExternalWait, external_wait_of, waker_is_cause};
use crate::launch::Known;
use crate::slices::ThreadSlices;
use crate::timeline::{ThreadIndex, Timelines, beginning, run_queue_span};
use spawnscope_data::event::{LeftCpu, Nanos, TaskId};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// After a signal, the kernel continues a call with a timeout by this system call.
const RESTART_SYSCALL: u16 = 219;
/// A thread that sleeps less often does not poll.
const MIN_NAPS: usize = 8;

/// Rewrites the waits that a polling thread of the same process ended. Returns the uncertainty of their total duration after a
/// change, in which each would wait for a different round; they vary independently. It is that of the thread with the largest one.
/// `exits` has when the exit of each launch started.
pub(super) fn mark(timelines: &mut Timelines, exits: &[Known]) -> Nanos {
    let mut found: Vec<(ThreadIndex, usize, SliceRow)> = Vec::new();
    let mut most = 0.0_f64;
    for threads in processes_with_threads(timelines).into_values() {
        let polls = |thread: &&ThreadIndex| is_polling(timelines, **thread);
        let polling: HashSet<ThreadIndex> = threads.iter().filter(polls).copied().collect();
        if polling.is_empty() {
            continue;
        }
        let process = Process {
            timelines,
            threads: &threads,
            polling: &polling,
            exit: exits[threads[0] as usize],
        };
        for &thread in &threads {
            let rewritten = process.waits_for_rounds(thread);
            if polling.contains(&thread) {
                let repeated = process.repeated_waits(thread);
                most = most.max(repeated.iter().map(length).map(|span| span.powi(2)).sum::<f64>().sqrt());
                found.extend(repeated);
            } else {
                most = most.max(uncertainty(&rewritten));
            }
            found.extend(rewritten);
        }
    }
    for (thread, index, slice) in found {
        timelines.replace(thread, index, slice);
    }
    Nanos(most as u64)
}

fn length((.., slice): &(ThreadIndex, usize, SliceRow)) -> f64 {
    slice.wake_span.unwrap_or_default().0 as f64
}

/// Returns the uncertainty of the part of the waits that the rounds took. For each wait, it is the recorded length of that part.
fn uncertainty(rewritten: &[(ThreadIndex, usize, SliceRow)]) -> f64 {
    let of_round = |(.., slice): &(ThreadIndex, usize, SliceRow)| {
        let has_cause = slice.waker != Some(WakerRow::Task(slice.task));
        let span = if has_cause {
            run_queue_span(slice)
        } else {
            slice.wake_span
        };
        (span.unwrap_or_default().0 as f64).powi(2)
    };
    rewritten.iter().map(of_round).sum::<f64>().sqrt()
}

/// Returns the threads of each process that has several.
fn processes_with_threads(timelines: &Timelines) -> HashMap<u32, Vec<ThreadIndex>> {
    let mut threads: HashMap<u32, Vec<ThreadIndex>> = HashMap::new();
    for (index, thread) in (0..).zip(&timelines.threads) {
        // The first thread has the index of its launch.
        if index != thread.launch {
            threads
                .entry(thread.launch)
                .or_insert_with(|| vec![thread.launch])
                .push(index);
        }
    }
    threads
}

/// Whether a thread sleeps often, and longer than it works. Waits for a CPU do not count: a busy machine has more of them.
fn is_polling(timelines: &Timelines, thread: ThreadIndex) -> bool {
    let slices = timelines.slices(thread);
    let naps = slices.iter().filter(|slice| is_nap(timelines, thread, slice));
    let naps: Vec<u64> = naps.filter_map(|slice| Some(slice.wake_span?.0)).collect();
    let worked: u64 = slices.iter().filter_map(|slice| Some(slice.on_span?.0)).sum();
    naps.len() >= MIN_NAPS && naps.iter().sum::<u64>() > worked
}

/// Whether a timer ended the wait after a slice.
fn is_nap(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    let is_wait = slice.reason == LeftCpu::Interruptible && slice.wake_span.is_some();
    is_wait && timelines.cause(thread, slice).is_none() && external_wait_of(slice) == ExternalWait::Timer
}

/// Whether a wait timed out, but could have ended earlier, unlike a sleep.
pub(crate) fn is_repeatable(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    is_nap(timelines, thread, slice)
        && waker_is_cause(&SliceRow {
            is_waker_certain: None,
            ..*slice
        })
}

/// A process of which some threads poll.
struct Process<'t> {
    timelines: &'t Timelines,
    threads: &'t [ThreadIndex],
    polling: &'t HashSet<ThreadIndex>,
    /// When its exit started.
    exit: Known,
}

impl Process<'_> {
    /// Returns the slices of a thread whose wait a polling thread ended, rewritten, with their index. If another thread worked between the
    /// beginning of the wait and the round that ended it, the round may have passed on what that thread did: the wait then ends with its work.
    fn waits_for_rounds(&self, thread: ThreadIndex) -> Vec<(ThreadIndex, usize, SliceRow)> {
        let slices = self.timelines.slices(thread);
        let rewritten = |(index, slice): (usize, SliceRow)| {
            let woken = Nanos(slice.off.0 + slice.wake_span?.0);
            let waker = self.timelines.cause(thread, &slice)?;
            if slice.reason != LeftCpu::Interruptible || !self.polling.contains(&waker) {
                return None;
            }
            let worked = self.worked_last(thread, slice.off, self.last_round(waker, woken)?);
            // A thread that wakes itself has no cause.
            let (task, until) = worked.unwrap_or((slice.task, woken));
            Some((thread, index, ended_by(&slice, task, until)))
        };
        slices.iter().enumerate().filter_map(rewritten).collect()
    }

    /// Returns the waits of a polling thread that timed out, and were repeated until another thread ended one of them, rewritten as waits for that
    /// thread: with a timeout or without, it waited for the same. If no thread ended one of them, they count as waits for the thread that
    /// worked during the last of them. Sleeps stay as they are.
    fn repeated_waits(&self, thread: ThreadIndex) -> Vec<(ThreadIndex, usize, SliceRow)> {
        let slices = self.timelines.slices(thread);
        let mut awaited: Option<(TaskId, Option<u16>)> = None;
        let (mut is_continued, mut rewritten) = (false, Vec::new());
        for (index, slice) in (0..slices.len())
            .rev()
            .filter_map(|index| Some((index, slices.get(index)?)))
        {
            let Some(span) = slice.wake_span.filter(|_| slice.reason == LeftCpu::Interruptible) else {
                continue;
            };
            let ended = Nanos(slice.off.0 + span.0);
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
            if !was_interrupted && !is_repeatable(self.timelines, thread, &slice) {
                continue;
            }
            let last = || Some((self.worked_last(thread, slice.off, ended)?.0, slice.syscall));
            awaited = awaited.or_else(last);
            let same = |(_, call): &(TaskId, Option<u16>)| {
                [*call, slice.syscall].contains(&Some(RESTART_SYSCALL)) || *call == slice.syscall
            };
            if let Some((task, _)) = awaited.filter(same).filter(|(task, _)| self.exists(*task, ended)) {
                rewritten.push((thread, index, ended_by(&slice, task, ended)));
            }
        }
        rewritten
    }

    /// Returns the number of a thread of this process in the recording.
    fn task_of(&self, thread: ThreadIndex) -> Option<TaskId> {
        let is_own = self.threads.contains(&thread);
        self.timelines
            .slices(thread)
            .last()
            .filter(|_| is_own)
            .map(|slice| slice.task)
    }

    fn exists(&self, task: TaskId, at: Nanos) -> bool {
        let thread = self
            .timelines
            .thread(task)
            .map(|thread| self.timelines.threads[thread as usize]);
        thread
            .and_then(|thread| thread.created.get())
            .is_some_and(|created| created < at)
    }

    /// Returns the other thread that worked last between two instants, and until when. None if no other thread did.
    fn worked_last(&self, waiting: ThreadIndex, from: Nanos, to: Nanos) -> Option<(TaskId, Nanos)> {
        let is_other = |thread: &&ThreadIndex| **thread != waiting && !self.polling.contains(thread);
        let others = self.threads.iter().filter(is_other);
        let worked = others.filter_map(|other| worked_until(self.timelines.slices(*other), from, to));
        worked.max_by_key(|(_, until)| *until)
    }

    /// Returns when the last sleep of a thread before an instant ended.
    fn last_round(&self, thread: ThreadIndex, before: Nanos) -> Option<Nanos> {
        let slices = self.timelines.slices(thread);
        let begun = slices.partition_point(|slice| slice.off < before);
        let mut earlier = (0..begun).rev().filter_map(|index| slices.get(index));
        let nap = earlier.find(|slice| is_nap(self.timelines, thread, slice))?;
        Some(Nanos(nap.off.0 + nap.wake_span?.0))
    }
}

/// Returns until when a thread was last on a CPU between two instants.
fn worked_until(slices: ThreadSlices<'_>, from: Nanos, to: Nanos) -> Option<(TaskId, Nanos)> {
    let begun = slices.partition_point(|slice| beginning(slice) < to);
    let last = slices.get(begun.checked_sub(1)?)?;
    let until = last.off.min(to);
    (until > from && last.on_span.is_some()).then_some((last.task, until))
}

/// Returns the slice as one whose wait a thread ended at an instant.
fn ended_by(slice: &SliceRow, task: TaskId, until: Nanos) -> SliceRow {
    SliceRow {
        waker: Some(WakerRow::Task(task)),
        wake_span: Some(until.since(slice.off)),
        is_waker_certain: Some(true),
        ..*slice
    }
}
