//! An experiment with an x axis as a table: one line per series, one column per x.

use super::values::{figure, title_and_unit};
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Unit};

/// The table.
pub(super) struct Grid<'o> {
    /// The heading of the first column: `Y by X`.
    pub(super) corner: String,
    /// The headings of the columns.
    pub(super) x: Vec<String>,
    /// The unit of the cells.
    pub(super) unit: Unit,
    /// The lines, with one cell per column.
    pub(super) series: Vec<(String, Vec<Option<&'o Estimate>>)>,
    /// Says which columns are not shown.
    pub(super) left_out: Option<String>,
}

/// Returns the table with at most `max` columns of x values, or `None` if the experiment has no x axis.
pub(super) fn grid(outcome: &Outcome, max: usize) -> Option<Grid<'_>> {
    let chart = outcome.chart.as_ref()?;
    let (x_title, x_unit) = title_and_unit(outcome, &chart.x);
    let (y_title, y_unit) = title_and_unit(outcome, &chart.y);
    let series = outcome.series();
    let (chosen, all) = choose_positions(&series, max);
    let others = outcome.columns.iter().filter(|column| !column.is_key && column.name != chart.y);
    let mut left_out: Vec<String> = others.map(|column| column.title.clone()).collect();
    if chosen.len() < all {
        left_out.push(format!("{} of {all} columns", all - chosen.len()));
    }
    Some(Grid {
        corner: format!("{y_title} by {x_title}"),
        x: chosen.iter().map(|x| figure(*x, x_unit)).collect(),
        unit: y_unit,
        left_out: (!left_out.is_empty()).then(|| format!("not in this table: {}", left_out.join(", "))),
        series: series.into_iter().map(|(name, points)| (name, cells(&points, &chosen))).collect(),
    })
}

/// Returns the points at these x values.
fn cells<'o>(points: &[(f64, &'o Estimate)], x: &[f64]) -> Vec<Option<&'o Estimate>> {
    x.iter().map(|x| points.iter().find(|(other, _)| other == x).map(|(_, value)| *value)).collect()
}

/// Selects at most `max` x values, and returns them with the number of all x values. The first, the last, and those at which most series have
/// points are preferred; others fill the remaining columns evenly.
fn choose_positions(series: &[(String, Vec<(f64, &Estimate)>)], max: usize) -> (Vec<f64>, usize) {
    let mut all: Vec<f64> = series.iter().flat_map(|(_, points)| points.iter().map(|(x, _)| *x)).collect();
    all.sort_by(f64::total_cmp);
    let highest = all.iter().map(|x| count_at(*x, &all)).max().unwrap_or_default();
    let mut distinct = all.clone();
    distinct.dedup();
    let distinct_count = distinct.len();
    let ends = [distinct.first().copied(), distinct.last().copied()];
    let (shared, others): (Vec<f64>, Vec<f64>) =
        distinct.into_iter().partition(|x| count_at(*x, &all) == highest || ends.contains(&Some(*x)));
    let mut chosen = evenly_spaced(&shared, max);
    chosen.extend(evenly_spaced(&others, max - chosen.len()));
    chosen.sort_by(f64::total_cmp);
    (chosen, distinct_count)
}

/// Returns the number of points at an x value.
fn count_at(x: f64, all: &[f64]) -> usize {
    all.iter().filter(|other| **other == x).count()
}

/// Selects at most `max` values, evenly spaced, including the first and, unless `max` is 1, the last.
fn evenly_spaced(values: &[f64], max: usize) -> Vec<f64> {
    let count = values.len().min(max);
    let last = values.len().saturating_sub(1);
    (0..count).map(|number| values[number * last / (count - 1).max(1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_shows_its_ends_and_the_positions_that_most_series_share() {
        let estimate = Estimate::from_values(&[1.0]).unwrap();
        let long: Vec<f64> = (0..=100).map(f64::from).collect();
        for (series, expected) in [
            (vec![long.as_slice(), &[30.0, 70.0]], (vec![0.0, 1.0, 30.0, 70.0, 100.0], 101)),
            (vec![&long, &long], (vec![0.0, 25.0, 50.0, 75.0, 100.0], 101)),
            (vec![&[3.0]], (vec![3.0], 1)),
        ] {
            let points = series.into_iter().map(|x| x.iter().map(|x| (*x, &estimate)).collect());
            let series: Vec<(String, Vec<(f64, &Estimate)>)> = points.map(|points| (String::new(), points)).collect();
            assert_eq!(choose_positions(&series, 5), expected);
        }
    }
}
