//! The comparison with an older report.

use super::values::figure;
use crate::lab::common_shift::CommonShift;
use crate::lab::compare::{Change, Comparison, MissingMeasurement, column_words};
use crate::present::page::{Page, plain};
use crate::present::palette::{PLAIN, QUIET, WARNING};
use crate::present::text::escape;
use crate::units;

const HEADING: &str = "Comparison with the older report";
const COMMON_SHIFT_TEXT: &str = "Common shift of all cases of an experiment (± spread between cases). The cause is the machine, or \
     a change that affects all cases; measure again to find out which:";
const OTHER_CHANGES_TEXT: &str = "Changed by more than the common shift, and beyond the noise of both reports:";
const INDENT: usize = 2;
/// Maximum number of names to list. If there are more, only their number is printed.
const MAX_NAMES: usize = 5;

/// Renders the whole comparison.
pub(super) fn render_for_terminal(comparison: &Comparison, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.heading(HEADING);
    if !comparison.conditions.is_empty() {
        let conditions = format!("not under the same conditions: {}", comparison.conditions.join("; "));
        page.sentence(INDENT, WARNING, &escape(conditions.as_bytes()));
    }
    let shifts = common_shifts(comparison);
    if !shifts.is_empty() {
        page.sentence(INDENT, PLAIN, COMMON_SHIFT_TEXT);
        for (experiment, what) in &shifts {
            let experiment = escape(format!("    {experiment}: ").as_bytes());
            page.hanging([plain(experiment)], PLAIN, &escape(what.as_bytes()));
        }
    }
    let standouts = standout_changes(comparison);
    if !standouts.is_empty() {
        page.sentence(INDENT, PLAIN, OTHER_CHANGES_TEXT);
    }
    for change in &standouts {
        let [ratio, interval, values, name] = cells(change);
        let start = format!("  {ratio:>6} {values:<20} ");
        page.hanging([plain(start)], PLAIN, &escape(format!("{name} {interval}").as_bytes()));
    }
    page.sentence(INDENT, QUIET, &summarize_others(comparison));
    for gone in describe_gone(comparison) {
        page.sentence(INDENT, WARNING, &escape(gone.as_bytes()));
    }
    page.finish()
}

/// Returns the common shifts beyond the noise: the name of each experiment, and how its columns changed.
fn common_shifts(comparison: &Comparison) -> Vec<(String, String)> {
    let mut shifts: Vec<(String, String)> = Vec::new();
    for common_shift in comparison.common_shifts.iter().filter(|common_shift| common_shift.is_beyond_noise()) {
        let what = describe_shift(common_shift);
        match shifts.iter_mut().find(|(name, _)| *name == common_shift.experiment) {
            Some((_, others)) => *others = format!("{others}, {what}"),
            None => shifts.push((common_shift.experiment.clone(), what)),
        }
    }
    shifts
}

fn describe_shift(common_shift: &CommonShift) -> String {
    let column = column_words(&common_shift.column);
    format!("{column} {:.2}x ±{:.0} %", common_shift.ratio, 100.0 * common_shift.spread)
}

/// Returns the cases that changed by more than the common shift, largest difference first.
fn standout_changes(comparison: &Comparison) -> Vec<&Change> {
    let mut standouts: Vec<&Change> = comparison.changes.iter().filter(|change| change.stands_out).collect();
    standouts.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    standouts
}

/// Formats the ratio, its interval, the old and new values, and the name.
fn cells(change: &Change) -> [String; 4] {
    let (old, new) = (figure(change.old, change.unit), figure(change.new, change.unit));
    [
        format!("{:.2}x", change.ratio),
        format!("({:.2} to {:.2})", change.low, change.high),
        format!("{old} -> {new}"),
        format!("{}: {}: {}", change.experiment, change.case, change.measure()),
    ]
}

/// Summarizes all other measurements.
fn summarize_others(comparison: &Comparison) -> String {
    let all = comparison.changes.len();
    if all == 0 {
        return "the reports have no case in common".to_owned();
    }
    let within = comparison.changes.iter().filter(|change| !change.beyond_noise).count();
    let standouts = comparison.changes.iter().filter(|change| change.stands_out).count();
    let mut parts = vec![
        format!("{} compared", units::counted(all as u64, "measurement", "measurements")),
        format!("{} within the noise", units::count(within as u64)),
    ];
    if comparison.common_shifts.is_empty() {
        parts.push("too few cases to distinguish a change from machine drift".to_owned());
    } else {
        let with_others = units::count((all - within - standouts) as u64);
        parts.push(format!("{with_others} within the common shift of their experiment"));
    }
    if comparison.unmatched > 0 {
        let cases = units::counted(comparison.unmatched as u64, "case is", "cases are");
        parts.push(format!("{cases} not in the older report"));
    }
    parts.join("; ")
}

/// Describes what only the older report has, one sentence per kind: whole experiments by name, cases and measurements by name if they are
/// few.
fn describe_gone(comparison: &Comparison) -> Vec<String> {
    let (mut experiments, mut cases, mut measurements) = (Vec::new(), Vec::new(), Vec::new());
    for MissingMeasurement { experiment, case, column } in &comparison.gone {
        match (case, column) {
            (None, _) => experiments.push(experiment.clone()),
            (Some(case), None) => cases.push(format!("{experiment}: {case}")),
            (Some(case), Some(column)) => measurements.push(format!("{experiment}: {case}: {}", column_words(column))),
        }
    }
    let sentences = [
        list_gone(&experiments, usize::MAX, ["experiment", "experiments"]),
        list_gone(&cases, MAX_NAMES, ["case", "cases"]),
        list_gone(&measurements, MAX_NAMES, ["measurement", "measurements"]),
    ];
    sentences.into_iter().flatten().collect()
}

/// Describes what only the older report has: its number, and the names if there are at most `max`.
fn list_gone(names: &[String], max: usize, [one, several]: [&str; 2]) -> Option<String> {
    let count = units::counted(names.len() as u64, one, several);
    match names.len() {
        0 => None,
        few if few <= max => Some(format!("only the older report has {count}: {}", names.join("; "))),
        _ => Some(format!("only the older report has {count}")),
    }
}
