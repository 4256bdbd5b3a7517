//! The lab on a terminal: the list of experiments, the machine, each experiment with its table, and
//! the end of the output.
//!
//! A table has one line per series and one column per x if there is a chart, otherwise one line per
//! case. A figure is never cut; columns that do not fit are omitted, and a sentence names them.

use super::values::{
    cell_text, columns, describe_fit, describe_machine, figure, format_estimate, interruption, is_shown, legend,
    load_warning, noise, table_legend, title_and_unit,
};
use crate::lab::experiments::Experiment;
use crate::lab::machine::Machine;
use crate::lab::measurements::Estimate;
use crate::lab::outcome::{BenchReport, Column, Outcome, Unit, label};
use crate::present::page::{PLAIN, Page, QUIET, TITLE, WARNING, plain, styled};
use crate::present::text::{escape, pad_left, pad_right, truncate, width};

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
        print_table(&mut page, outcome);
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

const INDENT: usize = 2;
const GAP: usize = 2;
/// Maximum number of x values: more would be hard to read.
const MAX_X_VALUES: usize = 9;
const X_VALUE_WIDTH: usize = 11;
const MIN_NAME_WIDTH: usize = 16;

/// A table. The first line has the titles. The first cell of each line is its name.
struct Table {
    lines: Vec<Vec<String>>,
    sentences: Vec<String>,
}

fn print_table(page: &mut Page, outcome: &Outcome) {
    let table = match outcome.chart {
        Some(_) => series_table(outcome, page.width()),
        None => case_table(outcome),
    };
    table.print(page);
}

/// Returns a table with one line per series and one column per x, as many as fit.
fn series_table(outcome: &Outcome, page_width: usize) -> Table {
    let (x, y) = outcome.chart.as_ref().map_or(("", ""), |chart| (chart.x.as_str(), chart.y.as_str()));
    let [(x_title, x_unit), (y_title, y_unit)] = [x, y].map(|name| title_and_unit(outcome, name));
    let series = outcome.series();
    let mut all: Vec<f64> = series.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let names = series.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let fitting = page_width.saturating_sub(names + INDENT) / X_VALUE_WIDTH;
    let chosen = evenly_spaced(&all, fitting.clamp(2, MAX_X_VALUES));
    let corner = format!("{y_title} by {x_title}");
    let mut lines = vec![[vec![corner], chosen.iter().map(|x| figure(*x, x_unit)).collect()].concat()];
    let mut shown: Vec<&Estimate> = Vec::new();
    for (name, points) in &series {
        let cells = chosen.iter().map(|x| points.iter().find(|(other, _)| other == x).map(|(_, estimate)| *estimate));
        let cells: Vec<Option<&Estimate>> = cells.collect();
        shown.extend(cells.iter().flatten());
        let figures = cells.iter().map(|cell| cell.map_or(String::new(), |estimate| format_estimate(estimate, y_unit)));
        lines.push(std::iter::once(escape(name.as_bytes())).chain(figures).collect());
    }
    let others = outcome.columns.iter().filter(|column| !column.is_key && column.name != y);
    let mut omitted: Vec<String> = others.map(|column| column.title.clone()).collect();
    if chosen.len() < all.len() {
        omitted.push(format!("{} of {} columns", all.len() - chosen.len(), all.len()));
    }
    let mut sentences = legend(shown);
    sentences.extend(omission(&omitted));
    Table { lines, sentences }
}

/// Selects at most `max` values, at least two, evenly spaced, including the first and the last.
fn evenly_spaced(values: &[f64], max: usize) -> Vec<f64> {
    let count = values.len().min(max);
    let last = values.len().saturating_sub(1);
    (0..count).map(|number| values[number * last / (count - 1).max(1)]).collect()
}

/// Returns a table with one line per case: its keys, the first measurement and its noise, and the
/// other measurements.
fn case_table(outcome: &Outcome) -> Table {
    let columns = columns(outcome);
    let (keys, measured): (Vec<&Column>, Vec<&Column>) = columns.iter().copied().partition(|column| column.is_key);
    let names: Vec<&str> = keys.iter().map(|column| column.title.as_str()).collect();
    let mut titles = vec![names.join(", ")];
    titles.extend(measured.iter().map(|column| column.title.clone()));
    let mut lines = vec![titles];
    for row in &outcome.rows {
        let cells = measured.iter().map(|column| cell_text(row, column));
        lines.push(std::iter::once(escape(label(outcome, row).as_bytes())).chain(cells).collect());
    }
    if let Some(first) = measured.first() {
        lines[0].insert(2, format!("{} ±", first.title));
        for (line, row) in lines[1..].iter_mut().zip(&outcome.rows) {
            line.insert(2, row.get(&first.name).estimate().map(noise).unwrap_or_default());
        }
    }
    Table { lines, sentences: table_legend(outcome, &columns) }
}

fn omission(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| format!("not in this table: {}", names.join(", ")))
}

impl Table {
    fn print(&self, page: &mut Page) {
        let count = self.lines[0].len();
        let widest = |at: usize| self.lines.iter().map(|line| width(&line[at])).max().unwrap_or(0);
        let widths: Vec<usize> = (0..count).map(widest).collect();
        let available = page.width().saturating_sub(INDENT);
        let mut used = widths[0].min(MIN_NAME_WIDTH);
        let fitting = widths[1..].iter().take_while(|width| {
            used += GAP + **width;
            used <= available
        });
        let shown = 1 + fitting.count();
        let figures: usize = widths[1..shown].iter().map(|width| GAP + width).sum();
        let name_width = widths[0].min(available.saturating_sub(figures));
        for (number, line) in self.lines.iter().enumerate() {
            let mut text = pad_right(&truncate(&line[0], name_width), name_width);
            for (cell, width) in line[1..shown].iter().zip(&widths[1..]) {
                text.push_str(&pad_left(cell, GAP + width));
            }
            let style = if number == 0 { TITLE } else { PLAIN };
            page.line([plain(" ".repeat(INDENT)), styled(style, text.trim_end())]);
        }
        for sentence in self.sentences.iter().cloned().chain(omission(&self.lines[0][shown..])) {
            page.sentence(INDENT, QUIET, &sentence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(columns: usize) -> Vec<String> {
        let lines = [["mechanism", "wall", "call", "user"], ["vspawn with a pipe", "1.23 us", "4 us", "567 ms"]];
        let lines = lines.map(|cells| cells.map(str::to_owned).to_vec()).to_vec();
        let mut page = Page::of_width(columns);
        Table { lines, sentences: Vec::new() }.print(&mut page);
        anstream::adapter::strip_str(&page.finish()).to_string().lines().map(str::to_owned).collect()
    }

    #[test]
    fn columns_that_do_not_fit_are_named_and_no_figure_is_cut() {
        let whole = ["  mechanism              wall  call    user", "  vspawn with a pipe  1.23 us  4 us  567 ms"];
        assert_eq!(shown(43), whole);
        let narrower = shown(40);
        assert_eq!(narrower[1..], ["  vspawn with a pipe  1.23 us  4 us", "  not in this table: user"]);
        assert_eq!(shown(30)[1], "  vspawn with a pipe  1.23 us");
        assert_eq!(shown(27)[1], "  vspawn with a p…  1.23 us");
    }

    #[test]
    fn an_axis_shows_its_ends() {
        let all: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(evenly_spaced(&all, 5), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(evenly_spaced(&[3.0], 5), [3.0]);
    }
}
