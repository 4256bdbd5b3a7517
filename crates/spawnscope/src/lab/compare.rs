//! Two reports against each other: what takes longer or shorter now, beyond the noise of both and beyond what all cases of its
//! experiment did together. `docs/design/lab.md` has the formula.

use std::fmt::Display;

use super::harness::Estimate;
use super::movement::{self, Movement};
use super::outcome::{Column, Outcome, Report, Row, Unit, Value};

/// What two reports say together.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Comparison {
    /// What else was not the same: each may be the reason of all that follows.
    pub conditions: Vec<String>,
    /// What the cases of an experiment did together.
    pub movements: Vec<Movement>,
    /// Every measurement that both have.
    pub changes: Vec<Change>,
    /// Cases that only the newer has.
    pub unmatched: usize,
}

/// A measurement that both reports have.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Change {
    /// The experiment.
    pub experiment: String,
    /// The case, in words.
    pub case: String,
    /// The case, exactly.
    pub keys: Row,
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
    /// Whether it is beyond the noise and apart from the movement of its experiment.
    pub stands_out: bool,
}

impl Change {
    /// The column in words: its name without the unit, since titles are not unique.
    #[must_use]
    pub fn measure(&self) -> String {
        words_of(&self.column)
    }
}

/// A column's name in words.
#[must_use]
pub fn words_of(column: &str) -> String {
    column.strip_suffix("_ns").unwrap_or(column).replace('_', " ")
}

/// Compares all that was measured of the cases that both have. Ratios are left out: they are quotients of the others.
#[must_use]
pub fn compare(old: &Report, new: &Report) -> Comparison {
    let mut comparison = Comparison {
        conditions: conditions(old, new),
        movements: Vec::new(),
        changes: Vec::new(),
        unmatched: 0,
    };
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        let match_of = |row| older.and_then(|older| Some((row, same_case(older, newer, row)?)));
        let matched: Vec<(&Row, &Row)> = newer.rows.iter().filter_map(match_of).collect();
        comparison.unmatched += newer.rows.len() - matched.len();
        for column in newer
            .columns
            .iter()
            .filter(|column| !column.is_key && column.unit != Unit::Ratio)
        {
            let change = |(after, before): &(&Row, &Row)| {
                let estimates = (
                    before.get(&column.name).estimate()?,
                    after.get(&column.name).estimate()?,
                );
                let is_positive = estimates.0.median > 0.0 && estimates.1.median > 0.0;
                is_positive.then(|| changed(newer, after, (&column.name, column.unit), estimates))
            };
            comparison.changes.extend(matched.iter().filter_map(change));
        }
    }
    comparison.movements = movement::judge(&mut comparison.changes);
    comparison
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

/// What of the surroundings differs, in words.
fn conditions(old: &Report, new: &Report) -> Vec<String> {
    fn or_unknown<T: Display>(value: Option<&T>) -> String {
        value.map_or("unknown".to_owned(), T::to_string)
    }
    let (before, after) = (&old.machine, &new.machine);
    let yes_no = |is: bool| if is { "yes" } else { "no" }.to_owned();
    let memory = |bytes: Option<u64>| bytes.map(crate::units::bytes);
    let pairs = [
        (
            "processor",
            or_unknown(before.processor.as_ref()),
            or_unknown(after.processor.as_ref()),
        ),
        ("CPUs", before.cpus.to_string(), after.cpus.to_string()),
        (
            "memory",
            or_unknown(memory(before.memory_bytes).as_ref()),
            or_unknown(memory(after.memory_bytes).as_ref()),
        ),
        ("kernel", before.kernel.clone(), after.kernel.clone()),
        (
            "C library",
            or_unknown(before.libc.as_ref()),
            or_unknown(after.libc.as_ref()),
        ),
        (
            "virtual machine",
            or_unknown(before.is_virtual.map(yes_no).as_ref()),
            or_unknown(after.is_virtual.map(yes_no).as_ref()),
        ),
        (
            "huge pages",
            or_unknown(before.huge_pages.as_ref()),
            or_unknown(after.huge_pages.as_ref()),
        ),
        ("root", yes_no(before.as_root), yes_no(after.as_root)),
        ("spawnscope", before.spawnscope.clone(), after.spawnscope.clone()),
        ("quick", yes_no(old.quick), yes_no(new.quick)),
        ("interrupted", yes_no(old.interrupted), yes_no(new.interrupted)),
    ];
    let differing = pairs.into_iter().filter(|(_, before, after)| before != after);
    differing
        .map(|(what, before, after)| format!("{what}: {before} -> {after}"))
        .chain(other_files(old, new))
        .collect()
}

/// Programs of the same name that are other files, in words.
fn other_files(old: &Report, new: &Report) -> Vec<String> {
    let mut told = Vec::new();
    for newer in &new.experiments {
        let older = old.experiments.iter().find(|older| older.name == newer.name);
        for (name, after) in &newer.files {
            let before = older.and_then(|older| older.files.get(name));
            if let Some(before) = before.filter(|before| *before != after) {
                told.push(format!("{name}: {before} -> {after}"));
            }
        }
    }
    told
}

/// Both errors together, as those of independent measurements add up: squares, on a scale of ratios.
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

/// The keys of a row in words.
#[must_use]
pub fn label(outcome: &Outcome, row: &Row) -> String {
    label_of(outcome.columns.iter(), row)
}

/// Those of the row's keys that are among these columns, in words.
pub(super) fn label_of<'c>(columns: impl Iterator<Item = &'c Column>, row: &Row) -> String {
    let keys = columns.filter(|column| column.is_key);
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

    /// Six sizes, in two columns.
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
        // 16.0 MB in words, both.
        new.experiments[0].rows[0].0[0].1 = Value::from(16_000_900);
        let found = compare(&old, &new);
        assert_eq!((found.changes.len(), found.unmatched), (10, 1));
    }

    #[test]
    fn the_one_that_changed_stands_out_of_a_machine_that_drifted() {
        let old = report([100.0; 6], 1.0);
        let found = compare(&old, &report([110.0, 112.0, 109.0, 160.0, 111.0, 110.0], 1.0));
        let apart: Vec<bool> = found.changes[..6].iter().map(|change| change.stands_out).collect();
        assert_eq!(apart, [false, false, false, true, false, false]);
        assert!(found.changes.iter().all(|change| change.beyond_noise));
        let of_all = &found.movements[0];
        assert!((1.09..1.12).contains(&of_all.ratio) && of_all.low > 1.0, "{of_all:?}");
    }

    #[test]
    fn what_else_differs_is_told() {
        let old = report([100.0; 6], 1.0);
        let mut new = report([100.0; 6], 1.0);
        new.quick = true;
        new.machine.kernel = "7.0".to_owned();
        let mut old = old;
        let file = |path: &str| {
            [
                ("python3".to_owned(), path.to_owned()),
                ("bash".to_owned(), "/usr/bin/bash".to_owned()),
            ]
        };
        old.experiments[0].files = file("/usr/bin/python3.11").into();
        new.experiments[0].files = file("~/.local/bin/python3.13").into();
        let said = compare(&old, &new).conditions;
        assert_eq!(
            said,
            [
                format!("kernel: {} -> 7.0", old.machine.kernel),
                "quick: no -> yes".to_owned(),
                "python3: /usr/bin/python3.11 -> ~/.local/bin/python3.13".to_owned(),
            ]
        );
    }

    proptest! {
        #[test]
        fn the_ratio_lies_in_its_interval(a in 1.0..1e9f64, b in 1.0..1e9f64, x in 0.0..0.9f64, y in 0.0..0.9f64) {
            let (low, high) = interval(&estimate(a, a * x), &estimate(b, b * y));
            prop_assert!(low <= b / a * 1.000_001 && b / a <= high * 1.000_001);
        }
    }
}
