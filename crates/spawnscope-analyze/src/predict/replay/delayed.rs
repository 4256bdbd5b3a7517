//! Runnable threads that must lose time before they get a CPU, because they lost it in the
//! recording: CPUs that no recorded thread used were not available to them. All waiting threads
//! share the time of the unused CPUs. One clock counts how much each of them has lost.
//!
//! Two simpler models were tried. With each thread's own wait added to its program, parallel runs
//! were 7 % too short, because other threads used that CPU in the replay. With a CPU occupied for
//! each thread's share, pipelines were 3 to 6 % too long, and parallel runs on a busy machine 8 %.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::model::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

#[derive(Debug, Default)]
pub(super) struct DelayedThreads {
    /// The threads, ordered by the clock value at which each has lost all the time that it must
    /// lose.
    waiting: BinaryHeap<Reverse<(u64, ThreadIndex)>>,
    /// Nanoseconds that each thread has lost since the start.
    clock: u64,
    advanced: Nanos,
    /// Number of unused CPUs since then.
    free: u64,
    /// When the first thread will have lost all its time, according to the last forecast.
    announced: Option<Nanos>,
    pub(super) forecast: Forecast,
}

/// The number of a forecast. Only the last forecast is valid.
pub(super) type Forecast = u64;

impl DelayedThreads {
    pub(super) fn push(&mut self, thread: ThreadIndex, span: Nanos) {
        self.waiting.push(Reverse((self.clock.saturating_add(span.0), thread)));
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        let waiting = self.waiting.len() as u64;
        let passed = now.since(self.advanced).0;
        self.clock = self.clock.saturating_add(if self.free >= waiting {
            passed
        } else {
            // Each has lost at most the time that has passed.
            (u128::from(passed) * u128::from(self.free) / u128::from(waiting)) as u64
        });
        self.advanced = now;
    }

    /// Sets the number of unused CPUs from now on. Returns a forecast of when the first thread will
    /// have lost all its time, unless the last forecast is still valid.
    pub(super) fn set_free_cpus(&mut self, now: Nanos, free: u64) -> Option<(Nanos, Forecast)> {
        let waiting = self.waiting.len() as u64;
        self.free = free;
        let first = self.waiting.peek().filter(|_| free > 0);
        let at = first.map(|Reverse((target, _))| {
            let left = target.saturating_sub(self.clock);
            let by_all = u128::from(left) * u128::from(waiting);
            let span =
                if free >= waiting { left } else { u64::try_from(by_all.div_ceil(free.into())).unwrap_or(u64::MAX) };
            Nanos(now.0.saturating_add(span))
        });
        if at == self.announced {
            return None;
        }
        self.announced = at;
        self.forecast += 1;
        Some((at?, self.forecast))
    }

    pub(super) fn pop(&mut self) -> Option<ThreadIndex> {
        let Reverse((target, thread)) = *self.waiting.peek()?;
        if target > self.clock {
            return None;
        }
        self.waiting.pop();
        self.announced = None;
        Some(thread)
    }
}
