//! The lab on a terminal: the list of experiments, the machine, each experiment, and the end of the
//! output.

use super::table::{self, INDENT};
use super::values::{
    describe_fit, describe_machine, format_estimate, interruption, is_shown, load_warning, title_and_unit,
};
use crate::lab::experiments::Experiment;
use crate::lab::machine::Machine;
use crate::lab::measurements::Estimate;
use crate::lab::outcome::{BenchReport, Outcome, Unit, label};
use crate::present::page::{PLAIN, Page, QUIET, TITLE, WARNING, plain};
use crate::present::text::escape;

pub fn list(experiments: &[Experiment], width: usize) -> String {
    let mut page = Page::of_width(width);
    for experiment in experiments {
        page.hanging([plain(format!("{:<15} ", experiment.name))], PLAIN, experiment.about);
    }
    page.finish()
}

pub fn machine(machine: &Machine, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.sentence(0, QUIET, &describe_machine(machine));
    if let Some(busy) = load_warning(machine) {
        page.sentence(0, WARNING, &busy);
    }
    page.finish()
}

/// Renders the conclusions of one experiment; with `full`, also its table and notes.
pub fn experiment(outcome: &Outcome, full: bool, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.heading(&outcome.name);
    page.sentence(INDENT, PLAIN, &outcome.title);
    if outcome.rows.is_empty() {
        page.sentence(INDENT, WARNING, "no reliable results");
    }
    for conclusion in conclusions(outcome) {
        page.sentence(INDENT, TITLE, &escape(conclusion.as_bytes()));
    }
    // Without results, the notes say why.
    if !full && !outcome.rows.is_empty() {
        return page.finish();
    }
    if !outcome.rows.is_empty() {
        table::print(&mut page, outcome);
    }
    for note in &outcome.notes {
        page.sentence(INDENT, QUIET, &escape(note.as_bytes()));
    }
    page.finish()
}

/// Describes how the times depend on what the experiment varies. If it varies nothing, names the
/// fastest and the slowest case.
fn conclusions(outcome: &Outcome) -> Vec<String> {
    if !outcome.fits.is_empty() {
        return outcome.fits.iter().map(describe_fit).chain(without_slope(outcome)).collect();
    }
    let Some(measured) = outcome.columns.iter().find(|column| !column.is_key) else { return Vec::new() };
    let cases = outcome.rows.iter().filter_map(|row| {
        let estimate = row.get(&measured.name).estimate().filter(|estimate| is_shown(estimate))?;
        Some((label(outcome, row), estimate))
    });
    let mut cases: Vec<(String, &Estimate)> = cases.collect();
    cases.sort_by(|(_, one), (_, other)| one.median.total_cmp(&other.median));
    let (Some((least, lowest)), Some((most, highest))) = (cases.first(), cases.last()) else { return Vec::new() };
    if cases.len() < 2 || lowest.median <= 0.0 {
        return Vec::new();
    }
    let [low, high] = [lowest, highest].map(|estimate| format_estimate(estimate, measured.unit));
    let times = highest.median / lowest.median;
    vec![format!("{}: from {low} ({least}) to {high} ({most}), {times:.1} times as much", measured.title)]
}

/// Describes the series to which no line was fitted.
fn without_slope(outcome: &Outcome) -> Vec<String> {
    let unit = outcome.chart.as_ref().map_or(Unit::Count, |chart| title_and_unit(outcome, &chart.y).1);
    let others =
        outcome.series().into_iter().filter(|(series, _)| outcome.fits.iter().all(|fit| fit.series != *series));
    let range = |(series, points): (String, Vec<(f64, &Estimate)>)| {
        let mut shown: Vec<&Estimate> = points.into_iter().map(|(_, estimate)| estimate).collect();
        shown.retain(|estimate| is_shown(estimate));
        shown.sort_by(|one, other| one.median.total_cmp(&other.median));
        let [low, high] = [shown.first()?, shown.last()?].map(|estimate| format_estimate(estimate, unit));
        Some(format!("{series}: {low} to {high}, no slope beyond the noise"))
    };
    others.filter_map(range).collect()
}

/// Renders the end of the output: how busy the machine was, and which experiments are missing.
pub fn render_end(report: &BenchReport, width: usize) -> String {
    let mut page = Page::of_width(width);
    for sentence in load_warning(&report.machine).into_iter().chain(interruption(report)) {
        page.line([]);
        page.sentence(0, WARNING, &sentence);
    }
    page.finish()
}
