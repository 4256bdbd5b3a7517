//! Threads that take turns on CPUs: how many of their time slices can be simulated at once.
//!
//! Each CPU runs a thread for one time slice, puts it at the back of the run queue, and takes the
//! first thread of the queue. While no step ends and nothing else happens, this repeats: with N
//! CPUs and M threads that run or wait for a CPU, the state after M slices on each CPU is the same,
//! and each thread has had N slices. Both numbers are divided by their greatest common divisor.

use spawnscope_data::event::Nanos;

/// Rounds of turns after which each thread is on the same CPU, or at the same place of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    round: Nanos,
    /// CPU time that each thread gets in a round.
    share: Nanos,
    count: u64,
}

impl Turns {
    /// Returns the rounds of threads that have all CPUs they can use, and of the waiting threads.
    /// `horizon` is the time to the next change of another kind, which must not be skipped.
    pub(super) fn new(slice: Nanos, running: usize, waiting: usize, horizon: Nanos) -> Turns {
        let (running, all) = (running as u64, (running + waiting) as u64);
        let divisor = greatest_common_divisor(running, all).max(1);
        let [round, share] = [all, running].map(|slices| Nanos(slice.0.saturating_mul(slices / divisor)));
        Turns { round, share, count: horizon.0.saturating_sub(1).checked_div(round.0).unwrap_or_default() }
    }

    /// Keeps a thread from getting more CPU time than the rest of its step.
    pub(super) fn limit(&mut self, left: Nanos) {
        self.count = self.count.min(left.0.checked_div(self.share.0).unwrap_or_default());
    }

    /// Returns the time that passes in all skipped rounds, and the CPU time that each thread gets.
    /// `None` if no round can be skipped.
    pub(super) fn skipped(self) -> Option<(Nanos, Nanos)> {
        (self.count > 0).then_some((Nanos(self.count * self.round.0), Nanos(self.count * self.share.0)))
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(running: usize, waiting: usize, horizon: u64, left: u64) -> Option<(u64, u64)> {
        let mut turns = Turns::new(Nanos(10), running, waiting, Nanos(horizon));
        turns.limit(Nanos(left));
        turns.skipped().map(|(passed, used)| (passed.0, used.0))
    }

    #[test]
    fn whole_rounds_before_the_next_change_are_skipped() {
        assert_eq!(skipped(1, 0, u64::MAX, 35), Some((30, 30)), "a thread that is alone");
        assert_eq!(skipped(2, 1, u64::MAX, 45), Some((60, 40)), "3 threads on 2 CPUs");
        assert_eq!(skipped(2, 2, u64::MAX, 45), Some((80, 40)), "2 threads per CPU");
        assert_eq!(skipped(2, 1, 61, 1 << 56), Some((60, 40)));
        assert_eq!(skipped(2, 1, 60, 1 << 56), Some((30, 20)), "the change happens before the turns at the same time");
        assert_eq!(skipped(2, 1, 30, 1 << 56), None);
        assert_eq!(skipped(2, 1, u64::MAX, 19), None);
        assert_eq!(skipped(0, 0, u64::MAX, 19), None);
    }
}
