//! The lab's tables on a terminal. An experiment with a chart has a line a series and a column an x; any other a line a case.

use super::values::{noise, sentence, shown, words};
use crate::lab::experiments::Experiment;
use crate::lab::harness::Estimate;
use crate::lab::machine::Machine;
use crate::lab::outcome::{Chart, Outcome, Unit};
use crate::present::page::{Page, plain, styled};
use crate::present::palette::{PLAIN, QUIET, TITLE, WARNING};
use crate::present::text::{escape, pad_left, pad_right, width};

/// Columns of an x axis that a reader can take in.
const MOST_ACROSS: usize = 7;
/// What one of them takes.
const WIDTH_ACROSS: usize = 11;
const INDENT: &str = "  ";
/// A median whose interval is wider is marked.
const NOISY: f64 = 0.1;

/// The experiments there are.
#[must_use]
pub fn list(experiments: &[Experiment], width: usize) -> String {
    let mut page = Page::of_width(width);
    for experiment in experiments {
        page.line([plain(format!("{:<15} {}", experiment.name, experiment.about))]);
    }
    page.finish()
}

/// Where it is measured.
#[must_use]
pub fn machine(machine: &Machine, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.sentence(0, QUIET, &words(machine));
    page.finish()
}

/// One experiment.
#[must_use]
pub fn experiment(outcome: &Outcome, width: usize) -> String {
    let mut page = Page::of_width(width);
    page.heading(&outcome.name);
    page.sentence(INDENT.len(), PLAIN, &outcome.title);
    match &outcome.chart {
        _ if outcome.rows.is_empty() => page.sentence(INDENT.len(), WARNING, "no figure that can be trusted"),
        Some(chart) => across(&mut page, outcome, chart),
        None => down(&mut page, outcome),
    }
    for fit in &outcome.fits {
        page.sentence(INDENT.len(), PLAIN, &escape(sentence(fit).as_bytes()));
    }
    for note in &outcome.notes {
        page.sentence(INDENT.len(), QUIET, &escape(note.as_bytes()));
    }
    page.finish()
}

/// A line a series, a column an x.
fn across(page: &mut Page, outcome: &Outcome, chart: &Chart) {
    let unit_of = |name: &str| {
        let column = outcome.columns.iter().find(|column| column.name == name);
        column.map_or((Unit::Text, ""), |column| (column.unit, column.title.as_str()))
    };
    let ((x_unit, x_title), (y_unit, y_title)) = (unit_of(&chart.x), unit_of(&chart.y));
    let series = outcome.series();
    let names = series.iter().map(|(name, _)| width(name)).max().unwrap_or_default();
    let fitting = page.width().saturating_sub(names + INDENT.len()) / WIDTH_ACROSS;
    let chosen = places(&series, fitting.clamp(2, MOST_ACROSS));
    let mut noisy = false;
    let mut rows = vec![vec![format!("{y_title} by {x_title}")]];
    rows[0].extend(chosen.iter().map(|x| super::values::figure(*x, x_unit)));
    for (name, points) in &series {
        let mut row = vec![escape(name.as_bytes())];
        for x in &chosen {
            let point = points.iter().find(|(other, _)| other == x);
            row.push(point.map_or("-".to_owned(), |(_, estimate)| {
                let mark = if estimate.noise() > NOISY { "~" } else { "" };
                noisy |= !mark.is_empty();
                format!("{mark}{}", super::values::figure(estimate.median, y_unit))
            }));
        }
        rows.push(row);
    }
    table(page, &rows, &[false]);
    if noisy {
        page.sentence(INDENT.len(), QUIET, "~ the interval of 95 % is wider than ±10 %");
    }
}

/// Which x are shown where not all fit: the first, the last, those that most series have, and as many others, spread evenly.
fn places(series: &[(String, Vec<(f64, &Estimate)>)], most: usize) -> Vec<f64> {
    let mut all: Vec<f64> = series
        .iter()
        .flat_map(|(_, points)| points.iter().map(|(x, _)| *x))
        .collect();
    all.sort_by(f64::total_cmp);
    let count = |x: f64| all.iter().filter(|other| **other == x).count();
    let highest = all.iter().map(|x| count(*x)).max().unwrap_or_default();
    let mut distinct = all.clone();
    distinct.dedup();
    let ends = [distinct.first().copied(), distinct.last().copied()];
    let (shared, others): (Vec<f64>, Vec<f64>) = distinct
        .into_iter()
        .partition(|x| count(*x) == highest || ends.contains(&Some(*x)));
    let mut chosen = spread(&shared, most);
    chosen.extend(spread(&others, most - chosen.len()));
    chosen.sort_by(f64::total_cmp);
    chosen
}

/// At most so many of the values; the first and, unless it is one, the last are among them.
fn spread(values: &[f64], most: usize) -> Vec<f64> {
    let count = values.len().min(most);
    let last = values.len().saturating_sub(1);
    let at = |number: usize| values[number * last / (count - 1).max(1)];
    (0..count).map(at).collect()
}

/// A line a case: keys, the first measurement with its noise, the others.
fn down(page: &mut Page, outcome: &Outcome) {
    let first = outcome.columns.iter().position(|column| !column.is_key);
    let mut heading = Vec::new();
    for (position, column) in outcome.columns.iter().enumerate() {
        heading.push(column.title.clone());
        if Some(position) == first {
            heading.push(String::new());
        }
    }
    let mut rows = vec![heading];
    for row in &outcome.rows {
        let mut line = Vec::new();
        for (position, column) in outcome.columns.iter().enumerate() {
            let value = row.get(&column.name);
            line.push(escape(shown(value, column.unit).as_bytes()));
            if Some(position) == first {
                line.push(value.estimate().map(noise).unwrap_or_default());
            }
        }
        rows.push(line);
    }
    let figures: Vec<bool> = outcome.columns.iter().map(|column| column.unit != Unit::Text).collect();
    table(page, &rows, &figures);
}

/// Lays out rows, the first of which are headings. Columns are figures unless `figures` says otherwise; those that do not
/// fit, the last ones, go.
fn table(page: &mut Page, rows: &[Vec<String>], figures: &[bool]) {
    let columns = rows.first().map_or(0, Vec::len);
    let mut widths: Vec<usize> = (0..columns)
        .map(|at| {
            rows.iter()
                .filter_map(|row| row.get(at))
                .map(|text| width(text))
                .max()
                .unwrap_or(0)
        })
        .collect();
    while widths.len() > 2 && INDENT.len() + widths.iter().map(|width| width + 2).sum::<usize>() > page.width() + 2 {
        widths.pop();
    }
    let is_figure = |at: usize| figures.get(at).copied().unwrap_or(true);
    for (number, row) in rows.iter().enumerate() {
        let mut line = INDENT.to_owned();
        for (at, (text, width)) in row.iter().zip(&widths).enumerate() {
            let padded = if is_figure(at) {
                pad_left(text, *width)
            } else {
                pad_right(text, *width)
            };
            line.push_str(&padded);
            line.push_str("  ");
        }
        let style = if number == 0 { TITLE } else { PLAIN };
        page.line([styled(style, line)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_shows_its_ends_and_what_most_series_have() {
        let estimate = Estimate::of(&[1.0]).unwrap();
        let points = |x: &[f64]| x.iter().map(|x| (*x, &estimate)).collect::<Vec<_>>();
        let long: Vec<f64> = (0..=100).map(f64::from).collect();
        let series = |more: &[f64]| vec![("a".to_owned(), points(&long)), ("b".to_owned(), points(more))];
        assert_eq!(places(&series(&[30.0, 70.0]), 5), [0.0, 1.0, 30.0, 70.0, 100.0]);
        assert_eq!(places(&series(&long), 5), [0.0, 25.0, 50.0, 75.0, 100.0]);
        assert_eq!(places(&[("a".to_owned(), points(&[3.0]))], 5), [3.0]);
    }
}
