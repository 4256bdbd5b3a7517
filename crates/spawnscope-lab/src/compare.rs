//! Compares two reports: finds the cases that are slower or faster, beyond the noise of both
//! reports and beyond the common shift of their experiment. `common_shift` has the rule.

use super::common_shift::{self, CommonShift};
use super::conditions::differing_conditions;
use super::harness::Estimate;
use super::outcome::{Column, Outcome, Report, Row, Unit, Value};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Differing conditions, each of which may have caused the changes.
    pub conditions: Vec<String>,
    /// The common shifts of the experiments.
    #[serde(rename = "movements")]
    pub common_shifts: Vec<CommonShift>,
    /// Every measurement that both reports have.
    pub changes: Vec<Change>,
    /// The number of cases that only the newer report has.
    pub unmatched: usize,
    /// Measurements that only the older report has.
    pub gone: Vec<MissingMeasurement>,
}

/// An experiment, a case, or a column of a case that only the older report has.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct MissingMeasurement {
    /// The experiment.
    pub experiment: String,
    /// The description of the case; `None` for all cases.
    pub case: Option<String>,
    /// The column; `None` for all columns.
    pub column: Option<String>,
}

/// A measurement that both reports have.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// The experiment.
    pub experiment: String,
    /// The description of the case.
    pub case: String,
    /// The keys of the case.
    pub keys: Row,
    /// The column.
    pub column: String,
    /// The unit of the column.
    pub unit: Unit,
    /// The older median.
    pub old: f64,
    /// The newer median.
    pub new: f64,
    /// The ratio of new to old.
    pub ratio: f64,
    /// The lower end of the 95 % interval of the ratio.
    pub low: f64,
    /// The upper end of the 95 % interval of the ratio.
    pub high: f64,
    /// Whether the interval excludes 1.
    pub beyond_noise: bool,
    /// Whether the change is beyond the noise and stands out from the common shift.
    pub stands_out: bool,
}

impl Change {
    /// Returns the column's name as words, without its unit. The title would not be unique.
    #[must_use]
    pub fn measure(&self) -> String {
        column_words(&self.column)
    }
}

/// Returns a column's name as words, without its unit.
#[must_use]
pub fn column_words(column: &str) -> String {
    column.strip_suffix("_ns").unwrap_or(column).replace('_', " ")
}

/// Compares all measurements of the cases that both reports have.
#[must_use]
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let mut comparison = Comparison {
        conditions: differing_conditions(old, new),
        common_shifts: Vec::new(),
        changes: Vec::new(),
        unmatched: 0,
        gone: find_missing(old, new),
    };
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        let matched: Vec<(&Row, &Row)> = newer
            .rows
            .iter()
            .filter_map(|row| older.and_then(|older| Some((row, find_same_case(older, newer, row)?))))
            .collect();
        comparison.unmatched += newer.rows.len() - matched.len();
        for column in compared_columns(newer) {
            comparison.changes.extend(matched.iter().filter_map(|(after, before)| {
                let estimates = (before.get(&column.name).estimate()?, after.get(&column.name).estimate()?);
                let are_positive = is_positive(before, column) && is_positive(after, column);
                are_positive.then(|| change_between(newer, after, (&column.name, column.unit), estimates))
            }));
        }
    }
    comparison.common_shifts = common_shift::find_common_shifts(&mut comparison.changes);
    comparison
}

/// Returns the measurements of the older report that the newer one lacks, or for which it has no comparable value.
fn find_missing(old: &Report, new: &Report) -> Vec<MissingMeasurement> {
    let mut gone = Vec::new();
    for older in old.experiments.iter().filter(|older| !older.rows.is_empty()) {
        let mut add = |case: Option<String>, column: Option<&Column>| {
            gone.push(MissingMeasurement {
                experiment: older.name.clone(),
                case,
                column: column.map(|column| column.name.clone()),
            });
        };
        let newer = new.experiments.iter().find(|newer| newer.name == older.name);
        let Some(newer) = newer.filter(|newer| !newer.rows.is_empty()) else {
            add(None, None);
            continue;
        };
        for row in &older.rows {
            let Some(after) = find_same_case(newer, older, row) else {
                add(Some(label(older, row)), None);
                continue;
            };
            for column in compared_columns(older) {
                if is_positive(row, column) && !is_positive(after, column) {
                    add(Some(label(older, row)), Some(column));
                }
            }
        }
    }
    gone
}

/// Returns the columns that are compared. Ratios are left out, because they are computed from other columns.
fn compared_columns(outcome: &Outcome) -> impl Iterator<Item = &Column> {
    let columns = outcome.columns.iter();
    columns.filter(|column| !column.is_key && column.unit != Unit::Ratio)
}

/// Returns whether the value is positive, so that a ratio can be formed.
fn is_positive(row: &Row, column: &Column) -> bool {
    let found = row.get(&column.name).estimate();
    found.is_some_and(|found| found.median > 0.0)
}

fn change_between(
    outcome: &Outcome,
    row: &Row,
    (column, unit): (&str, Unit),
    (before, after): (&Estimate, &Estimate),
) -> Change {
    let (low, high) = interval(before, after);
    let keys = keys(outcome, row);
    Change {
        experiment: outcome.name.clone(),
        case: label(outcome, row),
        keys: Row(keys.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()),
        column: column.to_owned(),
        unit,
        old: before.median,
        new: after.median,
        ratio: after.median / before.median,
        low,
        high,
        beyond_noise: low > 1.0 || high < 1.0,
        stands_out: false,
    }
}

/// Returns the interval of the ratio. On a logarithmic scale, the squares of independent errors add up.
pub(super) fn interval(before: &Estimate, after: &Estimate) -> (f64, f64) {
    let ratio = after.median / before.median;
    let low = ratio * (-half_width(after.low / after.median, before.high / before.median)).exp();
    let high = ratio * half_width(after.high / after.median, before.low / before.median).exp();
    (low, high)
}

fn half_width(new_ratio: f64, old_ratio: f64) -> f64 {
    let (new, old) = (new_ratio.ln(), old_ratio.ln());
    (new * new + old * old).sqrt()
}

/// Returns the row of `searched` that has the keys of a row of `outcome`.
fn find_same_case<'r>(searched: &'r Outcome, outcome: &Outcome, row: &Row) -> Option<&'r Row> {
    let wanted = keys(outcome, row);
    searched.rows.iter().find(|other| keys(searched, other) == wanted)
}

fn keys<'r>(outcome: &'r Outcome, row: &'r Row) -> Vec<(&'r str, &'r Value)> {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    keys.map(|column| (column.name.as_str(), row.get(&column.name))).collect()
}

/// Returns a description of the row by its keys.
#[must_use]
pub fn label(outcome: &Outcome, row: &Row) -> String {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    let words = keys.filter_map(|column| match (row.get(&column.name), column.unit) {
        (Value::Text(text), _) if text.is_empty() => None,
        (Value::Text(text), _) => Some(text.clone()),
        (Value::Number(bytes), Unit::Bytes) => Some(spawnscope_data::units::bytes(*bytes as u64)),
        (Value::Number(number), _) => Some(format!("{number} {}", column.title)),
        _ => None,
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::machine::Machine;
    use super::super::outcome::{key, measure};
    use super::*;

    fn estimate(median: f64, half: f64) -> Estimate {
        Estimate { median, low: median - half, high: median + half, rounds: 10 }
    }

    /// Returns a report of six sizes, with two measured columns and a ratio.
    fn report(walls: [f64; 6], half: f64) -> Report {
        let columns = vec![
            key("parent_bytes", "parent", Unit::Bytes),
            measure("wall_ns", "wall", Unit::Nanos),
            measure("stall_ns", "stall", Unit::Nanos),
            measure("ratio", "ratio", Unit::Ratio),
        ];
        let mut outcome = Outcome::new("", columns);
        outcome.name = "sizes".to_owned();
        outcome.rows = (1u64..)
            .zip(walls)
            .map(|(number, wall)| {
                let row = [
                    ("parent_bytes", Value::from(16_000_000 + number)),
                    ("wall_ns", Value::Estimate(estimate(wall, half))),
                    ("stall_ns", Value::Estimate(estimate(wall, half))),
                    ("ratio", Value::Estimate(estimate(wall, half))),
                ];
                Row(row.map(|(name, value)| (name.to_owned(), value)).to_vec())
            })
            .collect();
        Report { experiments: vec![outcome], ..Report::new(Machine::read(), false) }
    }

    #[test]
    fn the_interval_contains_1_if_the_difference_is_within_the_noise() {
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(104.0, 5.0));
        assert!(low < 1.0 && high > 1.0);
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(150.0, 5.0));
        assert!(low > 1.3 && high < 1.7, "{low} {high}");
    }

    #[test]
    fn every_measured_column_of_cases_with_equal_keys_is_compared() {
        let old = report([100.0; 6], 1.0);
        let mut new = report([100.0; 6], 1.0);
        let found = compare(&old, &new);
        assert_eq!(found.changes.len(), 12, "two columns, without the ratio");
        assert_eq!(found.changes[7].keys.get("parent_bytes"), &Value::from(16_000_002));
        assert_eq!((found.unmatched, found.conditions), (0, Vec::new()));
        // Both sizes are shown as 16.0 MB.
        new.experiments[0].rows[0].0[0].1 = Value::from(16_000_900);
        let found = compare(&old, &new);
        assert_eq!((found.changes.len(), found.unmatched), (10, 1));
    }

    #[test]
    fn cases_that_only_the_older_report_has_are_named() {
        let old = report([100.0; 6], 1.0);
        let mut new = old.clone();
        assert_eq!(words(&compare(&old, &new).gone), []);
        // One value is unknown, one is zero, and one row is missing.
        new.experiments[0].rows[0].0[1].1 = Value::Unknown;
        new.experiments[0].rows[1].0[2].1 = Value::Estimate(estimate(0.0, 0.0));
        new.experiments[0].rows.pop();
        assert_eq!(
            words(&compare(&old, &new).gone),
            [
                ("sizes", Some("16.0 MB"), Some("wall_ns")),
                ("sizes", Some("16.0 MB"), Some("stall_ns")),
                ("sizes", Some("16.0 MB"), None),
            ]
        );
        for experiment in ["another", "sizes"] {
            new.experiments[0].name = experiment.to_owned();
            new.experiments[0].rows.clear();
            assert_eq!(words(&compare(&old, &new).gone), [("sizes", None, None)]);
        }
    }

    fn words(gone: &[MissingMeasurement]) -> Vec<(&str, Option<&str>, Option<&str>)> {
        gone.iter().map(|gone| (gone.experiment.as_str(), gone.case.as_deref(), gone.column.as_deref())).collect()
    }

    #[test]
    fn a_changed_case_stands_out_from_the_drift_of_the_machine() {
        let old = report([100.0; 6], 1.0);
        let found = compare(&old, &report([110.0, 112.0, 109.0, 160.0, 111.0, 110.0], 1.0));
        let stands_out: Vec<bool> = found.changes[..6].iter().map(|change| change.stands_out).collect();
        assert_eq!(stands_out, [false, false, false, true, false, false]);
        assert!(found.changes.iter().all(|change| change.beyond_noise));
        let shift = &found.common_shifts[0];
        assert!((1.09..1.12).contains(&shift.ratio) && shift.low > 1.0, "{shift:?}");
    }

    proptest! {
        #[test]
        fn the_ratio_lies_in_its_interval(a in 1.0..1e9f64, b in 1.0..1e9f64, x in 0.0..0.9f64, y in 0.0..0.9f64) {
            let (low, high) = interval(&estimate(a, a * x), &estimate(b, b * y));
            prop_assert!(low <= b / a * 1.000_001 && b / a <= high * 1.000_001);
        }
    }
}
