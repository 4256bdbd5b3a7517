//! Two reports against each other: what takes longer or shorter now, beyond the noise of both.

use super::harness::Estimate;
use super::outcome::{Outcome, Report, Row, Unit, Value};

/// A measurement that both reports have.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// The experiment.
    pub experiment: String,
    /// The case, in words.
    pub case: String,
    /// The column.
    pub column: String,
    /// What its values are.
    pub unit: Unit,
    /// The older median.
    pub old: f64,
    /// The newer median.
    pub new: f64,
    /// New to old.
    pub ratio: f64,
    /// Of 95 %.
    pub low: f64,
    /// Likewise.
    pub high: f64,
    /// Whether the interval leaves out 1.
    pub beyond_noise: bool,
}

/// Compares what both have: the first measurement of each case, which is what an experiment is about.
#[must_use]
pub fn compare(old: &Report, new: &Report) -> Vec<Change> {
    let mut changes = Vec::new();
    for newer in &new.experiments {
        let Some(older) = old.experiments.iter().find(|older| older.name == newer.name) else {
            continue;
        };
        let Some(column) = newer.columns.iter().find(|column| !column.is_key) else {
            continue;
        };
        for row in &newer.rows {
            let before = older.rows.iter().find(|other| keys(older, other) == keys(newer, row));
            let before = before.and_then(|before| before.get(&column.name).estimate());
            if let (Some(before), Some(after)) = (before, row.get(&column.name).estimate())
                && before.median > 0.0
            {
                let (low, high) = interval(before, after);
                changes.push(Change {
                    experiment: newer.name.clone(),
                    case: label(newer, row),
                    column: column.name.clone(),
                    unit: column.unit,
                    old: before.median,
                    new: after.median,
                    ratio: after.median / before.median,
                    low,
                    high,
                    beyond_noise: low > 1.0 || high < 1.0,
                });
            }
        }
    }
    changes
}

/// Both errors together, as those of independent measurements add up: squares, on a scale of ratios.
fn interval(before: &Estimate, after: &Estimate) -> (f64, f64) {
    let ratio = after.median / before.median;
    let side = |ours: f64, theirs: f64| {
        let (ours, theirs) = ((ours / after.median).ln(), (theirs / before.median).ln());
        (ours * ours + theirs * theirs).sqrt()
    };
    let low = ratio * (-side(after.low, before.high)).exp();
    let high = ratio * side(after.high, before.low).exp();
    (low, high)
}

fn keys<'r>(outcome: &'r Outcome, row: &'r Row) -> Vec<(&'r str, &'r Value)> {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    keys.map(|column| (column.name.as_str(), row.get(&column.name)))
        .collect()
}

/// The keys of a row in words.
#[must_use]
pub fn label(outcome: &Outcome, row: &Row) -> String {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    let words = keys.filter_map(|column| match (row.get(&column.name), column.unit) {
        (Value::Text(text), _) if text.is_empty() => None,
        (Value::Text(text), _) => Some(text.clone()),
        (Value::Number(bytes), Unit::Bytes) => Some(crate::units::bytes(*bytes as u64)),
        (Value::Number(number), _) => Some(format!("{number} {}", column.title)),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimate(median: f64, half: f64) -> Estimate {
        Estimate {
            median,
            low: median - half,
            high: median + half,
            rounds: 10,
        }
    }

    #[test]
    fn a_difference_within_both_noises_is_none() {
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(104.0, 5.0));
        assert!(low < 1.0 && high > 1.0);
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(150.0, 5.0));
        assert!(low > 1.3 && high < 1.7, "{low} {high}");
    }

    proptest! {
        #[test]
        fn the_ratio_lies_in_its_interval(a in 1.0..1e9f64, b in 1.0..1e9f64, x in 0.0..0.9f64, y in 0.0..0.9f64) {
            let (low, high) = interval(&estimate(a, a * x), &estimate(b, b * y));
            prop_assert!(low <= b / a * 1.000_001 && b / a <= high * 1.000_001);
        }
    }
}
