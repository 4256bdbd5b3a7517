//! The series of a chart, with their looks, and the axes that all pictures of the chart share.

use super::axis::Axis;
use super::families::{self, Picture};
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Chart, Outcome, PublishedCurve};
use crate::present::lab::values::{is_shown, title_and_unit};

/// A series in a chart.
pub(super) struct Series<'o> {
    pub(super) name: String,
    pub(super) look: Look,
    pub(super) points: Points<'o>,
}

/// The look of a series, as indexes. The colour stands for the first key, the dash pattern for the other keys.
#[derive(Clone, Copy)]
pub(super) struct Look {
    pub(super) colour: usize,
    pub(super) dash: usize,
}

/// Points, in the order of x.
pub(super) enum Points<'o> {
    Measured(Vec<(f64, &'o Estimate)>),
    Published(&'o [(f64, f64)]),
}

/// The series of a chart in their pictures.
pub(super) struct Plot<'o> {
    /// The title of each picture, and its series.
    pub(super) pictures: Vec<(String, Vec<Series<'o>>)>,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// The titles of the x axis and of the y axis.
    pub(super) titles: [&'o str; 2],
}

impl<'o> Plot<'o> {
    /// Arranges the series of a chart in pictures. Returns `None` if no point is shown.
    pub(super) fn arrange(outcome: &'o Outcome, chart: &'o Chart) -> Option<Plot<'o>> {
        let all: Vec<(f64, &Estimate)> = outcome.series().into_iter().flat_map(|(_, points)| points).collect();
        let shown: Vec<(f64, &Estimate)> = all.into_iter().filter(|(_, y)| is_shown(y)).collect();
        if shown.is_empty() {
            return None;
        }
        let (x_title, x_unit) = title_and_unit(outcome, &chart.x);
        let (y_title, y_unit) = title_and_unit(outcome, &chart.y);
        let published = chart.published.iter().flat_map(|published| &published.points);
        let x = shown.iter().map(|(x, _)| *x).chain(published.clone().map(|(x, _)| *x));
        let y = shown.iter().flat_map(|(_, y)| [y.median, y.high]);
        let y = y.chain(published.map(|(_, y)| *y));
        Some(Plot {
            x: Axis::covering(x, chart.x_scale, x_unit),
            y: Axis::covering(y, chart.y_scale, y_unit),
            titles: [x_title, y_title],
            pictures: pictures(outcome, chart),
        })
    }
}

fn pictures<'o>(outcome: &'o Outcome, chart: &'o Chart) -> Vec<(String, Vec<Series<'o>>)> {
    let mut series = measured_series(outcome, chart);
    series.extend(chart.published.iter().map(published_series));
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    let pictures = families::pictures(&names);
    let mut series: Vec<Option<Series<'o>>> = series.into_iter().map(Some).collect();
    let pictures = pictures.into_iter().map(|Picture { title, series: members }| {
        let mut members: Vec<Series<'o>> = members.into_iter().filter_map(|at| series[at].take()).collect();
        number_colours(&mut members);
        (title, members)
    });
    pictures.collect()
}

/// Renumbers the colours in a picture, so that the indexes have no gaps.
fn number_colours(series: &mut [Series<'_>]) {
    let mut known = Vec::new();
    for one in series {
        one.look.colour = index_of(one.look.colour, &mut known);
    }
}

/// Returns the index of a value in the known values, and adds it if it is new.
fn index_of<T: PartialEq>(value: T, known: &mut Vec<T>) -> usize {
    let found = known.iter().position(|other| *other == value);
    found.unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

fn published_series(published: &PublishedCurve) -> Series<'_> {
    Series {
        name: published.label.clone(),
        // Not used: published curves are dashed lines in the colour of text.
        look: Look { colour: 0, dash: 0 },
        points: Points::Published(&published.points),
    }
}

/// Returns the measured series. Rows of one series share all keys of the chart but x.
fn measured_series<'o>(outcome: &'o Outcome, chart: &Chart) -> Vec<Series<'o>> {
    let (mut colours, mut dashes) = (Vec::new(), Vec::new());
    let mut series: Vec<Series<'o>> = Vec::new();
    for (name, mut points) in outcome.series() {
        let Some(row) = outcome.rows.iter().find(|row| outcome.series_name(row) == name) else {
            continue;
        };
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut keys = chart.series.iter().map(|key| row.get(key));
        let colour = index_of(keys.next(), &mut colours);
        let dash = index_of(keys.collect::<Vec<_>>(), &mut dashes);
        series.push(Series { look: Look { colour, dash }, name, points: Points::Measured(points) });
    }
    series
}
