//! Finds the cases that headlines compare. Cases that tables do not show are not found.

use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Row, Value};
use crate::present::lab::values::is_shown;

/// A case with one of its measurements.
pub(super) type Case<'o> = (&'o Row, &'o Estimate);

/// Returns the ratio to the base case. The lab computes this ratio in each round.
pub(super) fn ratio(row: &Row) -> Option<&Estimate> {
    measured(row, "ratio")
}

/// Returns a measurement of a row, if tables show it.
pub(super) fn measured<'o>(row: &'o Row, column: &str) -> Option<&'o Estimate> {
    row.get(column).estimate().filter(|estimate| is_shown(estimate))
}

pub(super) fn text<'o>(row: &'o Row, column: &str) -> Option<&'o str> {
    match row.get(column) {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the measured cases with these keys.
pub(super) fn cases<'o>(outcome: &'o Outcome, column: &str, keys: &[(&str, &str)]) -> Vec<Case<'o>> {
    let rows = outcome.rows.iter().filter(|row| keys.iter().all(|(key, value)| text(row, key) == Some(value)));
    rows.filter_map(|row| Some((row, measured(row, column)?))).collect()
}

/// Returns the first measured case with these keys.
pub(super) fn case<'o>(outcome: &'o Outcome, column: &str, keys: &[(&str, &str)]) -> Option<Case<'o>> {
    cases(outcome, column, keys).into_iter().next()
}

/// Returns the case with the largest value.
pub(super) fn largest<'o>(outcome: &'o Outcome, column: &str) -> Option<Case<'o>> {
    let all = cases(outcome, column, &[]).into_iter();
    all.max_by(|(_, one), (_, other)| one.median.total_cmp(&other.median))
}

/// Returns the cases with the smallest and the largest `key`, if these differ.
pub(super) fn ends<'o>(key: &str, found: Vec<Case<'o>>) -> Option<[(f64, &'o Estimate); 2]> {
    let mut found: Vec<(f64, &Estimate)> =
        found.into_iter().filter_map(|(row, estimate)| Some((row.get(key).number()?, estimate))).collect();
    found.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    let ends = [*found.first()?, *found.last()?];
    (ends[0].0 < ends[1].0).then_some(ends)
}

/// Returns the largest `key` that both lists of cases have, with the two measurements.
pub(super) fn measured_at_largest<'o>(key: &str, [one, other]: [Vec<Case<'o>>; 2]) -> Option<(f64, [&'o Estimate; 2])> {
    let both = one.into_iter().filter_map(|(row, first)| {
        let (_, second) = other.iter().find(|(candidate, _)| candidate.get(key) == row.get(key))?;
        Some((row.get(key).number()?, [first, *second]))
    });
    both.max_by(|(one, _), (other, _)| one.total_cmp(other))
}
