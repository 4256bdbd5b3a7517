//! How much CPU time was lost to a thread that could run but had no CPU. While all CPUs were taken by recorded threads it
//! lost none: such waits the replay finds out by itself. While one was free of them, somebody else had it, or it was on its way
//! out of idle, or the scheduler had not thought of it: then that CPU was lost, to all the threads that could have had it together.

use crate::analyze::timeline::{ThreadIndex, Timelines};
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
        for (at, more_running, more_waiting) in events {
            running += i64::from(more_running);
            waiting += i64::from(more_waiting);
            let free = (i64::from(cpus) - running).clamp(0, waiting);
            let rate = if waiting > 0 { free as f64 / waiting as f64 } else { 0.0 };
            match changes.last_mut() {
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

/// Every begin and end of running, and of being able to run without a CPU.
fn events(timelines: &Timelines) -> Vec<(Nanos, i8, i8)> {
    let mut events = Vec::new();
    for slice in (0..timelines.threads.len() as ThreadIndex).flat_map(|thread| timelines.slices(thread)) {
        if let Some(span) = slice.on_span.filter(|span| span.0 > 0) {
            events.push((Nanos(slice.off.0.saturating_sub(span.0)), 1, 0));
            events.push((slice.off, -1, 0));
        }
        if let Some((from, to)) = runnable(slice).filter(|(from, to)| from < to) {
            events.push((from, 0, 1));
            events.push((to, 0, -1));
        }
    }
    events
}

/// When, after a slice, its thread could run but had no CPU.
pub(super) fn runnable(slice: &SliceRow) -> Option<(Nanos, Nanos)> {
    let off_span = slice.off_span?;
    let blocked = match slice.reason {
        LeftCpu::Ended => return None,
        LeftCpu::Created | LeftCpu::Preempted => Nanos(0),
        _ => slice.wake_span.unwrap_or(off_span).min(off_span),
    };
    Some((Nanos(slice.off.0 + blocked.0), Nanos(slice.off.0 + off_span.0)))
}
