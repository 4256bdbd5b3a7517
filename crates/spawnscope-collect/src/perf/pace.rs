//! How often the ring buffers are read. Each wake-up of the reader takes time from the command, most of all because the kernel would start a
//! new process on the idle CPU that the reader then occupies. While few programs are executed, the reader runs at once, and /proc has the arguments
//! of almost all of them. While there are many, it sleeps between rounds, and takes arguments from copied stacks.

use std::time::{Duration, Instant};

/// Minimum time between two rounds, so that many context switches do not wake the reader each time.
pub(super) const MIN_INTERVAL: Duration = Duration::from_micros(200);

/// The rate of execs is measured over this time.
const MEASURED: Duration = Duration::from_millis(100);
/// From this many execs in that time on, the reader sleeps. At 500 a second, its wake-ups take about 5 % of the command's time.
const MAX_EXECS: u32 = 50;

/// Limits of the time between two rounds while there are many execs. The longer it is, the more of the ring buffers must be free.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(40);

/// The time between rounds.
#[derive(Debug)]
pub(super) struct Pace {
    /// Whether stacks can be copied; otherwise the reader never sleeps.
    can_sleep: bool,
    sleep: Option<Duration>,
    since: Instant,
    execs: u32,
}

impl Pace {
    pub(super) fn new(can_sleep: bool) -> Pace {
        Pace {
            can_sleep,
            sleep: None,
            since: Instant::now(),
            execs: 0,
        }
    }

    /// How long to sleep until the next round, whatever is in the ring buffers; `None` to read as soon as there is something.
    pub(super) fn sleep(&self) -> Option<Duration> {
        self.sleep
    }

    /// Notes a round, which found this many execs, and the fullest ring buffer full to this share. Returns whether the pace has changed.
    pub(super) fn note(&mut self, now: Instant, execs: u32, filled: f64) -> bool {
        self.execs += execs;
        self.sleep = self.sleep.map(|sleep| match filled {
            0.25.. => (sleep / 2).max(SHORTEST),
            ..0.06 => (sleep * 2).min(LONGEST),
            _ => sleep,
        });
        if now.duration_since(self.since) < MEASURED {
            return false;
        }
        let was_asleep = self.sleep.is_some();
        // Half as many keep it asleep, so that it does not change all the time.
        let are_many = self.can_sleep && self.execs >= if was_asleep { MAX_EXECS / 2 } else { MAX_EXECS };
        (self.since, self.execs) = (now, 0);
        self.sleep = are_many.then(|| self.sleep.unwrap_or(SHORTEST * 4));
        self.sleep.is_some() != was_asleep
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sleeps_while_there_are_many_execs() {
        let mut pace = Pace::new(true);
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        assert!(!pace.note(at(10), 200, 0.1), "too early to know");
        assert!(pace.note(at(150), 0, 0.1));
        assert_eq!(pace.sleep(), Some(SHORTEST * 4));
        assert!(!pace.note(at(300), MAX_EXECS / 2, 0.1), "half as many");
        assert!(pace.note(at(450), MAX_EXECS / 2 - 1, 0.1));
        assert_eq!(pace.sleep(), None);
        assert!(!Pace::new(false).note(at(150), 1000, 0.1), "stacks are not copied");
    }

    #[test]
    fn the_sleep_is_as_long_as_the_ring_buffers_allow() {
        let mut pace = Pace::new(true);
        let start = Instant::now();
        pace.note(start + MEASURED, MAX_EXECS, 0.0);
        let mut slept = |filled| {
            pace.note(start + MEASURED, 0, filled);
            pace.sleep().expect("it sleeps")
        };
        let growing = [0.0; 5].map(&mut slept);
        assert_eq!(growing.last(), Some(&LONGEST));
        assert_eq!(slept(0.1), LONGEST);
        assert_eq!(slept(0.5), LONGEST / 2);
        let shrinking = [1.0; 9].map(slept);
        assert_eq!(shrinking.last(), Some(&SHORTEST));
    }
}
