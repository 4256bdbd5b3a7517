//! The clock of a log. Each stamp becomes an instant; the origin is arbitrary unless the log has
//! `-ttt`. Instants never decrease: the clock of the machine may have been set back, and days begin
//! anew at midnight.

use spawnscope_data::event::Nanos;

use super::line::Stamp;
use crate::text::{DAY_NS, MAX_STEP_NS};

/// The kind of time that a log has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    #[default]
    None,
    Unix,
    OfDay,
    Relative,
}

/// Converts the stamps of one file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    pub form: TimeForm,
    /// The last instant.
    last: u64,
    /// What is added to a stamp.
    offset: u64,
    /// Whether a stamp had a fraction of a second.
    pub has_fractions: bool,
    /// The end of the last call, if stamps are whole seconds.
    passed: u64,
}

impl Clock {
    /// Returns the instant of a stamp. `None` if it cannot belong to this log.
    pub fn at(&mut self, stamp: Option<Stamp>) -> Option<Nanos> {
        let Some(stamp) = stamp else {
            return Some(self.now());
        };
        let form = match stamp {
            Stamp::Unix(_) => TimeForm::Unix,
            Stamp::OfDay(_) => TimeForm::OfDay,
            Stamp::Since(_) => TimeForm::Relative,
        };
        let is_first = self.form == TimeForm::None;
        if !is_first && form != self.form {
            return None;
        }
        let now = match stamp {
            Stamp::Since(span) => self.last.checked_add(span)?,
            Stamp::Unix(at) | Stamp::OfDay(at) => at.checked_add(self.offset)?,
        };
        if !is_first {
            let is_next_day = form == TimeForm::OfDay && now.saturating_add(DAY_NS / 2) < self.last;
            let step = if is_next_day { DAY_NS } else { self.last.saturating_sub(now) };
            if step > MAX_STEP_NS || now.saturating_sub(self.last) > MAX_STEP_NS {
                return None;
            }
            self.offset += step;
            self.last = (now + step).max(self.last);
        } else {
            self.last = now;
        }
        let (Stamp::Unix(written) | Stamp::OfDay(written) | Stamp::Since(written)) = stamp;
        self.has_fractions |= !written.is_multiple_of(1_000_000_000);
        self.form = form;
        Some(self.now())
    }

    /// Lets no later line be before the end of a call, which took this long. Only stamps without
    /// fractions (`-t -T`) need that: a line is written when its call has returned.
    pub fn pass(&mut self, duration: u64) {
        self.passed = self.now().0.saturating_add(duration.min(MAX_STEP_NS));
    }

    /// Lets the times of a file that begins after midnight follow those of a file that begins, at
    /// `latest`, before it. `first`: the time of its first line.
    pub fn begin_on_day_of(&mut self, first: &mut Nanos, latest: Nanos) {
        if first.0 + DAY_NS / 2 < latest.0 {
            self.offset += DAY_NS;
            first.0 += DAY_NS;
        }
    }

    /// The last instant.
    pub fn now(&self) -> Nanos {
        Nanos(self.last.max(self.passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(stamps: &[Stamp]) -> Vec<Option<u64>> {
        let mut clock = Clock::default();
        stamps.iter().map(|stamp| clock.at(Some(*stamp)).map(|at| at.0)).collect()
    }

    #[test]
    fn relative_times_are_added_up() {
        assert_eq!(instants(&[Stamp::Since(5), Stamp::Since(0), Stamp::Since(7)]), [Some(5), Some(5), Some(12)]);
    }

    #[test]
    fn days_begin_anew_at_midnight() {
        let before = DAY_NS - 10;
        let found = instants(&[Stamp::OfDay(before), Stamp::OfDay(5), Stamp::OfDay(6)]);
        assert_eq!(found, [before, DAY_NS + 5, DAY_NS + 6].map(Some));
    }

    #[test]
    fn a_clock_that_is_set_back_goes_on() {
        let found = instants(&[Stamp::Unix(1_000), Stamp::Unix(400), Stamp::Unix(410)]);
        assert_eq!(found, [1_000, 1_000, 1_010].map(Some));
    }

    #[test]
    fn durations_order_what_happened_in_one_second() {
        let (mut clock, second) = (Clock::default(), |second: u64| Some(Stamp::OfDay(second * 1_000_000_000)));
        assert_eq!(clock.at(second(5)), Some(Nanos(5_000_000_000)));
        clock.pass(70);
        assert_eq!(clock.at(second(5)), Some(Nanos(5_000_000_070)));
        clock.pass(30);
        assert_eq!(clock.at(second(5)), Some(Nanos(5_000_000_100)));
        assert_eq!(clock.at(second(6)), Some(Nanos(6_000_000_000)));
        assert!(!clock.has_fractions);
    }

    #[test]
    fn stamps_of_torn_lines_are_refused() {
        let first = 1_795_837_965_000_000_000;
        let found = instants(&[Stamp::Unix(first), Stamp::Unix(795_837_965_000_000_000), Stamp::Since(3)]);
        assert_eq!(found, [Some(first), None, None]);
        assert_eq!(instants(&[Stamp::Unix(first), Stamp::Unix(u64::MAX)])[1], None);
    }
}
