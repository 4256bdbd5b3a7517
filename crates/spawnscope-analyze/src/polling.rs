//! Threads that poll: schedulers of runtimes, tickers, watchers. They sleep most of the time, and wake other threads of their process for a
//! moment of work. A thread that waits for a lock which such a thread holds, or for its next round, does not wait for the rounds before:
//! without the launches between them, it meets another round. So these waits are external ones of the recorded length. Otherwise, critical
//! paths that enter a polling thread stay in its sleeps, and in a replay every round delays the threads that once met it.

use std::collections::{HashMap, HashSet};

use crate::external_wait::{ExternalWait, external_wait_of};
use crate::slices::ThreadSlices;
use crate::timeline::{ThreadIndex, Timelines, beginning};
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::rows::{SliceRow, WakerRow};

/// A thread that sleeps less often does not poll.
const FEWEST_NAPS: usize = 8;
/// A thread that sleeps a smaller share of its life does other work, too.
const SLEPT: f64 = 0.5;

/// Rewrites the waits that a polling thread of the same process ended. Returns how uncertain it is how long they would take together after a
/// change: each meets another round then, and they vary independently. For the thread for which this is the most.
pub(super) fn mark(timelines: &mut Timelines) -> Nanos {
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
        };
        for &thread in &threads {
            let rewritten = process.waits_for_rounds(thread);
            let waited = rewritten
                .iter()
                .map(|(.., slice)| slice.wake_span.unwrap_or_default().0 as f64);
            if !polling.contains(&thread) {
                most = most.max(waited.map(|waited| waited.powi(2)).sum::<f64>().sqrt());
            }
            found.extend(rewritten);
        }
    }
    for (thread, index, slice) in found {
        timelines.replace(thread, index, slice);
    }
    Nanos(most as u64)
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

/// Whether a thread sleeps often, and most of the time.
fn is_polling(timelines: &Timelines, thread: ThreadIndex) -> bool {
    let slices = timelines.slices(thread);
    let (Some(first), Some(last)) = (slices.get(0), slices.last()) else {
        return false;
    };
    let naps: Vec<u64> = slices
        .iter()
        .filter(|slice| is_nap(timelines, thread, slice))
        .filter_map(|slice| Some(slice.wake_span?.0))
        .collect();
    let life = last.off.since(beginning(&first)).0 as f64;
    naps.len() >= FEWEST_NAPS && naps.iter().sum::<u64>() as f64 >= SLEPT * life
}

/// Whether a timer ended the wait after a slice.
fn is_nap(timelines: &Timelines, thread: ThreadIndex, slice: &SliceRow) -> bool {
    let is_wait = slice.reason == LeftCpu::Interruptible && slice.wake_span.is_some();
    is_wait && timelines.cause(thread, slice).is_none() && external_wait_of(slice) == ExternalWait::Timer
}

/// A process of which some threads poll.
struct Process<'t> {
    timelines: &'t Timelines,
    threads: &'t [ThreadIndex],
    polling: &'t HashSet<ThreadIndex>,
}

impl Process<'_> {
    /// Returns the slices of a thread whose wait a polling thread ended, rewritten, with their index.
    fn waits_for_rounds(&self, thread: ThreadIndex) -> Vec<(ThreadIndex, usize, SliceRow)> {
        let slices = self.timelines.slices(thread);
        let rewritten = |(index, slice): (usize, SliceRow)| {
            let woken = Nanos(slice.off.0 + slice.wake_span?.0);
            let waker = self.timelines.cause(thread, &slice)?;
            let is_round = slice.reason == LeftCpu::Interruptible && self.polling.contains(&waker);
            if !is_round || self.follows_another(thread, waker, slice.off, woken) {
                return None;
            }
            // A thread that wakes itself has no cause.
            let waker = Some(WakerRow::Task(slice.task));
            Some((thread, index, SliceRow { waker, ..slice }))
        };
        slices.iter().enumerate().filter_map(rewritten).collect()
    }

    /// Whether another thread worked between the beginning of a wait and the round that ended it. The round may have passed on what that thread
    /// did, so the wait stays as it was recorded.
    fn follows_another(&self, waiting: ThreadIndex, waker: ThreadIndex, from: Nanos, woken: Nanos) -> bool {
        let Some(round) = self.last_round(waker, woken).filter(|round| *round > from) else {
            return false;
        };
        let mut others = self
            .threads
            .iter()
            .filter(|other| **other != waiting && !self.polling.contains(other));
        others.any(|other| ran_between(self.timelines.slices(*other), from, round))
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

/// Whether a thread was on a CPU between two instants.
fn ran_between(slices: ThreadSlices<'_>, from: Nanos, to: Nanos) -> bool {
    let first = slices.partition_point(|slice| slice.off <= from);
    slices.get(first).is_some_and(|slice| beginning(&slice) < to)
}
