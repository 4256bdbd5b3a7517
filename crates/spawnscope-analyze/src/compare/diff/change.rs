//! A number before and after, and whether it changed. Counts are compared exactly, times by the
//! confidence interval of their difference.

use crate::model::phases::Phase;
use spawnscope_data::statistics::{Interval, Resamples, chance, mean};

/// A count over the runs of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub low: u64,
    /// The median; the lower middle one for an even number of runs.
    pub median: u64,
    pub high: u64,
}

impl Count {
    pub fn of(mut counts: Vec<u64>) -> Count {
        counts.sort_unstable();
        let (Some(low), Some(high)) = (counts.first(), counts.last()) else { return Count::default() };
        Count { low: *low, median: counts[(counts.len() - 1) / 2], high: *high }
    }

    pub fn is_exact(self) -> bool {
        self.low == self.high
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountChange {
    pub before: Count,
    pub after: Count,
}

impl CountChange {
    /// Whether all runs after have a larger count than all runs before, or all have a smaller one.
    pub fn is_change(&self) -> bool {
        self.before.high < self.after.low || self.after.high < self.before.low
    }

    pub fn difference(&self) -> i64 {
        self.after.median.cast_signed() - self.before.median.cast_signed()
    }
}

/// A time before and after, as means over the runs in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeChange {
    /// The mean of the older side. `None` if the time is unknown in any run.
    pub before: Option<f64>,
    /// The mean of the newer side. `None` if the time is unknown in any run.
    pub after: Option<f64>,
    /// The difference. `None` if a side has only one run, because a change then cannot be
    /// distinguished from noise.
    pub difference: Option<Interval>,
    /// The probability of so large a difference by chance. `None` like `difference`.
    pub(super) chance: Option<f64>,
    /// Whether the difference is noise although its interval excludes zero, because it is one of
    /// many that were compared.
    pub(super) is_one_of_many: bool,
}

impl TimeChange {
    pub(super) fn of(resamples: &Resamples, before: &[Option<f64>], after: &[Option<f64>]) -> TimeChange {
        let [before, after] = [before, after].map(|values| values.iter().copied().collect::<Option<Vec<f64>>>());
        let sides = before.as_deref().zip(after.as_deref());
        TimeChange {
            difference: sides.and_then(|(before, after)| resamples.difference(before, after)),
            chance: sides.and_then(|(before, after)| chance(before, after)),
            is_one_of_many: false,
            before: before.map(|values| mean(&values)),
            after: after.map(|values| mean(&values)),
        }
    }

    /// Returns the difference of the means. `None` if a time is unknown.
    pub fn value(&self) -> Option<f64> {
        Some(self.after? - self.before?)
    }

    /// Whether the difference exceeds the noise between runs. `None` if a side has only one run.
    pub fn is_change(&self) -> Option<bool> {
        self.difference.map(|difference| !self.is_one_of_many && !difference.contains_zero())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    pub tax: TimeChange,
    pub critical: TimeChange,
    pub phases: Vec<(Phase, TimeChange)>,
}
