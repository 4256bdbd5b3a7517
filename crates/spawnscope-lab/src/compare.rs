//! Compares two reports: what is slower or faster, beyond the noise of both and beyond the common shift of its experiment.
//! `docs/design/lab.md` has the formula.

use super::common_shift::{self, CommonShift};
use super::conditions::conditions;
use super::harness::Estimate;
use super::outcome::{Column, Outcome, Report, Row, Unit, Value};

/// The result of a comparison.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// Differing conditions; each may be the cause of the changes.
    pub conditions: Vec<String>,
    /// The common shifts of the experiments.
    #[serde(rename = "movements")]
    pub common_shifts: Vec<CommonShift>,
    /// Every measurement that both reports have.
    pub changes: Vec<Change>,
    /// The number of cases that only the newer report has.
    pub unmatched: usize,
    /// What only the older report has.
    pub gone: Vec<Gone>,
}

/// An experiment, a case, or a column of a case that only the older report has.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Gone {
    /// The experiment.
    pub experiment: String,
    /// The description of the case; `None`: all of them.
    pub case: Option<String>,
    /// The column; `None`: all of them.
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
    /// The unit of its values.
    pub unit: Unit,
    /// The older median.
    pub old: f64,
    /// The newer median.
    pub new: f64,
    /// The ratio of new to old.
    pub ratio: f64,
    /// The lower end of the 95 % interval of the ratio.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// Whether the interval excludes 1.
    pub beyond_noise: bool,
    /// Whether it is beyond the noise and stands out from the common shift.
    pub stands_out: bool,
}

impl Change {
    /// The description of the column: its name without the unit, since titles are not unique.
    #[must_use]
    pub fn measure(&self) -> String {
        words_of(&self.column)
    }
}

/// A column's name as words.
#[must_use]
pub fn words_of(column: &str) -> String {
    column.strip_suffix("_ns").unwrap_or(column).replace('_', " ")
}

/// Compares all measurements of the cases that both reports have.
#[must_use]
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let mut comparison = Comparison {
        conditions: conditions(old, new),
        common_shifts: Vec::new(),
        changes: Vec::new(),
        unmatched: 0,
        gone: gone(old, new),
    };
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        let match_of = |row| older.and_then(|older| Some((row, same_case(older, newer, row)?)));
        let matched: Vec<(&Row, &Row)> = newer.rows.iter().filter_map(match_of).collect();
        comparison.unmatched += newer.rows.len() - matched.len();
        for column in compared(newer) {
            let change = |(after, before): &(&Row, &Row)| {
                let estimates = (
                    before.get(&column.name).estimate()?,
                    after.get(&column.name).estimate()?,
                );
                let are_positive = is_positive(before, column) && is_positive(after, column);
                are_positive.then(|| changed(newer, after, (&column.name, column.unit), estimates))
            };
            comparison.changes.extend(matched.iter().filter_map(change));
        }
    }
    comparison.common_shifts = common_shift::judge(&mut comparison.changes);
    comparison
}

/// What the older report measured and the newer did not, or not comparably.
fn gone(old: &Report, new: &Report) -> Vec<Gone> {
    let mut gone = Vec::new();
    for older in old.experiments.iter().filter(|older| !older.rows.is_empty()) {
        let mut add = |case: Option<String>, column: Option<&Column>| {
            gone.push(Gone {
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
            let Some(after) = same_case(newer, older, row) else {
                add(Some(label(older, row)), None);
                continue;
            };
            let is_lost = |column: &&Column| is_positive(row, column) && !is_positive(after, column);
            for column in compared(older).filter(is_lost) {
                add(Some(label(older, row)), Some(column));
            }
        }
    }
    gone
}

/// The columns that are compared. Ratios are left out, because they are computed from other columns.
fn compared(outcome: &Outcome) -> impl Iterator<Item = &Column> {
    let columns = outcome.columns.iter();
    columns.filter(|column| !column.is_key && column.unit != Unit::Ratio)
}

/// Whether the value is positive, so that a ratio can be formed.
fn is_positive(row: &Row, column: &Column) -> bool {
    let found = row.get(&column.name).estimate();
    found.is_some_and(|found| found.median > 0.0)
}

fn changed(
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
        keys: Row(keys
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.clone()))
            .collect()),
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

/// The interval of the ratio: independent errors add up as squares, on a logarithmic scale.
pub(super) fn interval(before: &Estimate, after: &Estimate) -> (f64, f64) {
    let ratio = after.median / before.median;
    let side = |ours: f64, theirs: f64| {
        let (ours, theirs) = ((ours / after.median).ln(), (theirs / before.median).ln());
        (ours * ours + theirs * theirs).sqrt()
    };
    let low = ratio * (-side(after.low, before.high)).exp();
    let high = ratio * side(after.high, before.low).exp();
    (low, high)
}

fn same_case<'r>(older: &'r Outcome, newer: &Outcome, row: &Row) -> Option<&'r Row> {
    older.rows.iter().find(|other| keys(older, other) == keys(newer, row))
}

fn keys<'r>(outcome: &'r Outcome, row: &'r Row) -> Vec<(&'r str, &'r Value)> {
    let keys = outcome.columns.iter().filter(|column| column.is_key);
    keys.map(|column| (column.name.as_str(), row.get(&column.name)))
        .collect()
}

/// A description of the row by its keys.
#[must_use]
pub fn label(outcome: &Outcome, row: &Row) -> String {
    label_of(outcome.columns.iter(), row)
}

/// A description of the row by those of its keys that are in `columns`.
pub(super) fn label_of<'c>(columns: impl Iterator<Item = &'c Column>, row: &Row) -> String {
    let keys = columns.filter(|column| column.is_key);
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
        Estimate {
            median,
            low: median - half,
            high: median + half,
            rounds: 10,
        }
    }

    /// Six sizes, with two measured columns.
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
        Report {
            experiments: vec![outcome],
            ..Report::new(Machine::here(), false)
        }
    }

    #[test]
    fn a_difference_within_both_noises_is_none() {
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(104.0, 5.0));
        assert!(low < 1.0 && high > 1.0);
        let (low, high) = interval(&estimate(100.0, 5.0), &estimate(150.0, 5.0));
        assert!(low > 1.3 && high < 1.7, "{low} {high}");
    }

    #[test]
    fn every_measured_column_of_the_very_same_case_is_compared() {
        let old = report([100.0; 6], 1.0);
        let mut new = report([100.0; 6], 1.0);
        let found = compare(&old, &new);
        assert_eq!(found.changes.len(), 12, "two columns, and no quotients");
        assert_eq!(found.changes[7].keys.get("parent_bytes"), &Value::from(16_000_002));
        assert_eq!((found.unmatched, found.conditions), (0, Vec::new()));
        // Both sizes are shown as 16.0 MB.
        new.experiments[0].rows[0].0[0].1 = Value::from(16_000_900);
        let found = compare(&old, &new);
        assert_eq!((found.changes.len(), found.unmatched), (10, 1));
    }

    #[test]
    fn cases_that_only_the_older_report_has_are_named() {
        let rows = |new: &Report| {
            let found = compare(&report([100.0; 6], 1.0), new).gone;
            found.into_iter().map(|gone| (gone.experiment, gone.case, gone.column))
        };
        let mut new = report([100.0; 6], 1.0);
        assert_eq!(rows(&new).count(), 0);
        // One value is untrusted, one is zero, and one row is missing.
        new.experiments[0].rows[0].0[1].1 = Value::Unknown;
        new.experiments[0].rows[1].0[2].1 = Value::Estimate(estimate(0.0, 0.0));
        new.experiments[0].rows.pop();
        let words = |text: &str| Some(text.to_owned());
        let sizes = || "sizes".to_owned();
        assert_eq!(
            rows(&new).collect::<Vec<_>>(),
            [
                (sizes(), words("16.0 MB"), words("wall_ns")),
                (sizes(), words("16.0 MB"), words("stall_ns")),
                (sizes(), words("16.0 MB"), None),
            ]
        );
        for experiment in ["another", "sizes"] {
            new.experiments[0].name = experiment.to_owned();
            new.experiments[0].rows.clear();
            assert_eq!(rows(&new).collect::<Vec<_>>(), [(sizes(), None, None)]);
        }
    }

    #[test]
    fn the_one_that_changed_stands_out_of_a_machine_that_drifted() {
        let old = report([100.0; 6], 1.0);
        let found = compare(&old, &report([110.0, 112.0, 109.0, 160.0, 111.0, 110.0], 1.0));
        let apart: Vec<bool> = found.changes[..6].iter().map(|change| change.stands_out).collect();
        assert_eq!(apart, [false, false, false, true, false, false]);
        assert!(found.changes.iter().all(|change| change.beyond_noise));
        let of_all = &found.common_shifts[0];
        assert!((1.09..1.12).contains(&of_all.ratio) && of_all.low > 1.0, "{of_all:?}");
    }

    proptest! {
        #[test]
        fn the_ratio_lies_in_its_interval(a in 1.0..1e9f64, b in 1.0..1e9f64, x in 0.0..0.9f64, y in 0.0..0.9f64) {
            let (low, high) = interval(&estimate(a, a * x), &estimate(b, b * y));
            prop_assert!(low <= b / a * 1.000_001 && b / a <= high * 1.000_001);
        }
    }
}
