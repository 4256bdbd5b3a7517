//! How much CPU time was lost to a thread that could run but had no CPU. While all CPUs were taken by recorded threads it
//! lost none: such waits the replay finds out by itself. While one was free of them, somebody else had it, or it was on its way
//! out of idle, or the scheduler had not thought of it: then that CPU was lost, to all the threads that could have had it together.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::analyze::timeline::{ThreadIndex, Timelines, beginning};
use crate::event::{LeftCpu, Nanos};
use crate::record::reader::SliceRow;

/// What was lost behind each slice.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    /// In nanoseconds, by the place of the slice among all.
    lost: Vec<u32>,
    /// Losses that do not fit in there.
    large: HashMap<u32, Nanos>,
}

impl Contention {
    pub(super) fn new(timelines: &Timelines, cpus: u32) -> Contention {
        let mut sweep = Sweep::new(timelines, cpus);
        let mut contention = Contention {
            lost: vec![0; timelines.slice_count()],
            large: HashMap::new(),
        };
        // What a thread that could run since then would have lost by then.
        let mut before: HashMap<u32, f64> = HashMap::new();
        while let Some(event) = sweep.next() {
            match event.transition {
                Transition::StartsWaiting => {
                    before.insert(event.slice, sweep.loss.at(event.at));
                }
                Transition::StopsWaiting => {
                    let sum = sweep.loss.at(event.at) - before.remove(&event.slice).unwrap_or_default();
                    contention.note(event.slice, Nanos(sum.round().max(0.0) as u64));
                }
                Transition::StartsRunning | Transition::StopsRunning => {}
            }
        }
        contention
    }

    /// What the thread of a slice lost behind it, while it could run.
    pub(super) fn lost(&self, slice: u32) -> Nanos {
        match self.lost[slice as usize] {
            u32::MAX => self.large.get(&slice).copied().unwrap_or_default(),
            lost => Nanos(u64::from(lost)),
        }
    }

    fn note(&mut self, slice: u32, lost: Nanos) {
        self.lost[slice as usize] = u32::try_from(lost.0).unwrap_or(u32::MAX);
        if self.lost[slice as usize] == u32::MAX {
            self.large.insert(slice, lost);
        }
    }
}

/// The loss of one thread that could run all the time: as the sum up to its last change and its rate from there.
#[derive(Clone, Copy, Debug, Default)]
struct Loss {
    at: Nanos,
    /// Nanoseconds lost up to there.
    sum: f64,
    /// Nanoseconds lost in each nanosecond from there: 0 to 1.
    rate: f64,
}

impl Loss {
    fn at(&self, at: Nanos) -> f64 {
        self.sum + self.rate * at.since(self.at).0 as f64
    }

    fn change(&mut self, at: Nanos, rate: f64) {
        if rate != self.rate {
            let sum = self.at(at);
            *self = Loss { at, sum, rate };
        }
    }
}

/// What begins or ends. At one instant, things happen in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Transition {
    StopsRunning,
    StartsRunning,
    StopsWaiting,
    StartsWaiting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    at: Nanos,
    transition: Transition,
    thread: ThreadIndex,
    slice: u32,
}

/// Goes through the slices of all threads by time. Only those of the present are at hand: all events of a recording at once would take
/// more memory than its slices.
struct Sweep<'t> {
    timelines: &'t Timelines,
    cpus: i64,
    /// Threads that have not begun, the last to begin first.
    to_come: Vec<(Nanos, ThreadIndex)>,
    coming: BinaryHeap<Reverse<Event>>,
    /// The place among its own slices of the next slice of each thread.
    next: Vec<u32>,
    running: i64,
    waiting: i64,
    loss: Loss,
}

impl Sweep<'_> {
    fn new(timelines: &Timelines, cpus: u32) -> Sweep<'_> {
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let begin = |thread| Some((beginning(&timelines.slices(thread).get(0)?), thread));
        let mut to_come: Vec<(Nanos, ThreadIndex)> = threads.filter_map(begin).collect();
        to_come.sort_unstable_by_key(|first| Reverse(*first));
        Sweep {
            timelines,
            cpus: i64::from(cpus),
            to_come,
            coming: BinaryHeap::new(),
            next: vec![0; timelines.threads.len()],
            running: 0,
            waiting: 0,
            loss: Loss::default(),
        }
    }

    fn next(&mut self) -> Option<Event> {
        let is_due = |sweep: &Self| {
            let (at, _) = sweep.to_come.last()?;
            let is_next = sweep.coming.peek().is_none_or(|Reverse(event)| *at <= event.at);
            is_next.then_some(())
        };
        while is_due(self).is_some() {
            if let Some((_, thread)) = self.to_come.pop() {
                self.open(thread);
            }
        }
        let Reverse(event) = self.coming.pop()?;
        match event.transition {
            Transition::StopsRunning => self.running -= 1,
            Transition::StartsRunning => self.running += 1,
            Transition::StopsWaiting => self.waiting -= 1,
            Transition::StartsWaiting => self.waiting += 1,
        }
        let free = (self.cpus - self.running).clamp(0, self.waiting.max(0));
        let rate = if self.waiting > 0 {
            free as f64 / self.waiting as f64
        } else {
            0.0
        };
        self.loss.change(event.at, rate);
        // Clocks of two CPUs differ: what follows a slice may begin a little before that has ended.
        let opens_next =
            self.timelines.slices(event.thread).indices().start + self.next[event.thread as usize] == event.slice + 1;
        if opens_next && event.transition != Transition::StartsRunning {
            self.open(event.thread);
        }
        Some(event)
    }

    /// Takes up a thread's next slice in which anything begins.
    fn open(&mut self, thread: ThreadIndex) {
        let slices = self.timelines.slices(thread);
        while let Some(slice) = slices.get(self.next[thread as usize] as usize) {
            let index = slices.indices().start + self.next[thread as usize];
            self.next[thread as usize] += 1;
            let ran = slice.on_span.is_some_and(|span| span.0 > 0);
            let ran = ran.then(|| (beginning(&slice), slice.off));
            let waited = runnable(&slice).filter(|(from, to)| from < to);
            let mut push = |at, transition| {
                self.coming.push(Reverse(Event {
                    at,
                    transition,
                    thread,
                    slice: index,
                }));
            };
            if let Some((from, to)) = ran {
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

/// When, after a slice, its thread could run but had no CPU.
pub(in crate::analyze) fn runnable(slice: &SliceRow) -> Option<(Nanos, Nanos)> {
    let off_span = slice.off_span?;
    let blocked = match slice.reason {
        LeftCpu::Ended => return None,
        LeftCpu::Created | LeftCpu::Preempted => Nanos(0),
        _ => slice.wake_span.unwrap_or(off_span).min(off_span),
    };
    Some((Nanos(slice.off.0 + blocked.0), Nanos(slice.off.0 + off_span.0)))
}
