//! When a new process would have got a CPU without the tracer, which stops it and its creator.

use spawnscope_data::event::{Nanos, Pid};

use super::counters::{Counters, counters_of};

/// A wait for a CPU that seems to be longer is looked up, which takes as long as a short one. The
/// process may have slept instead.
const MAX_ESTIMATE: Nanos = Nanos(200_000);

/// The first stop of a new process. The process has waited for a CPU until this stop, and waits
/// again when it is resumed, since its creator, which was stopped too, may have got the only CPU.
/// Without the tracer, both would be a single wait.
#[derive(Debug)]
pub(super) struct FirstStop {
    /// When the process was created: when its creator stopped, which follows the creation.
    pub(super) created: Nanos,
}

impl FirstStop {
    /// Returns when the process would have got a CPU without the tracer. It is at its second stop,
    /// since `second`; the first one took `first`, if that is known. `at_first_call`: this stop is
    /// its first system call. In that case, all its time in the run queue counts, since its
    /// creator, which is resumed after it, may have preempted it. Otherwise returns `None` if it
    /// was in the run queue more than once.
    pub(super) fn first_run(
        &self,
        process: Pid,
        second: Nanos,
        first: Option<Nanos>,
        ran: Option<Nanos>,
        at_first_call: bool,
    ) -> Option<Nanos> {
        let estimate = first.and_then(|first| self.estimate(second, first, ran?));
        let latest = Nanos(second.0.saturating_sub(first.unwrap_or_default().0));
        estimate.or_else(|| self.looked_up(&counters_of(process)?, at_first_call, latest))
    }

    /// The process has either run or waited, or was stopped.
    fn estimate(&self, second: Nanos, first: Nanos, ran: Nanos) -> Option<Nanos> {
        let waited = second.since(self.created).since(first).since(ran);
        (waited <= MAX_ESTIMATE).then_some(Nanos(self.created.0 + waited.0))
    }

    /// The first stop lies before the second one: `latest` is when it began at the latest. On a
    /// busy machine, the tracer sees the creation late, and the process has waited since before
    /// that.
    fn looked_up(&self, now: &Counters, at_first_call: bool, latest: Nanos) -> Option<Nanos> {
        let first_run = Nanos(self.created.0 + now.delayed).min(latest.max(self.created));
        (at_first_call || now.arrivals == 2).then_some(first_run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_follows_the_waits_before_and_after_the_first_stop() {
        let first = FirstStop { created: Nanos(4_800_000) };
        let second = |waited: u64| first.estimate(Nanos(5_000_000 + waited), Nanos(120_000), Nanos(80_000));
        assert_eq!(second(70_000), Some(Nanos(4_870_000)));
        assert_eq!(second(1_200_000), None, "looked up");
        let counters = |arrivals| Counters { at: Nanos(9_000_000), ran: 30_000, delayed: 1_200_000, arrivals };
        let looked_up = |arrivals, at_call, latest| first.looked_up(&counters(arrivals), at_call, Nanos(latest));
        assert_eq!(looked_up(2, false, 9_000_000), Some(Nanos(6_000_000)));
        assert_eq!(looked_up(3, false, 9_000_000), None);
        assert_eq!(looked_up(3, true, 9_000_000), Some(Nanos(6_000_000)));
        assert_eq!(looked_up(2, false, 5_500_000), Some(Nanos(5_500_000)), "the creation was seen late");
        assert_eq!(looked_up(2, false, 4_700_000), Some(Nanos(4_800_000)), "not before the creation");
    }
}
