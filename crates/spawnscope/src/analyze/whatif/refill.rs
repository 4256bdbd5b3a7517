//! Caches that are lost in a pause and filled again in the work behind it. Without the pause that work is shorter: its clock is no
//! slower, but each thing it touches has to come from memory once.

use crate::event::Nanos;

/// With this much work behind a pause, 1 - 1/e of what has to be fetched again has been fetched. On an AMD EPYC under a
/// hypervisor, a fork and exit of 0.24 ms took 0.19 ms longer behind a pause of 5 ms, and a vfork, exec and exit of 0.74 ms took
/// 0.33 ms longer; a loop within registers took no longer at all.
const FILLED_IN: f64 = 780_000.0;
/// With a pause of this length, as much of the caches is lost: the first of those took 0.09, 0.15, 0.19 and 0.21 ms longer behind
/// pauses of 1, 2, 5 and 10 ms.
const LOST_IN: f64 = 1_600_000.0;
/// Of work, no larger share than this is fetching.
const MOST_OF_WORK: f64 = 0.7;
/// What is found this way may be off by such a share of itself.
const UNCERTAINTY: f64 = 0.25;

/// What is to be fetched again after a pause that is long enough to lose all, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refill(f64);

impl Refill {
    /// From the same work without and with a pause before it.
    #[must_use]
    pub fn measured(warm: f64, cold: f64, pause: Nanos) -> Refill {
        let share = part(cold, FILLED_IN) * part(pause.0 as f64, LOST_IN);
        Refill(((cold - warm) / share).clamp(0.0, FILLED_IN * MOST_OF_WORK))
    }

    /// What a pause costs the work behind it, if that is long enough.
    fn after(self, pause: Nanos) -> f64 {
        self.0 * part(pause.0 as f64, LOST_IN)
    }
}

/// The work of a thread since a pause that is left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cold {
    refill: Refill,
    /// What that pause costs, and what of the work behind it is past.
    lost: f64,
    worked: f64,
    /// By how much all work has got shorter.
    saved: f64,
}

impl Cold {
    pub(super) fn new(refill: Refill) -> Cold {
        Cold {
            refill,
            lost: 0.0,
            worked: 0.0,
            saved: 0.0,
        }
    }

    /// A pause is left out.
    pub(super) fn pause(&mut self, pause: Nanos) {
        let still_lost = self.lost * (1.0 - part(self.worked, FILLED_IN));
        self.lost = self.refill.after(pause).max(still_lost);
        self.worked = 0.0;
    }

    /// There is a pause that stays.
    pub(super) fn end(&mut self) {
        self.lost = 0.0;
    }

    /// What the next stretch of work takes without the pause.
    pub(super) fn warm(&mut self, work: Nanos) -> Nanos {
        if self.lost == 0.0 {
            return work;
        }
        let before = part(self.worked, FILLED_IN);
        self.worked += work.0 as f64;
        let fetched = self.lost * (part(self.worked, FILLED_IN) - before);
        let saved = fetched.min(work.0 as f64 * MOST_OF_WORK);
        self.saved += saved;
        Nanos((work.0 as f64 - saved).round() as u64)
    }

    /// Nanoseconds by which all work together may be off.
    pub(super) fn uncertain(&self) -> f64 {
        self.saved * UNCERTAINTY
    }
}

/// How much of something that ends exponentially has happened after this time.
fn part(time: f64, constant: f64) -> f64 {
    1.0 - (-time / constant).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Nanos = Nanos(3_000_000);

    fn after(pause: Nanos, refill: Refill) -> Cold {
        let mut cold = Cold::new(refill);
        cold.pause(pause);
        cold
    }

    #[test]
    fn the_measured_work_comes_out_as_it_was_without_the_pause() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert_eq!(after(PAUSE, refill).warm(Nanos(430_000)), Nanos(240_000));
        let mut cold = after(PAUSE, refill);
        let halves = cold.warm(Nanos(215_000)).0 + cold.warm(Nanos(215_000)).0;
        assert!(halves.abs_diff(240_000) <= 1, "{halves}");
    }

    #[test]
    fn a_short_pause_loses_little_and_much_work_is_hardly_shorter() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert!(refill.after(Nanos(20_000)) < 10_000.0);
        let long = after(PAUSE, refill).warm(Nanos(100_000_000));
        assert!(long > Nanos(99_000_000) && long < Nanos(100_000_000), "{long:?}");
    }

    #[test]
    fn a_short_pause_behind_a_long_one_keeps_what_that_lost() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        let (mut one, mut two) = (after(PAUSE, refill), after(PAUSE, refill));
        two.pause(Nanos(1_000));
        assert_eq!(one.warm(Nanos(100_000)), two.warm(Nanos(100_000)));
        one.end();
        assert_eq!(one.warm(Nanos(100_000)), Nanos(100_000));
        assert!(two.uncertain() > 0.0);
    }

    #[test]
    fn work_that_was_no_slower_stays() {
        let refill = Refill::measured(240_000.0, 230_000.0, PAUSE);
        assert_eq!(after(PAUSE, refill).warm(Nanos(50_000)), Nanos(50_000));
    }
}
