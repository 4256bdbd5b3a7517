//! Lines over an x axis, with intervals. If there are many series, there is one panel per value of the last key, all with the same axes.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::axis::Axis;
use super::theme::{GRID, GROUND, INK, TEXT, WIDTH, colour, comes_again};
use super::{Error, text_at, tick};
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Chart, Outcome, Published, Row, Scale, Unit, Value};
use crate::present::lab::values::is_shown;
use crate::units;

const HEAD: u32 = 34;
const PANEL: u32 = 430;
/// Width of the y axis labels. The labels of the first panel apply to all.
const FIRST_LABELS: u32 = 76;
const LABELS: u32 = 12;
const LEGEND_COLUMN: i32 = 236;
const LEGEND_LINE: i32 = 22;
/// With more series than this, the plot is split into panels,
const MOST_IN_A_PANEL: usize = 8;
/// unless there would be more panels than this.
const MOST_PANELS: usize = 4;

/// A series: its colour index and its points.
type Series<'o> = (usize, Vec<(f64, &'o Estimate)>);

/// One of the plots side by side.
struct Panel<'o> {
    name: String,
    series: Vec<Series<'o>>,
}

/// Everything that is drawn. Names are indexed by colour.
struct Lines<'o> {
    names: Vec<String>,
    panels: Vec<Panel<'o>>,
    published: &'o [Published],
}

/// Draws the lines. Returns `None` if there is no point.
pub(super) fn draw(outcome: &Outcome, chart: &Chart) -> Option<String> {
    let lines = sort(outcome, chart);
    let points = lines.panels.iter().flat_map(|panel| &panel.series);
    let points: Vec<(f64, &Estimate)> = points.flat_map(|(_, points)| points.iter().copied()).collect();
    let all = points.len();
    let points: Vec<(f64, &Estimate)> = points.into_iter().filter(|(_, y)| is_shown(y)).collect();
    if points.is_empty() {
        return None;
    }
    let withheld = not_shown(all - points.len());
    let column = |name: &str| outcome.columns.iter().find(|column| column.name == name);
    let unit = |name: &str| column(name).map_or(Unit::Count, |column| column.unit);
    let published = || chart.published.iter().flat_map(|published| &published.points);
    let x = points.iter().map(|(x, _)| *x).chain(published().map(|(x, _)| *x));
    let x = Axis::over(x, chart.x_scale, unit(&chart.x));
    let most = most_shown(&points, chart.y_scale);
    let y = points.iter().flat_map(|(_, y)| [y.median, y.high.min(most)]);
    let y = Axis::over(y.chain(published().map(|(_, y)| *y)), chart.y_scale, unit(&chart.y));
    let title = |name: &str| column(name).map_or("", |column| column.title.as_str());
    let titles = [title(&chart.x), title(&chart.y)];
    let mut drawn = String::new();
    {
        let legend = lines.names.len() + lines.published.len() + withheld.iter().len();
        let rows = (legend as u32).div_ceil(WIDTH / LEGEND_COLUMN as u32);
        let size = (WIDTH, HEAD + PANEL + LEGEND_LINE as u32 * rows + 12);
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        area.fill(&GROUND).ok()?;
        text_at(&area, &outcome.title, (12, 10), FontStyle::Bold).ok()?;
        let (_, below) = area.split_vertically(HEAD);
        let (pictures, names) = below.split_vertically(PANEL);
        draw_panels(&pictures, &lines, &[x, y], titles).ok()?;
        draw_legend(&names, &lines, withheld.as_deref()).ok()?;
        area.present().ok()?;
    }
    Some(drawn)
}

/// Returns the value up to which intervals are shown. On a linear axis, an interval far longer than the others would compress the medians;
/// it is clipped at the frame.
fn most_shown(points: &[(f64, &Estimate)], scale: Scale) -> f64 {
    const BEYOND_MEDIANS: f64 = 1.5;
    match scale {
        Scale::Linear => points.iter().map(|(_, y)| y.median).fold(0.0, f64::max) * BEYOND_MEDIANS,
        Scale::Logarithmic => f64::INFINITY,
    }
}

/// Sorts rows into series, and series into panels.
fn sort<'o>(outcome: &'o Outcome, chart: &'o Chart) -> Lines<'o> {
    let series_count = outcome.series().len();
    let last = chart.series.last().filter(|_| chart.series.len() > 1);
    let panel_of = |row: &Row| last.map_or(String::new(), |key| panel_name(outcome, key, row.get(key)));
    let mut panel_names: Vec<String> = Vec::new();
    for row in &outcome.rows {
        let name = panel_of(row);
        if !panel_names.contains(&name) {
            panel_names.push(name);
        }
    }
    let in_panels = series_count > MOST_IN_A_PANEL && (2..=MOST_PANELS).contains(&panel_names.len());
    let mut lines = Lines {
        names: Vec::new(),
        panels: Vec::new(),
        published: &chart.published,
    };
    for row in &outcome.rows {
        let (Some(x), Some(y)) = (row.get(&chart.x).number(), row.get(&chart.y).estimate()) else {
            continue;
        };
        let (name, panel) = if in_panels {
            let others = chart.series.iter().take(chart.series.len() - 1);
            let words = others
                .map(|key| shown(outcome, key, row.get(key)))
                .filter(|word| !word.is_empty());
            (words.collect::<Vec<_>>().join(", "), panel_of(row))
        } else {
            (outcome.series_of(row), String::new())
        };
        lines.add(name, panel, (x, y));
    }
    lines
}

/// Returns the caption of a panel.
fn panel_name(outcome: &Outcome, key: &str, value: &Value) -> String {
    let title = outcome.columns.iter().find(|column| column.name == key);
    let title = title.map_or("", |column| &column.title);
    match value {
        Value::Text(text) if text.is_empty() => format!("{title}: default"),
        Value::Text(text) => format!("{title}: {text}"),
        _ => format!("{title}: {}", value.number().unwrap_or_default()),
    }
}

/// Formats the value of a series key.
fn shown(outcome: &Outcome, key: &str, value: &Value) -> String {
    let title = outcome.columns.iter().find(|column| column.name == key);
    match value {
        Value::Text(text) => text.clone(),
        Value::Number(number) => format!("{number} {}", title.map_or("", |column| &column.title)),
        _ => String::new(),
    }
}

impl<'o> Lines<'o> {
    fn add(&mut self, name: String, panel: String, point: (f64, &'o Estimate)) {
        let number = self.names.iter().position(|other| *other == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        let at = self
            .panels
            .iter()
            .position(|other| other.name == panel)
            .unwrap_or_else(|| {
                self.panels.push(Panel {
                    name: panel,
                    series: Vec::new(),
                });
                self.panels.len() - 1
            });
        let series = &mut self.panels[at].series;
        match series.iter_mut().find(|(other, _)| *other == number) {
            Some((_, points)) => points.push(point),
            None => series.push((number, vec![point])),
        }
    }
}

fn draw_panels(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: &Lines<'_>,
    [x, y]: &[Axis; 2],
    [x_title, y_title]: [&str; 2],
) -> Result<(), Error> {
    let font = || ("sans-serif", TEXT).into_font().color(&INK);
    let count = lines.panels.len() as u32;
    let each = (WIDTH - FIRST_LABELS + LABELS) / count;
    let breaks: Vec<u32> = (1..count).map(|number| FIRST_LABELS - LABELS + each * number).collect();
    let places = area.split_by_breakpoints(breaks, [0u32; 0]);
    for (number, (panel, place)) in lines.panels.iter().zip(places).enumerate() {
        let mut builder = ChartBuilder::on(&place);
        builder.margin(10).margin_right(20).x_label_area_size(46);
        // All panels share the labels of the first.
        builder.y_label_area_size(if number == 0 { FIRST_LABELS } else { LABELS });
        if !panel.name.is_empty() {
            builder.caption(&panel.name, font());
        }
        let mut context = builder.build_cartesian_2d(x.clone(), y.clone())?;
        let (x_unit, y_unit) = (x.unit, y.unit);
        let x_label = |value: &f64| tick(*value, x_unit);
        let y_label = |value: &f64| {
            if number == 0 {
                tick(*value, y_unit)
            } else {
                String::new()
            }
        };
        let mut mesh = context.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(GRID).axis_style(INK);
        mesh.label_style(font()).axis_desc_style(font()).x_desc(x_title);
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        if number == 0 {
            mesh.y_desc(y_title);
        }
        mesh.draw()?;
        for (number, points) in &panel.series {
            draw_series(&mut context, *number, points)?;
        }
        // Published figures are for parents with default settings, which are in the first panel.
        for published in lines.published.iter().filter(|_| number == 0) {
            let points = published.points.iter().copied();
            context.draw_series(DashedLineSeries::new(points, 6, 4, INK.stroke_width(2)))?;
        }
    }
    Ok(())
}

fn draw_series(
    context: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<Axis, Axis>>,
    number: usize,
    points: &[(f64, &Estimate)],
) -> Result<(), Error> {
    let colour = colour(number);
    // A line through a withheld point would reveal it.
    for points in points.split(|(_, y)| !is_shown(y)) {
        let medians = points.iter().map(|(x, y)| (*x, y.median));
        // Colours that repeat are dashed.
        if comes_again(number) {
            let line = DashedLineSeries::new(medians.clone(), 2, 3, colour.stroke_width(2));
            context.draw_series(line)?;
        } else {
            context.draw_series(LineSeries::new(medians.clone(), colour.stroke_width(2)))?;
        }
        let interval =
            |(x, y): &(f64, &Estimate)| PathElement::new([(*x, y.low), (*x, y.high)], colour.stroke_width(1));
        context.draw_series(points.iter().map(interval))?;
        context.draw_series(medians.map(|point| Circle::new(point, 3, colour.filled())))?;
    }
    Ok(())
}

/// Describes how many points are omitted.
fn not_shown(count: usize) -> Option<String> {
    (count > 0).then(|| {
        let points = units::counted(count as u64, "point", "points");
        format!("{points} not shown: wider than ±100 %")
    })
}

/// Draws the legend below the plots: the name of each series with a piece of its line.
fn draw_legend(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    lines: &Lines<'_>,
    withheld: Option<&str>,
) -> Result<(), Error> {
    let ours = lines.names.iter().enumerate();
    let ours = ours.map(|(number, name)| (name.as_str(), colour(number), comes_again(number), true));
    let theirs = lines.published.iter();
    let theirs = theirs.map(|published| (published.label.as_str(), INK, true, false));
    let columns = WIDTH as i32 / LEGEND_COLUMN;
    let place = |number: usize| {
        let number = number as i32;
        (
            12 + LEGEND_COLUMN * (number % columns),
            LEGEND_LINE * (number / columns) + 9,
        )
    };
    if let Some(withheld) = withheld {
        let (x, y) = place(lines.names.len() + lines.published.len());
        text_at(area, withheld, (x, y - 7), FontStyle::Normal)?;
    }
    for (number, (name, colour, dashed, dot)) in ours.chain(theirs).enumerate() {
        let (x, y) = place(number);
        // The dot is between the two halves of a dashed line.
        let ends: &[(i32, i32)] = match (dashed, dot) {
            (false, _) => &[(0, 20)],
            (true, true) => &[(0, 4), (16, 20)],
            (true, false) => &[(0, 8), (12, 20)],
        };
        for (from, to) in ends {
            area.draw(&PathElement::new([(x + from, y), (x + to, y)], colour.stroke_width(2)))?;
        }
        if dot {
            area.draw(&Circle::new((x + 10, y), 3, colour.filled()))?;
        }
        text_at(area, name, (x + 28, y - 7), FontStyle::Normal)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_interval_leaves_the_medians_their_room_and_ends_at_the_frame() {
        let estimate = |median: f64, high: f64| Estimate {
            median,
            low: median,
            high,
            rounds: 6,
        };
        let estimates = [estimate(10.0, 12.0), estimate(20.0, 900.0)];
        let points: Vec<(f64, &Estimate)> = estimates.iter().map(|estimate| (1.0, estimate)).collect();
        let most = most_shown(&points, Scale::Linear);
        let shown = points.iter().flat_map(|(_, y)| [y.median, y.high.min(most)]);
        let axis = Axis::over(shown, Scale::Linear, Unit::Nanos);
        assert!(axis.position(20.0) > 0.5, "{}", axis.position(20.0));
        assert!((axis.position(900.0) - 1.0).abs() < 1e-9);
        assert!(most_shown(&points, Scale::Logarithmic) > 900.0);
    }
}
