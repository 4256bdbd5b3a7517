//! The first sentence of a comparison, and the format of its numbers: `wall time -108 ms ± 9:
//! dirname 100 -> 0 launches at unpack.sh:20`.

use crate::analyze::compare::diff::{ChangeKind, Count, CountChange, Diff, Row, TimeChange};
use crate::event::Nanos;
use crate::present::{text, units};

/// Maximum number of changes that the sentence names.
const MAX_NAMED: usize = 3;
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];

/// Returns the sentence: what happened to the wall, and the largest changes.
pub(super) fn first_sentence(diff: &Diff) -> String {
    let changes = largest_changes(diff);
    let wall = wall(diff);
    if changes.is_empty() {
        return format!("{wall}: no launch was added, removed or changed");
    }
    format!("{wall}: {}", changes.join(", "))
}

fn wall(diff: &Diff) -> String {
    let [before, after] = [diff.wall.before, diff.wall.after].map(time);
    match (diff.wall.difference, diff.runs) {
        (Some(difference), _) if difference.contains_zero() => {
            format!("wall time unchanged ({} is noise)", with_margin(difference.value, difference.margin()))
        }
        (Some(difference), _) => format!("wall time {}", with_margin(difference.value, difference.margin())),
        (None, [1, 1]) => format!("wall time {before} -> {after} (one run each, no interval)"),
        (None, _) => format!("wall time {before} -> {after} (no interval)"),
    }
}

/// Returns the largest changes. Changes of the same program at the same script line are added up.
fn largest_changes(diff: &Diff) -> Vec<String> {
    let mut largest: Vec<(&Row, CountChange)> = Vec::new();
    for row in diff.rows.iter().filter(|row| row.kind != ChangeKind::Same) {
        let label = line_label(row);
        let mut alike =
            largest.iter_mut().filter(|(other, _)| other.command == row.command && line_label(other) == label);
        if let Some((_, sum)) = alike.next() {
            *sum = add_changes(sum, &row.count);
        } else if largest.len() < MAX_NAMED {
            largest.push((row, row.count));
        }
    }
    largest.iter().map(|(row, count)| clause(row, count)).collect()
}

fn add_changes(sum: &CountChange, more: &CountChange) -> CountChange {
    CountChange { before: add_counts(sum.before, more.before), after: add_counts(sum.after, more.after) }
}

fn add_counts(sum: Count, more: Count) -> Count {
    Count { low: sum.low + more.low, median: sum.median + more.median, high: sum.high + more.high }
}

fn clause(row: &Row, change: &CountChange) -> String {
    let command = text::escape(&row.command);
    let at = line_label(row).map(|label| format!(" at {label}")).unwrap_or_default();
    if change.before == change.after {
        let what = if row.failed_execs.is_change() {
            let is_one = row.failed_execs.difference().unsigned_abs() == 1;
            let execs = if is_one { "failed exec" } else { "failed execs" };
            format!("{} {execs}", changed_count(&row.failed_execs))
        } else {
            changed_time(&row.times.critical)
        };
        return format!("{command} {what}{at}");
    }
    format!("{command} {} -> {} launches{at}", count(change.before), count(change.after))
}

/// Formats the script line of a group, and the older line if it moved: `unpack.sh:24 (was 20)`.
pub(super) fn line_label(row: &Row) -> Option<String> {
    match (&row.line_before, &row.line_after) {
        (Some(before), Some(after)) if before.line != after.line => {
            let line = before.line.map(|line| format!(" (was {line})")).unwrap_or_default();
            Some(format!("{}{line}", text::escape(&after.label())))
        }
        _ => row.line().map(|line| text::escape(&line.label())),
    }
}

pub(super) fn time(value: Option<f64>) -> String {
    units::time(value.map(|value| Nanos(value as u64)))
}

pub(in crate::present) fn count(count: Count) -> String {
    if count.is_exact() {
        return units::count(count.median);
    }
    format!("{}..{}", units::count(count.low), units::count(count.high))
}

/// Formats the difference of a count, in parentheses if the runs of one version differ by as much.
pub(in crate::present) fn changed_count(change: &CountChange) -> String {
    let difference = change.difference();
    if difference == 0 {
        return "same".to_owned();
    }
    let sign = if difference > 0 { "+" } else { "-" };
    let text = format!("{sign}{}", units::count(difference.unsigned_abs()));
    if change.is_change() { text } else { format!("({text})") }
}

/// Formats the difference of a time, with its margin if it is known.
pub(in crate::present) fn changed_time(change: &TimeChange) -> String {
    match (change.difference, change.value()) {
        (Some(difference), _) => with_margin(difference.value, difference.margin()),
        (None, Some(value)) => signed(value),
        (None, None) => "-".to_owned(),
    }
}

/// Formats a time in nanoseconds that may have a fractional part.
pub(in crate::present) fn span(ns: f64) -> String {
    units::time(Nanos(ns.round() as u64))
}

fn signed(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "+" };
    format!("{sign}{}", units::time(Nanos(ns.abs().round() as u64)))
}

/// Formats a value with its margin: `-108 ms ± 9`. Both have the unit that suits the larger one.
pub(in crate::present) fn with_margin(value: f64, margin: f64) -> String {
    let largest = value.abs().max(margin);
    let fitting = TIME_UNITS.iter().find(|(_, length)| largest >= *length);
    let (unit, length) = *fitting.unwrap_or(&TIME_UNITS[3]);
    let sign = if value < 0.0 { "-" } else { "+" };
    let (value, margin) = (value.abs() / length, margin / length);
    // Three digits, as in other times.
    let decimals = match largest / length {
        _ if length == 1.0 => 0,
        shown if shown >= 99.95 => 0,
        shown if shown >= 9.995 => 1,
        _ => 2,
    };
    format!("{sign}{value:.decimals$} {unit} \u{b1} {margin:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_has_the_same_unit_as_its_value() {
        assert_eq!(with_margin(-108e6, 9.04e6), "-108 ms \u{b1} 9");
        assert_eq!(with_margin(-108e6, 12e6), "-108 ms \u{b1} 12");
        assert_eq!(with_margin(2e3, 1.5e6), "+0.00 ms \u{b1} 1.50");
        assert_eq!(with_margin(0.0, 0.0), "+0 ns \u{b1} 0");
    }

    #[test]
    fn counts_that_vary_are_ranges() {
        assert_eq!(count(Count::of(vec![3, 5])), "3..5");
        for (before, after, expected) in
            [([1000, 1000], [0, 0], "-1,000"), ([3, 5], [5, 6], "(+2)"), ([4, 4], [4, 4], "same")]
        {
            let [before, after] = [before, after].map(|counts| Count::of(counts.to_vec()));
            assert_eq!(changed_count(&CountChange { before, after }), expected);
        }
    }
}
