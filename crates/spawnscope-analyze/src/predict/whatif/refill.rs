//! Models the CPU caches of a thread, which loses their contents during a pause and refills them in
//! the work after it. Without the pause, this work is shorter. The clock rate does not change, but
//! after a pause each cache line must be read from memory once.

use spawnscope_data::event::Nanos;

/// Time constant of refilling, in nanoseconds of work: after this much work, 1 - 1/e of the lost
/// cache contents have been read again. On an AMD EPYC under a hypervisor, a fork and exit of 0.24
/// ms took 0.19 ms longer after a pause of 5 ms, and a vfork, exec and exit of 0.74 ms took 0.33 ms
/// longer. A loop that used only registers took no longer.
const REFILL_NS: f64 = 780_000.0;
/// Time constant of losing cache contents, in nanoseconds of pause. The fork and exit above took
/// 0.09, 0.15, 0.19 and 0.21 ms longer after pauses of 1, 2, 5 and 10 ms.
const LOSS_NS: f64 = 1_600_000.0;
/// Maximum share of work that can be refilling.
const MAX_SHARE_OF_WORK: f64 = 0.7;
pub(super) const UNCERTAINTY: f64 = 0.25;

/// The refill time after a pause in which all cache contents are lost, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Refill(f64);

impl Refill {
    /// Computes the refill time from the durations of the same work without a pause before it
    /// (`warm`) and after a pause (`cold`).
    pub fn measured(warm: f64, cold: f64, pause: Nanos) -> Refill {
        let share = completed_share(cold, REFILL_NS) * completed_share(pause.0 as f64, LOSS_NS);
        Refill(((cold - warm) / share).clamp(0.0, REFILL_NS * MAX_SHARE_OF_WORK))
    }

    /// Returns by how much a pause lengthens the work after it, if this work is long, in
    /// nanoseconds.
    fn after(self, pause: Nanos) -> f64 {
        self.0 * completed_share(pause.0 as f64, LOSS_NS)
    }
}

/// The caches of a thread since the last removed pause: how much of their contents was lost, and
/// how much the work since then has read again.
#[derive(Clone, Debug)]
pub(super) struct CacheState {
    refill: Refill,
    /// By how much the removed pause lengthened the work after it, in nanoseconds.
    lost: f64,
    /// Nanoseconds of work since the removed pause.
    worked: f64,
    /// By how many nanoseconds all stretches of work became shorter.
    pub(super) saved: f64,
}

impl CacheState {
    pub(super) fn new(refill: Refill) -> CacheState {
        CacheState { refill, lost: 0.0, worked: 0.0, saved: 0.0 }
    }

    pub(super) fn remove_pause(&mut self, pause: Nanos) {
        let still_lost = self.lost * (1.0 - completed_share(self.worked, REFILL_NS));
        self.lost = self.refill.after(pause).max(still_lost);
        self.worked = 0.0;
    }

    pub(super) fn keep_pause(&mut self) {
        self.lost = 0.0;
    }

    /// Returns the duration of the next stretch of work without the removed pause.
    pub(super) fn shorten(&mut self, work: Nanos) -> Nanos {
        if self.lost == 0.0 {
            return work;
        }
        let before = completed_share(self.worked, REFILL_NS);
        self.worked += work.0 as f64;
        let fetched = self.lost * (completed_share(self.worked, REFILL_NS) - before);
        let saved = fetched.min(work.0 as f64 * MAX_SHARE_OF_WORK);
        self.saved += saved;
        Nanos((work.0 as f64 - saved).round() as u64)
    }
}

/// Returns the completed share of an exponential process after this time.
fn completed_share(time: f64, constant: f64) -> f64 {
    1.0 - (-time / constant).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Nanos = Nanos(3_000_000);

    fn state_after(pause: Nanos, refill: Refill) -> CacheState {
        let mut cache = CacheState::new(refill);
        cache.remove_pause(pause);
        cache
    }

    #[test]
    fn the_measured_work_takes_its_warm_time_without_the_pause() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert_eq!(state_after(PAUSE, refill).shorten(Nanos(430_000)), Nanos(240_000));
        let mut cache = state_after(PAUSE, refill);
        let halves = cache.shorten(Nanos(215_000)).0 + cache.shorten(Nanos(215_000)).0;
        assert!(halves.abs_diff(240_000) <= 1, "{halves}");
    }

    #[test]
    fn a_short_pause_loses_little_and_long_work_becomes_hardly_shorter() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        assert!(refill.after(Nanos(20_000)) < 10_000.0);
        let long = state_after(PAUSE, refill).shorten(Nanos(100_000_000));
        assert!(long > Nanos(99_000_000) && long < Nanos(100_000_000), "{long:?}");
    }

    #[test]
    fn a_short_pause_after_a_long_one_does_not_reduce_the_loss() {
        let refill = Refill::measured(240_000.0, 430_000.0, PAUSE);
        let (mut one, mut two) = (state_after(PAUSE, refill), state_after(PAUSE, refill));
        two.remove_pause(Nanos(1_000));
        assert_eq!(one.shorten(Nanos(100_000)), two.shorten(Nanos(100_000)));
        one.keep_pause();
        assert_eq!(one.shorten(Nanos(100_000)), Nanos(100_000));
        assert!(two.saved > 0.0);
    }

    #[test]
    fn work_that_was_not_slower_after_a_pause_does_not_change() {
        let refill = Refill::measured(240_000.0, 230_000.0, PAUSE);
        assert_eq!(state_after(PAUSE, refill).shorten(Nanos(50_000)), Nanos(50_000));
    }
}
