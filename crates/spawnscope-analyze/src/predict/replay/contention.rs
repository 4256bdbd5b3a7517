//! Computes how much CPU time runnable threads lost to something that was not recorded. While
//! recorded threads used all CPUs, nothing counts as lost, because the replay reproduces such
//! waits. If no recorded thread used a CPU although threads were runnable, an unrecorded process
//! used that CPU, or the CPU was waking from idle, or the scheduler had not assigned it yet. This
//! time was lost to all runnable threads together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::machine::MAX_WAKE_UP;
use crate::model::timeline::{ThreadIndex, Timelines, beginning, runnable};
use foldhash::HashMap;
use spawnscope_data::event::Nanos;

/// The waits of all threads for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuWaits {
    /// The sum of all waits.
    pub all: Nanos,
    /// The part in which something outside of the recording held the CPUs. If others hold both of
    /// two CPUs, it is the whole wait of each of any number of threads; if they hold one while
    /// several threads wait, half of it.
    pub held_by_others: Nanos,
}

/// The longest loss of CPU time, as a share of the CPU time of all recorded threads, for which the
/// recorder alone is the cause: it reads what they do, on CPUs that they then wait for. It lost
/// them 0 to 17 % on a machine without other programs, and 50 % and more on a busy one.
const MAX_BY_RECORDER: f64 = 0.2;

#[derive(Clone, Debug)]
pub(super) struct Contention {
    pub(super) waits: CpuWaits,
    /// The share of long losses that recording caused. Short ones are wake-ups.
    pub(super) by_recorder: f64,
    /// Nanoseconds lost after each slice; `u32::MAX` if the number is in `large`.
    lost: Vec<u32>,
    /// Losses that do not fit into `lost`, by slice index.
    large: HashMap<u32, Nanos>,
}

impl Contention {
    pub(super) fn new(timelines: &Timelines, cpus: u32) -> Contention {
        let mut sweep = Sweep::new(timelines, cpus);
        let mut contention = Contention {
            waits: CpuWaits::default(),
            by_recorder: 0.0,
            lost: vec![0; timelines.slice_count()],
            large: HashMap::default(),
        };
        let mut long = 0.0;
        // For each slice whose thread is waiting, the loss at the start of the wait. There are few
        // at a time.
        let mut loss_at_start: BTreeMap<u32, f64> = BTreeMap::new();
        while let Some(event) = sweep.next() {
            contention.waits = sweep.waits_until(event.at);
            match event.transition {
                Transition::StartsWaiting => {
                    loss_at_start.insert(event.slice, sweep.loss.at(event.at));
                }
                Transition::StopsWaiting => {
                    let sum = sweep.loss.at(event.at) - loss_at_start.remove(&event.slice).unwrap_or_default();
                    let lost = Nanos(sum.round().max(0.0) as u64);
                    long += if lost > MAX_WAKE_UP { sum } else { 0.0 };
                    contention.set_lost(event.slice, lost);
                }
                Transition::StartsRunning | Transition::StopsRunning => {}
            }
        }
        contention.by_recorder = (MAX_BY_RECORDER * sweep.ran / f64::max(long, 1.0)).min(1.0);
        contention
    }

    /// Returns how much time the thread of a slice lost while it was runnable after the slice.
    pub(super) fn lost(&self, slice: u32) -> Nanos {
        match self.lost[slice as usize] {
            u32::MAX => self.large.get(&slice).copied().unwrap_or_default(),
            lost => Nanos(u64::from(lost)),
        }
    }

    fn set_lost(&mut self, slice: u32, lost: Nanos) {
        self.lost[slice as usize] = u32::try_from(lost.0).unwrap_or(u32::MAX);
        if self.lost[slice as usize] == u32::MAX {
            self.large.insert(slice, lost);
        }
    }
}

/// A sum that grows by a rate: the sum up to the last change of the rate, and the rate since then.
#[derive(Clone, Copy, Debug, Default)]
struct Growing {
    at: Nanos,
    /// Nanoseconds up to `at`.
    sum: f64,
    /// Nanoseconds per nanosecond since `at`.
    rate: f64,
}

impl Growing {
    fn at(&self, at: Nanos) -> f64 {
        self.sum + self.rate * at.since(self.at).0 as f64
    }

    fn change(&mut self, at: Nanos, rate: f64) {
        if rate != self.rate {
            let sum = self.at(at);
            *self = Growing { at, sum, rate };
        }
    }
}

/// A change of a thread's state. Changes at the same instant happen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Transition {
    StopsRunning,
    StartsRunning,
    StopsWaiting,
    StartsWaiting,
}

/// A transition of a thread. Events are ordered by time, by transition, and by thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Nanos,
    transition: Transition,
    thread: ThreadIndex,
    slice: u32,
}

/// Iterates over the events of all threads by time. Keeps only the events of the current slices in
/// memory, because the events of a complete recording would need more memory than its slices.
struct Sweep<'t> {
    timelines: &'t Timelines,
    cpus: i64,
    /// Threads that have not started, in descending order of their start.
    not_started: Vec<(Nanos, ThreadIndex)>,
    pending: BinaryHeap<Reverse<Event>>,
    /// For each thread, the index of its next slice.
    next: Vec<u32>,
    running: i64,
    waiting: i64,
    /// How much time a thread would have lost if it had been runnable from the start.
    loss: Growing,
    /// The CPU time of the threads so far, in nanoseconds.
    ran: f64,
    /// The waits of all threads.
    waited: Growing,
    /// The waits of all threads for CPUs that others held.
    held_by_others: Growing,
}

impl Sweep<'_> {
    fn new(timelines: &Timelines, cpus: u32) -> Sweep<'_> {
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let mut not_started: Vec<(Nanos, ThreadIndex)> =
            threads.filter_map(|thread| Some((beginning(&timelines.slices(thread).get(0)?), thread))).collect();
        not_started.sort_unstable_by_key(|first| Reverse(*first));
        Sweep {
            timelines,
            cpus: i64::from(cpus),
            not_started,
            pending: BinaryHeap::new(),
            next: vec![0; timelines.threads.len()],
            running: 0,
            waiting: 0,
            loss: Growing::default(),
            ran: 0.0,
            waited: Growing::default(),
            held_by_others: Growing::default(),
        }
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            let next = self.pending.peek().map(|Reverse(event)| event.at);
            let started = self.not_started.pop_if(|(at, _)| next.is_none_or(|next| *at <= next));
            let Some((_, thread)) = started else { break };
            self.open(thread);
        }
        let Reverse(event) = self.pending.pop()?;
        match event.transition {
            Transition::StopsRunning => self.running -= 1,
            Transition::StartsRunning => self.running += 1,
            Transition::StopsWaiting => self.waiting -= 1,
            Transition::StartsWaiting => self.waiting += 1,
        }
        self.change_rates(event.at);
        // CPU clocks differ: the next slice may start slightly before the previous one ends.
        let thread = event.thread;
        let is_last_opened =
            self.timelines.slices(thread).indices().start + self.next[thread as usize] == event.slice + 1;
        if is_last_opened && event.transition != Transition::StartsRunning {
            self.open(thread);
        }
        Some(event)
    }

    fn change_rates(&mut self, at: Nanos) {
        let waiting = self.waiting.max(0);
        let free = (self.cpus - self.running).clamp(0, waiting) as f64;
        let per = |threads: i64| if threads > 0 { free / threads as f64 } else { 0.0 };
        self.loss.change(at, per(waiting));
        self.waited.change(at, waiting as f64);
        self.held_by_others.change(at, waiting as f64 * per(waiting.min(self.cpus)));
    }

    fn waits_until(&self, at: Nanos) -> CpuWaits {
        let nanos = |sum: &Growing| Nanos(sum.at(at) as u64);
        CpuWaits { all: nanos(&self.waited), held_by_others: nanos(&self.held_by_others) }
    }

    /// Adds the events of the next slice of a thread, skipping slices without events.
    fn open(&mut self, thread: ThreadIndex) {
        let slices = self.timelines.slices(thread);
        while let Some(slice) = slices.get(self.next[thread as usize] as usize) {
            let index = slices.indices().start + self.next[thread as usize];
            self.next[thread as usize] += 1;
            let ran = slice.on_span.is_some_and(|span| span.0 > 0);
            let ran = ran.then(|| (beginning(&slice), slice.off));
            let waited = runnable(&slice).filter(|(from, to)| from < to);
            let mut push = |at, transition| self.pending.push(Reverse(Event { at, transition, thread, slice: index }));
            if let Some((from, to)) = ran {
                self.ran += to.since(from).0 as f64;
                push(from, Transition::StartsRunning);
                push(to, Transition::StopsRunning);
            }
            if let Some((from, to)) = waited {
                push(from, Transition::StartsWaiting);
                push(to, Transition::StopsWaiting);
            }
            if ran.or(waited).is_some() {
                return;
            }
        }
    }
}
