//! The lab on a terminal. An experiment with a chart has one line per series and one column per x; others have one line per case.

use super::comparison;
use super::grid::{Grid, grid};
use super::layout::{INDENT, Table};
use super::values::{
    busy_warning, cell_text, columns, describe_fit, describe_machine, format_estimate, interruption, legend, noise,
    table_legend,
};
use crate::lab::compare::Comparison;
use crate::lab::experiments::Experiment;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Column, Outcome, Report, Unit};
use crate::present::page::{Page, plain};
use crate::present::palette::{PLAIN, QUIET, WARNING};
use crate::present::text::{escape, width};

/// Maximum number of x values in a table: more would be hard to read.
const MAX_X_VALUES: usize = 7;
/// Width reserved for each x value, in columns.
const X_VALUE_WIDTH: usize = 11;

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
    if let Some(busy) = machine.run_conditions.load_warning(machine.cpus) {
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
    match &outcome.chart {
        _ if outcome.rows.is_empty() => page.sentence(INDENT, WARNING, "no reliable results"),
        Some(_) => print_series(&mut page, outcome),
        None => print_cases(&mut page, outcome),
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
    for sentence in busy_warning(report).into_iter().chain(interruption(report)) {
        page.line([]);
        page.sentence(0, WARNING, &sentence);
    }
    let mut text = page.finish();
    if let Some(comparison) = comparison {
        text.push_str(&comparison::render_for_terminal(comparison, width));
    }
    text
}

/// Prints a table with one line per series and one column per x.
fn print_series(page: &mut Page, outcome: &Outcome) {
    let names = outcome.series().iter().map(|(name, _)| width(name)).max();
    let fitting = page.width().saturating_sub(names.unwrap_or_default() + INDENT) / X_VALUE_WIDTH;
    let Some(grid) = grid(outcome, fitting.clamp(2, MAX_X_VALUES)) else {
        return;
    };
    let Grid { corner, x, unit, series, left_out } = grid;
    let mut rows: Vec<Vec<String>> = vec![[vec![corner], x].concat()];
    for (name, cells) in &series {
        rows.push(
            std::iter::once(escape(name.as_bytes()))
                .chain(cells.iter().map(|cell| cell.map_or(String::new(), |estimate| format_estimate(estimate, unit))))
                .collect(),
        );
    }
    let is_text = (0..rows[0].len()).map(|at| at == 0).collect();
    Table { rows, keys: 1, is_text }.print(page);
    for text in legend(series.iter().flat_map(|(_, cells)| cells.iter().copied().flatten())) {
        page.sentence(INDENT, QUIET, &text);
    }
    if let Some(left_out) = left_out {
        page.sentence(INDENT, QUIET, &left_out);
    }
}

/// Prints a table with one line per case: keys, the first measurement and its noise, the other measurements. Keys with the same value in
/// all cases are printed once, below.
fn print_cases(page: &mut Page, outcome: &Outcome) {
    let (same, columns): (Vec<&Column>, Vec<&Column>) =
        columns(outcome).into_iter().partition(|column| outcome.is_constant_key(column));
    let keys = columns.iter().take_while(|column| column.is_key).count();
    let noise_column = keys + 1;
    let titles = columns.iter().map(|column| column.title.clone()).collect();
    let mut rows: Vec<Vec<String>> = vec![titles];
    for row in &outcome.rows {
        rows.push(columns.iter().map(|column| escape(cell_text(row, column).as_bytes())).collect());
    }
    let mut is_text: Vec<bool> = columns.iter().map(|column| column.unit == Unit::Text).collect();
    if let Some(first) = columns.get(keys) {
        // The noise has its own column, so that it can move below if it does not fit.
        rows[0].insert(noise_column, format!("{} ±", first.title));
        for (cells, row) in rows[1..].iter_mut().zip(&outcome.rows) {
            let noise = row.get(&first.name).estimate().map(noise);
            cells.insert(noise_column, noise.unwrap_or_default());
        }
        is_text.insert(noise_column, false);
    }
    Table { rows, keys, is_text }.print(page);
    for text in table_legend(outcome, &columns) {
        page.sentence(INDENT, QUIET, &text);
    }
    for column in same {
        let value = outcome.rows.first().map(|row| cell_text(row, column));
        let sentence = format!("{}: {} in every case", column.title, value.unwrap_or_default());
        page.sentence(INDENT, QUIET, &escape(sentence.as_bytes()));
    }
}
