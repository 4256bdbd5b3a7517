//! The lab on a terminal: the list of experiments, the machine, each experiment, and the end of the output.

use super::comparison;
use super::table::{self, INDENT};
use super::values::{describe_fit, describe_machine, interruption, load_warning};
use crate::lab::compare::Comparison;
use crate::lab::experiments::Experiment;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Outcome, Report};
use crate::present::page::{Page, plain};
use crate::present::palette::{PLAIN, QUIET, WARNING};
use crate::present::text::escape;

/// Renders the list of experiments.
#[must_use]
pub fn list(experiments: &[Experiment], width: usize) -> String {
    let mut page = Page::of_width(width);
    for experiment in experiments {
        page.hanging([plain(format!("{:<15} ", experiment.name))], PLAIN, experiment.about);
    }
    page.finish()
}

/// Describes the machine.
#[must_use]
pub fn machine(machine: &Machine, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.sentence(0, QUIET, &describe_machine(machine));
    if let Some(busy) = load_warning(machine) {
        page.sentence(0, WARNING, &busy);
    }
    page.finish()
}

/// Renders one experiment.
#[must_use]
pub fn experiment(outcome: &Outcome, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.heading(&outcome.name);
    page.sentence(INDENT, PLAIN, &outcome.title);
    match outcome.rows.is_empty() {
        true => page.sentence(INDENT, WARNING, "no reliable results"),
        false => table::print(&mut page, outcome),
    }
    for fit in &outcome.fits {
        page.sentence(INDENT, PLAIN, &escape(describe_fit(fit).as_bytes()));
    }
    for note in &outcome.notes {
        page.sentence(INDENT, QUIET, &escape(note.as_bytes()));
    }
    page.finish()
}

/// Renders the end of the output: how busy the machine was, which experiments are missing, and the comparison with an older report.
#[must_use]
pub fn render_end(report: &Report, comparison: Option<&Comparison>, width: usize) -> String {
    let mut page = Page::of_width(width);
    for sentence in load_warning(&report.machine).into_iter().chain(interruption(report)) {
        page.line([]);
        page.sentence(0, WARNING, &sentence);
    }
    let mut text = page.finish();
    if let Some(comparison) = comparison {
        text.push_str(&comparison::render_for_terminal(comparison, width));
    }
    text
}
