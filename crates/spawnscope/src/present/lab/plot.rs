//! A chart of an experiment as SVG: our series as lines with points, what others published as dashes.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::values::figure;
use crate::lab::outcome::{Chart, Outcome, Scale, Unit};

const SIZE: (u32, u32) = (960, 480);
/// What the names of the series take, at the right.
const LEGEND: u32 = 230;
const LEGEND_LINE: i32 = 20;
/// Far enough from one another, on white.
const COLOURS: [RGBColor; 10] = [
    RGBColor(0x1b, 0x6c, 0xa8),
    RGBColor(0xd1, 0x49, 0x5b),
    RGBColor(0x2e, 0x86, 0x57),
    RGBColor(0xe0, 0x8e, 0x1b),
    RGBColor(0x6a, 0x4c, 0x93),
    RGBColor(0x00, 0x8b, 0x8b),
    RGBColor(0x8d, 0x5a, 0x34),
    RGBColor(0xc2, 0x18, 0x8f),
    RGBColor(0x5b, 0x61, 0x6b),
    RGBColor(0x93, 0xa1, 0x1d),
];
const PUBLISHED: RGBColor = RGBColor(0x30, 0x30, 0x30);

type Error = DrawingAreaErrorKind<std::io::Error>;
type Series = (String, Vec<(f64, f64)>);

/// An axis: its values in order, as positions between 0 and 1.
#[derive(Clone)]
struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    unit: Unit,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, scale: Scale, unit: Unit) -> Axis {
        let is_logarithmic = scale == Scale::Logarithmic;
        let values: Vec<f64> = values.collect();
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        let low = if is_logarithmic {
            values
                .iter()
                .copied()
                .filter(|value| *value > 0.0)
                .fold(f64::MAX, f64::min)
        } else {
            0.0
        };
        // A single value has an axis too; and nothing stands on the frame.
        let (low, high) = match is_logarithmic {
            true if low > high => (1.0, 10.0),
            true => (low / 1.5, high * 1.5),
            false => (low, (high * 1.05).max(1.0)),
        };
        Axis { low, high, scale, unit }
    }

    /// On a logarithmic axis nothing is at its edge.
    fn position(&self, value: f64) -> f64 {
        if self.scale == Scale::Logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Linear {
            let step = 10f64.powf((self.high - self.low).log10().floor());
            let step = if (self.high - self.low) / step < 3.0 {
                step / 4.0
            } else {
                step
            };
            let first = (self.low / step).ceil() as i64;
            return (first..=(self.high / step) as i64)
                .map(|tick| tick as f64 * step)
                .collect();
        }
        let decades = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
        decades.map(|decade| 10f64.powi(decade)).collect()
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        limit.0 + (self.position(*value) * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        value.to_string()
    }
}

/// The chart; `None` when the experiment has none, or nothing to draw.
pub(super) fn svg(outcome: &Outcome) -> Option<String> {
    let chart = outcome.chart.as_ref()?;
    let series = outcome.series();
    let points = |(name, points): (String, Vec<(f64, &crate::lab::harness::Estimate)>)| {
        (name, points.into_iter().map(|(x, y)| (x, y.median)).collect())
    };
    let series: Vec<Series> = series.into_iter().map(points).collect();
    if series.is_empty() {
        return None;
    }
    let mut drawn = String::new();
    {
        let area = SVGBackend::with_string(&mut drawn, SIZE).into_drawing_area();
        draw(&area, outcome, chart, &series).ok()?;
    }
    Some(drawn)
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    outcome: &Outcome,
    chart: &Chart,
    series: &[Series],
) -> Result<(), Error> {
    let column = |name: &str| outcome.columns.iter().find(|column| column.name == name);
    let unit = |name: &str| column(name).map_or(Unit::Count, |column| column.unit);
    let title = |name: &str| column(name).map_or("", |column| column.title.as_str());
    let published = chart.published.iter().flat_map(|published| &published.points).copied();
    let all: Vec<(f64, f64)> = series
        .iter()
        .flat_map(|(_, points)| points.iter().copied())
        .chain(published)
        .collect();
    let x = Axis::over(all.iter().map(|(x, _)| *x), chart.x_scale, unit(&chart.x));
    let y = Axis::over(all.iter().map(|(_, y)| *y), chart.y_scale, unit(&chart.y));
    let (x_unit, y_unit) = (x.unit, y.unit);
    area.fill(&WHITE)?;
    let (picture, names) = area.split_horizontally(SIZE.0 - LEGEND);
    let mut context = ChartBuilder::on(&picture)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(x, y)?;
    context
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(title(&chart.x))
        .y_desc(title(&chart.y))
        .x_label_formatter(&|value| figure(*value, x_unit))
        .y_label_formatter(&|value| figure(*value, y_unit))
        .draw()?;
    let entries = curves(&mut context, chart, series)?;
    legend(&names, &entries)?;
    area.present()
}

/// Draws the lines; gives what the legend says of each.
fn curves<'s>(
    context: &mut ChartContext<'_, SVGBackend<'_>, Cartesian2d<Axis, Axis>>,
    chart: &'s Chart,
    series: &'s [Series],
) -> Result<Vec<(&'s str, RGBColor, bool)>, Error> {
    let mut entries = Vec::new();
    for (number, (name, points)) in series.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        // Colours that come again are dashed.
        let dashed = number >= COLOURS.len();
        entries.push((name.as_str(), colour, dashed));
        if dashed {
            let (of, dash) = (points.iter().copied(), (2, 3));
            context.draw_series(DashedLineSeries::new(of, dash.0, dash.1, colour.stroke_width(2)))?;
        } else {
            context.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        }
        context.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled())))?;
    }
    for published in &chart.published {
        let points = published.points.iter().copied();
        context.draw_series(DashedLineSeries::new(points, 6, 4, PUBLISHED.stroke_width(2)))?;
        entries.push((published.label.as_str(), PUBLISHED, true));
    }
    Ok(entries)
}

/// The names of the series, one below the other.
fn legend(area: &DrawingArea<SVGBackend<'_>, Shift>, entries: &[(&str, RGBColor, bool)]) -> Result<(), Error> {
    for (number, (name, colour, dashed)) in entries.iter().enumerate() {
        let y = LEGEND_LINE * (number as i32 + 1);
        let ends: &[(i32, i32)] = if *dashed { &[(4, 10), (16, 22)] } else { &[(4, 22)] };
        for (from, to) in ends {
            area.draw(&PathElement::new([(*from, y), (*to, y)], colour.stroke_width(2)))?;
        }
        area.draw(&Text::new(*name, (30, y - 6), ("sans-serif", 13)))?;
    }
    Ok(())
}
