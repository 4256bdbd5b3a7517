//! Threads that could run but lose time first: CPUs that no thread of the replay uses pass them by, as they did in the
//! recording, and all who wait share what passes. One clock tells how much each of them has lost.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// Those who lose time at this moment.
#[derive(Debug, Default)]
pub(super) struct DelayedThreads {
    /// By what the clock shows when they have lost all of it.
    waiting: BinaryHeap<Reverse<(u64, ThreadIndex)>>,
    /// Nanoseconds that each one has lost since the beginning.
    clock: u64,
    /// When the clock was read last.
    read: Nanos,
    /// CPUs that pass by, since then.
    free: u64,
    /// When the first one has lost all it had to, as told last.
    told: Option<Nanos>,
    forecast: Forecast,
}

/// The number of a forecast: only the last one holds.
pub(super) type Forecast = u64;

impl DelayedThreads {
    /// Adds one that has so much to lose.
    pub(super) fn push(&mut self, thread: ThreadIndex, span: Nanos) {
        self.waiting.push(Reverse((self.clock + span.0, thread)));
    }

    /// Brings the clock up to an instant.
    pub(super) fn advance(&mut self, now: Nanos) {
        let waiting = self.waiting.len() as u64;
        let passed = now.since(self.read).0;
        let lost_by_each = (passed * self.free.min(waiting)).checked_div(waiting);
        self.clock += lost_by_each.unwrap_or_default();
        self.read = now;
    }

    /// From now on so many CPUs pass by; gives when the first of those who wait has lost all it had to, unless that was told.
    pub(super) fn share(&mut self, now: Nanos, free: u64) -> Option<(Nanos, Forecast)> {
        let waiting = self.waiting.len() as u64;
        self.free = free;
        let first = self.waiting.peek().filter(|_| free > 0);
        let at = first.map(|Reverse((target, _))| {
            let left = target.saturating_sub(self.clock);
            Nanos(now.0 + (left * waiting).div_ceil(free.min(waiting)))
        });
        if at == self.told {
            return None;
        }
        self.told = at;
        self.forecast += 1;
        Some((at?, self.forecast))
    }

    /// Whether nothing has changed since a forecast was made.
    pub(super) fn holds(&self, forecast: Forecast) -> bool {
        forecast == self.forecast
    }

    /// Takes one out that has lost all it had to.
    pub(super) fn pop(&mut self) -> Option<ThreadIndex> {
        let Reverse((target, thread)) = *self.waiting.peek()?;
        if target > self.clock {
            return None;
        }
        self.waiting.pop();
        self.told = None;
        Some(thread)
    }
}
