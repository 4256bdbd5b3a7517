//! Decides how often the ring buffers are read. Each wake-up of the reader takes time from the command, mainly because the reader then
//! occupies the idle CPU on which the kernel would have started a new process. While few programs are executed, the reader runs as soon as
//! there are records, and finds the arguments of almost all programs in /proc. While many programs are executed, it sleeps between rounds,
//! and reads arguments from copied stacks.

use std::time::{Duration, Instant};

/// Minimum time between two rounds, so that context switches in quick succession do not each wake the reader.
pub(super) const MIN_INTERVAL: Duration = Duration::from_micros(200);

/// Time over which the rate of execs is measured.
const RATE_INTERVAL: Duration = Duration::from_millis(100);
/// The reader sleeps if there were at least this many execs in that time. At 500 execs a second, the wake-ups of a reader that does not sleep
/// take about 5 % of the command's time.
const MIN_EXECS_TO_SLEEP: u32 = 50;

/// Minimum time between two rounds while there are many execs.
const MIN_SLEEP: Duration = Duration::from_millis(1);
/// Maximum time between two rounds while there are many execs, used if the ring buffers stay almost empty.
const MAX_SLEEP: Duration = Duration::from_millis(40);

/// The time between rounds, and the measurement that determines it.
#[derive(Debug)]
pub(super) struct Pace {
    /// Whether stacks can be copied; otherwise the reader never sleeps.
    can_sleep: bool,
    sleep: Option<Duration>,
    /// When the current measurement of the rate began.
    since: Instant,
    /// Number of execs since then.
    execs: u32,
}

impl Pace {
    pub(super) fn new(can_sleep: bool) -> Pace {
        Pace { can_sleep, sleep: None, since: Instant::now(), execs: 0 }
    }

    /// Returns how long to sleep before the next round, even if there are records; `None` to read as soon as there are records.
    pub(super) fn sleep(&self) -> Option<Duration> {
        self.sleep
    }

    /// Adjusts the pace after a round. `execs`: number of execs in the round. `filled`: how full the fullest ring buffer was (0 to 1). Returns
    /// whether the reader starts or stops sleeping.
    pub(super) fn adjust(&mut self, now: Instant, execs: u32, filled: f64) -> bool {
        self.execs += execs;
        self.sleep = self.sleep.map(|sleep| match filled {
            0.25.. => (sleep / 2).max(MIN_SLEEP),
            ..0.06 => (sleep * 2).min(MAX_SLEEP),
            _ => sleep,
        });
        if now.duration_since(self.since) < RATE_INTERVAL {
            return false;
        }
        let was_asleep = self.sleep.is_some();
        // Half as many execs suffice to go on sleeping, so that the pace does not change all the time.
        let divisor = if was_asleep { 2 } else { 1 };
        let are_many = self.can_sleep && self.execs >= MIN_EXECS_TO_SLEEP / divisor;
        (self.since, self.execs) = (now, 0);
        self.sleep = are_many.then(|| self.sleep.unwrap_or(MIN_SLEEP * 4));
        self.sleep.is_some() != was_asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reader_sleeps_while_there_are_many_execs() {
        let mut pace = Pace::new(true);
        let start = Instant::now();
        let ms = Duration::from_millis;
        assert!(!pace.adjust(start + ms(10), 200, 0.1), "the rate is not known yet");
        assert!(pace.adjust(start + ms(150), 0, 0.1));
        assert_eq!(pace.sleep(), Some(MIN_SLEEP * 4));
        assert!(!pace.adjust(start + ms(300), MIN_EXECS_TO_SLEEP / 2, 0.1), "half as many");
        assert!(pace.adjust(start + ms(450), MIN_EXECS_TO_SLEEP / 2 - 1, 0.1));
        assert_eq!(pace.sleep(), None);
        assert!(!Pace::new(false).adjust(start + ms(150), 1000, 0.1), "stacks are not copied");
    }

    #[test]
    fn the_sleep_is_longer_the_emptier_the_ring_buffers_are() {
        let mut pace = Pace::new(true);
        let start = Instant::now();
        pace.adjust(start + RATE_INTERVAL, MIN_EXECS_TO_SLEEP, 0.0);
        let mut slept = |filled| {
            pace.adjust(start + RATE_INTERVAL, 0, filled);
            pace.sleep().expect("it sleeps")
        };
        let growing = [0.0; 5].map(&mut slept);
        assert_eq!(growing.last(), Some(&MAX_SLEEP));
        assert_eq!(slept(0.1), MAX_SLEEP);
        assert_eq!(slept(0.5), MAX_SLEEP / 2);
        let shrinking = [1.0; 9].map(slept);
        assert_eq!(shrinking.last(), Some(&MIN_SLEEP));
    }
}
