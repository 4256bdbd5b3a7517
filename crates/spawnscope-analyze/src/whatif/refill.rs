//! Models caches that a thread loses during a pause and refills in the work that follows. Without the pause that work is shorter: the clock
//! rate is the same, but each touched line has to come from memory once.

use std::mem;

use spawnscope_data::event::Nanos;

/// Time constant of refilling, in nanoseconds of work: after this much work, 1 - 1/e of the lost cache contents is fetched again. On an AMD
/// EPYC under a hypervisor, a fork and exit of 0.24 ms took 0.19 ms longer after a pause of 5 ms, and a vfork, exec and exit of 0.74 ms
/// took 0.33 ms longer. A loop that used only registers took no longer.
const FILLED_IN: f64 = 780_000.0;
/// Time constant of losing caches, in nanoseconds of pause. The fork and exit above took 0.09, 0.15, 0.19 and 0.21 ms longer after pauses
/// of 1, 2, 5 and 10 ms.
const LOST_IN: f64 = 1_600_000.0;
/// Upper limit of the share of work that is refilling.
const MAX_SHARE_OF_WORK: f64 = 0.7;
/// Relative uncertainty of the computed saving.
const UNCERTAINTY: f64 = 0.25;

/// Refill time after a pause that is long enough to lose everything, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refill(f64);

impl Refill {
    /// Computes the refill from the duration of the same work without and after a pause.
    #[must_use]
    pub fn measured(warm: f64, cold: f64, pause: Nanos) -> Refill {
        let share = part(cold, FILLED_IN) * part(pause.0 as f64, LOST_IN);
        Refill(((cold - warm) / share).clamp(0.0, FILLED_IN * MAX_SHARE_OF_WORK))
    }

    /// Returns what a pause costs the work after it, if that is long enough.
    fn after(self, pause: Nanos) -> f64 {
        self.0 * part(pause.0 as f64, LOST_IN)
    }
}

/// The caches of a thread since a removed pause: how much of them is lost, and how much the work since then has fetched again.
#[derive(Clone, Debug)]
pub(super) struct CacheState {
    refill: Refill,
    /// Cost of that pause, and the work done since.
    lost: f64,
    worked: f64,
    /// By how much work became shorter, in order of time.
    savings: Vec<f64>,
}

impl CacheState {
    pub(super) fn new(refill: Refill) -> CacheState {
        CacheState {
            refill,
            lost: 0.0,
            worked: 0.0,
            savings: Vec::new(),
        }
    }

    /// Notes a removed pause.
    pub(super) fn remove_pause(&mut self, pause: Nanos) {
        let still_lost = self.lost * (1.0 - part(self.worked, FILLED_IN));
        self.lost = self.refill.after(pause).max(still_lost);
        self.worked = 0.0;
    }

    /// Notes a pause that stays.
    pub(super) fn keep_pause(&mut self) {
        self.lost = 0.0;
    }

    /// Returns the duration of the next stretch of work without the pause.
    pub(super) fn shorten(&mut self, work: Nanos) -> Nanos {
        if self.lost == 0.0 {
            return work;
        }
        let before = part(self.worked, FILLED_IN);
        self.worked += work.0 as f64;
        let fetched = self.lost * (part(self.worked, FILLED_IN) - before);
        let saved = fetched.min(work.0 as f64 * MAX_SHARE_OF_WORK);
        self.savings.push(saved);
        Nanos((work.0 as f64 - saved).round() as u64)
    }

    /// Takes out by how much work became shorter.
    pub(super) fn take_savings(&mut self) -> Vec<f64> {
        mem::take(&mut self.savings)
    }
}

/// Returns the uncertainty of the time by which work became shorter.
pub(super) fn uncertainty_of(saved: f64) -> f64 {
    saved * UNCERTAINTY
}

/// Returns the completed share of an exponential process after this time.
fn part(time: f64, constant: f64) -> f64 {
    1.0 - (-time / constant).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Nanos = Nanos(3_000_000);

    fn after(pause: Nanos, refill: Refill) -> CacheState {
        let mut cache = CacheState::new(refill);
        cache.remove_pause(pause);
        cache
    }

    #[test]
    fn the_measured_work_comes_out_as_it_was_without_the_pause() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert_eq!(after(PAUSE, refill).shorten(Nanos(430_000)), Nanos(240_000));
        let mut cache = after(PAUSE, refill);
        let halves = cache.shorten(Nanos(215_000)).0 + cache.shorten(Nanos(215_000)).0;
        assert!(halves.abs_diff(240_000) <= 1, "{halves}");
    }

    #[test]
    fn a_short_pause_loses_little_and_much_work_is_hardly_shorter() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert!(refill.after(Nanos(20_000)) < 10_000.0);
        let long = after(PAUSE, refill).shorten(Nanos(100_000_000));
        assert!(long > Nanos(99_000_000) && long < Nanos(100_000_000), "{long:?}");
    }

    #[test]
    fn a_short_pause_behind_a_long_one_keeps_what_that_lost() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        let (mut one, mut two) = (after(PAUSE, refill), after(PAUSE, refill));
        two.remove_pause(Nanos(1_000));
        assert_eq!(one.shorten(Nanos(100_000)), two.shorten(Nanos(100_000)));
        one.keep_pause();
        assert_eq!(one.shorten(Nanos(100_000)), Nanos(100_000));
        assert!(uncertainty_of(two.take_savings().iter().sum()) > 0.0);
    }

    #[test]
    fn work_that_was_no_slower_stays() {
        let refill = Refill::measured(240_000.0, 230_000.0, PAUSE);
        assert_eq!(after(PAUSE, refill).shorten(Nanos(50_000)), Nanos(50_000));
    }
}
