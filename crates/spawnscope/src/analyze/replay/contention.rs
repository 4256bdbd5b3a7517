//! How much CPU time was lost to a thread that could run but had no CPU. While all CPUs were taken by recorded threads it
//! lost none: such waits the replay finds out by itself. While one was free of them, somebody else had it, or it was on its way
//! out of idle, or the scheduler had not thought of it: then that CPU was lost, to all the threads that could have had it together.

use crate::analyze::timeline::{ThreadIndex, Timelines, beginning};
use crate::event::{LeftCpu, Nanos};
use crate::record::reader::SliceRow;

/// The loss of one thread that could run all the time: where it changes, as the sum up to there and its rate from there.
#[derive(Clone, Debug)]
pub(super) struct Contention {
    changes: Vec<Change>,
}

#[derive(Clone, Copy, Debug)]
struct Change {
    at: Nanos,
    /// Nanoseconds lost up to here.
    sum: f64,
    /// Nanoseconds lost in each nanosecond from here: 0 to 1.
    rate: f64,
}

impl Contention {
    pub(super) fn new(timelines: &Timelines, cpus: u32) -> Contention {
        let mut events = events(timelines);
        events.sort_unstable();
        let (mut running, mut waiting) = (0i64, 0i64);
        let mut changes: Vec<Change> = Vec::new();
        for event in events {
            let at = Nanos(event >> KIND_BITS);
            match event & KIND_MASK {
                STOPS_RUNNING => running -= 1,
                STARTS_RUNNING => running += 1,
                STOPS_WAITING => waiting -= 1,
                _ => waiting += 1,
            }
            let free = (i64::from(cpus) - running).clamp(0, waiting);
            let rate = if waiting > 0 { free as f64 / waiting as f64 } else { 0.0 };
            match changes.last_mut() {
                Some(last) if last.rate == rate => {}
                Some(last) if last.at == at => last.rate = rate,
                Some(last) => {
                    let sum = last.sum + last.rate * at.since(last.at).0 as f64;
                    changes.push(Change { at, sum, rate });
                }
                None => changes.push(Change { at, sum: 0.0, rate }),
            }
        }
        Contention { changes }
    }

    /// What a thread lost that could run from one instant to another.
    pub(super) fn lost(&self, from: Nanos, to: Nanos) -> Nanos {
        Nanos((self.sum_at(to) - self.sum_at(from)).round().max(0.0) as u64)
    }

    fn sum_at(&self, at: Nanos) -> f64 {
        let known = self.changes.partition_point(|change| change.at <= at);
        let last = known.checked_sub(1).map(|last| self.changes[last]);
        last.map_or(0.0, |last| last.sum + last.rate * at.since(last.at).0 as f64)
    }
}

/// An instant with what begins or ends there in its last bits: two million of them are sorted twice as fast as structs.
type Event = u64;
const KIND_BITS: u32 = 2;
const KIND_MASK: u64 = 0b11;
const STOPS_RUNNING: u64 = 0;
const STARTS_RUNNING: u64 = 1;
const STOPS_WAITING: u64 = 2;
const STARTS_WAITING: u64 = 3;

/// Every begin and end of running, and of being able to run without a CPU.
fn events(timelines: &Timelines) -> Vec<Event> {
    let mut events = Vec::new();
    let mut push = |at: Nanos, kind: u64| events.push(at.0 << KIND_BITS | kind);
    for slice in (0..timelines.threads.len() as ThreadIndex).flat_map(|thread| timelines.slices(thread)) {
        if slice.on_span.is_some_and(|span| span.0 > 0) {
            push(beginning(slice), STARTS_RUNNING);
            push(slice.off, STOPS_RUNNING);
        }
        if let Some((from, to)) = runnable(slice).filter(|(from, to)| from < to) {
            push(from, STARTS_WAITING);
            push(to, STOPS_WAITING);
        }
    }
    events
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
