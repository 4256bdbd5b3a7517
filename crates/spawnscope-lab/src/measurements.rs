//! What was measured: values of a row, medians with their intervals, and the rounds of a case.

use serde::{Deserialize, Serialize, Serializer};

use super::LabError;
use spawnscope_data::statistics::median;

/// With fewer rounds, a median has no 95 % interval.
pub const MIN_ROUNDS: usize = 6;

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    Text(String),
    Number(#[serde(serialize_with = "integer_if_exact")] f64),
    Estimate(Estimate),
    /// A value that was not measured, or cannot be trusted.
    Unknown,
}

/// Writes whole numbers as `16`, not `16.0`.
fn integer_if_exact<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    // 2^53: all whole numbers below it are exact.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < MAX_EXACT {
        serializer.serialize_i64(*number as i64)
    } else {
        serializer.serialize_f64(*number)
    }
}

impl Value {
    /// Returns the number of a key, or the median of a measurement.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Estimate(estimate) => Some(estimate.median),
            Value::Text(_) | Value::Unknown => None,
        }
    }

    pub fn estimate(&self) -> Option<&Estimate> {
        match self {
            Value::Estimate(estimate) => Some(estimate),
            _ => None,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Number(number as f64)
    }
}

impl From<Option<Estimate>> for Value {
    fn from(estimate: Option<Estimate>) -> Value {
        estimate.map_or(Value::Unknown, Value::Estimate)
    }
}

/// A median, and an interval that contains it with a probability of at least 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    /// The lower end of the interval; the smallest value if there are too few rounds.
    pub low: f64,
    /// The upper end of the interval; the largest value if there are too few rounds.
    pub high: f64,
    pub rounds: usize,
}

#[cfg(test)]
impl Estimate {
    /// Returns an estimate for tests: `median` ± `half` over `rounds` rounds.
    pub(super) fn for_test(median: f64, half: f64, rounds: usize) -> Estimate {
        Estimate { median, low: median - half, high: median + half, rounds }
    }
}

impl Estimate {
    /// Returns the estimate from one value per round; `None` without rounds.
    pub fn from_values(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let below = droppable_ranks(sorted.len());
        Some(Estimate {
            median: median(sorted.iter().copied())?,
            low: *sorted.get(below)?,
            high: *sorted.get(sorted.len() - 1 - below)?,
            rounds: sorted.len(),
        })
    }

    /// Returns half the interval as a fraction of the median; infinite if the median is zero and
    /// the interval is not.
    pub fn noise(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { half / self.median.abs() }
    }
}

/// Returns how many of the sorted values can be dropped at either end so that the range of the
/// remaining values contains the median with a probability of at least 95 %. This is the sign test,
/// which follows the binomial distribution.
fn droppable_ranks(count: usize) -> usize {
    // The maximum probability that the median lies beyond one given end of the range.
    const MAX_MISSED_AT_ONE_END: f64 = 0.025;
    let mut dropped = 0;
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = probability;
    while sum <= MAX_MISSED_AT_ONE_END && dropped + 1 < count.div_ceil(2) {
        dropped += 1;
        probability *= (count - dropped + 1) as f64 / dropped as f64;
        sum += probability;
    }
    // If the sum exceeds the limit, the last value that was dropped is one too many.
    dropped.saturating_sub(usize::from(sum > MAX_MISSED_AT_ONE_END))
}

#[derive(Debug, Default)]
pub struct Measurements {
    pub keys: Vec<Value>,
    pub rounds: Vec<Vec<f64>>,
    /// The number of launches per round; `None` for a case that does fixed work, whose launches the
    /// harness does not choose.
    pub launches: Option<u32>,
    pub failure: Option<LabError>,
}

impl Measurements {
    pub fn failed(keys: Vec<Value>, failure: LabError) -> Measurements {
        Measurements { keys, failure: Some(failure), ..Measurements::default() }
    }

    pub fn has_results(&self) -> bool {
        self.failure.is_none() && !self.rounds.is_empty()
    }

    pub fn label(&self) -> String {
        let text = self.keys.iter().filter_map(|key| match key {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) if *number >= 1e6 => Some(spawnscope_data::units::bytes(*number as u64)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        text.collect::<Vec<_>>().join(", ")
    }

    pub fn values(&self, column: usize) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.get(column).copied()).collect()
    }

    pub fn estimate(&self, column: usize) -> Option<Estimate> {
        Estimate::from_values(&self.values(column))
    }

    /// Returns the ratio of a column to that of another case, computed round by round; `None` if
    /// the other case's value is zero.
    pub fn ratio(&self, base: &Measurements, column: usize) -> Option<Estimate> {
        let ratios = self.values(column).into_iter().zip(base.values(column)).map(|(value, base)| value / base);
        Estimate::from_values(&ratios.collect::<Vec<_>>())
            .filter(|ratio| ratio.median.is_finite() && ratio.high.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // The number of values to drop at either end, from tables of the binomial distribution.
        for (count, dropped) in [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5), (25, 7), (100, 39)] {
            assert_eq!(droppable_ranks(count), dropped, "{count}");
        }
        let found = Estimate::from_values(&[9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]).unwrap();
        assert_eq!((found.low, found.median, found.high, found.rounds), (2.0, 5.0, 8.0, 9));
        assert_eq!(Estimate::from_values(&[]), None);
    }

    #[test]
    fn ratios_are_computed_within_rounds() {
        let ratio = with_slow_rounds(30.0).ratio(&with_slow_rounds(10.0), 0).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (3.0, 3.0, 3.0));
        assert_eq!(with_slow_rounds(1.0).ratio(&with_slow_rounds(0.0), 0), None);
    }

    /// Returns a case on a machine that is twice as slow in every second round, which does not
    /// affect a ratio.
    fn with_slow_rounds(time: f64) -> Measurements {
        let rounds = (0..8).map(|round| vec![time * f64::from(1 + round % 2)]).collect();
        Measurements { keys: Vec::new(), rounds, launches: None, failure: None }
    }
}
