//! Lines over an x axis, with intervals. If there are many series, there is one picture per family, all with the same axes.

use super::axis::Frame;
use super::legend;
use super::series::{Look, Plot, Points, Series};
use super::svg::{Anchor, Svg};
use super::theme::{LINE_HEIGHT, WIDTH, colour, dash, mark};
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Chart, Outcome};
use crate::present::lab::values::is_shown;

/// Distance between pictures, in units of the SVG.
const GAP: f64 = 28.0;
/// Maximum number of pictures side by side.
const MAX_COLUMNS: usize = 2;
/// Height between the axes, as a share of the width of a picture.
const HEIGHT_SHARE: f64 = 0.42;
/// Minimum height between the axes, in units of the SVG.
const MIN_HEIGHT: f64 = 220.0;
/// Maximum number of points of a series that are marked. A series with more points is drawn as a line in a band.
const MAX_MARKS: usize = 40;

/// Draws the lines. Returns `None` if there is no point.
pub(super) fn draw(outcome: &Outcome, chart: &Chart) -> Option<String> {
    let plot = Plot::arrange(outcome, chart)?;
    let columns = MAX_COLUMNS.min(plot.pictures.len());
    let width = (WIDTH - GAP * (columns - 1) as f64) / columns as f64;
    let mut svg = Svg::new();
    let mut top = 0.0;
    for row in plot.pictures.chunks(columns) {
        let mut bottom = top;
        for (column, (title, series)) in row.iter().enumerate() {
            let left = column as f64 * (width + GAP);
            let end = draw_picture(&mut svg, &plot, (title, series), (left, top, width));
            bottom = end.max(bottom);
        }
        top = bottom + GAP;
    }
    let [x, y] = plot.titles;
    Some(svg.finish(top - GAP, &format!("Plot: {y} by {x}")))
}

/// Draws a picture. Returns its bottom.
fn draw_picture(
    svg: &mut Svg,
    plot: &Plot<'_>,
    (title, series): (&str, &[Series<'_>]),
    (left, top, width): (f64, f64, f64),
) -> f64 {
    let line = LINE_HEIGHT;
    let mut baseline = top + line;
    if !title.is_empty() {
        svg.title((left, baseline), title);
        baseline += line;
    }
    let [x_title, y_title] = plot.titles;
    svg.text((left, baseline), Anchor::Start, y_title);
    let top = baseline + line * 0.75;
    let frame = Frame {
        left: left + Frame::y_label_width(&plot.y),
        right: left + width - 8.0,
        top,
        bottom: top + (width * HEIGHT_SHARE).max(MIN_HEIGHT),
    };
    frame.draw_x_axis(svg, &plot.x, [left, left + width]);
    frame.draw_y_axis(svg, &plot.y);
    let middle = f64::midpoint(frame.left, frame.right);
    svg.text((middle, frame.bottom + 2.0 * line), Anchor::Middle, x_title);
    for one in series {
        match &one.points {
            Points::Measured(points) => draw_series(svg, &frame, plot, one.look, points),
            Points::Published(points) => {
                let points = points.iter().copied();
                svg.path("line p ink", &path(&frame, plot, points));
            }
        }
    }
    legend::draw_lines(svg, series, (left, frame.bottom + 2.6 * line, width))
}

fn draw_series(svg: &mut Svg, frame: &Frame, plot: &Plot<'_>, look: Look, points: &[(f64, &Estimate)]) {
    let (colour, dash) = (colour(look.colour), dash(look.dash));
    let is_dense = points.len() > MAX_MARKS;
    // A line through a withheld point would reveal it.
    for points in points.split(|(_, y)| !is_shown(y)).filter(|points| !points.is_empty()) {
        let low = points.iter().map(|(x, y)| (*x, y.low));
        let high = points.iter().map(|(x, y)| (*x, y.high));
        let medians = points.iter().map(|(x, y)| (*x, y.median));
        if is_dense {
            let band = path(frame, plot, high.chain(low.rev()));
            svg.path(&format!("band {colour}"), &format!("{band}z"));
        } else {
            let intervals = low.zip(high).map(|(low, high)| path(frame, plot, [low, high].into_iter()));
            svg.path(&format!("thin {colour}"), &intervals.collect::<String>());
        }
        svg.path(&format!("line {colour} {dash}"), &path(frame, plot, medians.clone()));
        for median in medians.filter(|_| !is_dense) {
            let point = path(frame, plot, std::iter::once(median));
            svg.path(&format!("mark {colour}"), &format!("{point}{}", mark(look.colour)));
        }
    }
}

/// Returns the path through these points.
fn path(frame: &Frame, plot: &Plot<'_>, points: impl Iterator<Item = (f64, f64)>) -> String {
    let commands = points.enumerate().map(|(number, (x, y))| {
        let command = if number == 0 { 'M' } else { 'L' };
        format!("{command}{:.1} {:.1}", frame.x(&plot.x, x), frame.y(&plot.y, y))
    });
    commands.collect()
}
