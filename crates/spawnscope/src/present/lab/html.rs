//! The lab's report as one self-contained page: a plot of each experiment with an x axis, and the
//! same text that a terminal shows.
//!
//! A plot is an SVG with a line for each series, with the intervals of its points. Plots have no
//! title: the page has it. An SVG contains its style sheet, so that a plot that is copied out of
//! its page keeps its look in a light and in a dark theme.

use std::fmt::Write as _;

use super::terminal::{experiment, render_end};
use super::values::{self, figure, is_shown, title_and_unit};
use crate::lab::measurements::Estimate;
use crate::lab::outcome::{BenchReport, Outcome, Scale, Unit};
use crate::present::text::{escape, width};

/// The size of a plot without its legend, the width of the labels of the y axis, and the height of
/// a line of text, in units of the SVG.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 400.0;
const LABELS: f64 = 70.0;
const LINE: f64 = 21.0;
/// The share of a logarithmic axis for zero and the gap after it.
const ZERO_SHARE: f64 = 0.1;
/// Colours of series for the light and for the dark theme. Readers with any colour vision
/// deficiency can distinguish them.
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#e69f00"),
    ("#7a1f5c", "#c06090"),
    ("#3399ee", "#aaeeff"),
    ("#2200bb", "#8844ff"),
    ("#555500", "#ffdd99"),
    ("#9000ff", "#6688dd"),
    ("#995566", "#ee0000"),
];
/// Patterns of lines. All colours are used with one before the next one is used.
const DASHES: [&str; 4] = ["none", "7 3", "2 3", "8 3 2 3"];
const STYLE: &str = "text{fill:#24292f}.back{fill:#fff}.grid{stroke:#dde1e6}.line{fill:none;stroke:currentColor;stroke-width:2}\
    .thin{stroke:currentColor;opacity:.5}@media(prefers-color-scheme:dark){text{fill:#e3e7ec}.back{fill:#161a20}.grid{stroke:#3a414b}}";

type Points<'o> = Vec<(f64, &'o Estimate)>;

/// Draws an experiment. Returns `None` if it has no x axis, or no point can be shown.
fn svg(outcome: &Outcome) -> Option<String> {
    let chart = outcome.chart.as_ref()?;
    let mut series: Vec<(String, Points<'_>)> = outcome.series();
    for (_, points) in &mut series {
        points.retain(|(_, y)| is_shown(y));
        points.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    }
    let all = || series.iter().flat_map(|(_, points)| points);
    all().next()?;
    let ((x_title, x_unit), (y_title, y_unit)) = (title_and_unit(outcome, &chart.x), title_and_unit(outcome, &chart.y));
    let x = Axis::covering(all().map(|(x, _)| *x), chart.scale, x_unit, [LABELS, WIDTH - 20.0]);
    let y = Axis::covering(all().map(|(_, y)| y.high), chart.scale, y_unit, [HEIGHT - 2.0 * LINE, LINE]);
    let mut body = String::new();
    draw_axes(&mut body, &x, &y);
    text(&mut body, (0.0, LINE * 0.7), "start", y_title);
    text(&mut body, (f64::midpoint(LABELS, WIDTH), HEIGHT), "middle", x_title);
    for (number, (_, points)) in series.iter().enumerate() {
        draw_series(&mut body, (&x, &y), points, number);
    }
    let bottom = draw_legend(&mut body, series.iter().map(|(name, _)| name.as_str()));
    let mut style = STYLE.to_owned();
    for (number, (light, dark)) in COLOURS.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ =
            write!(style, ".c{number}{{color:{light}}}@media(prefers-color-scheme:dark){{.c{number}{{color:{dark}}}}}");
    }
    Some(format!(
        "<svg role=\"img\" aria-label=\"Plot: {} by {}\" width=\"{WIDTH}\" height=\"{bottom:.0}\" viewBox=\"0 0 {WIDTH} {bottom:.0}\" \
         font-family=\"system-ui,sans-serif\" font-size=\"13\" xmlns=\"http://www.w3.org/2000/svg\">\n<style>{style}</style>\n\
         <path class=\"back\" d=\"M0 0H{WIDTH}V{bottom:.0}H0z\"/>\n{body}</svg>\n",
        escape_html(y_title),
        escape_html(x_title),
    ))
}

fn draw_axes(body: &mut String, x: &Axis, y: &Axis) {
    let ([left, right], [bottom, top]) = (x.ends, y.ends);
    let mut free_from = 0.0;
    for value in x.ticks() {
        let (at, label) = (x.at(value), tick(value, x.unit));
        let _ = writeln!(body, "<path class=\"grid\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>");
        // A label that would touch the one before it is omitted.
        let half = width(&label) as f64 * 4.0;
        if at - half >= free_from {
            text(body, (at, bottom + LINE * 0.8), "middle", &label);
            free_from = at + half + 8.0;
        }
    }
    for value in y.ticks() {
        let at = y.at(value);
        let _ = writeln!(body, "<path class=\"grid\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>");
        text(body, (left - 6.0, at + 4.0), "end", &tick(value, y.unit));
    }
}

fn draw_series(body: &mut String, (x, y): (&Axis, &Axis), points: &[(f64, &Estimate)], number: usize) {
    let (mut line, mut intervals) = (String::new(), String::new());
    for (position, estimate) in points {
        let command = if line.is_empty() { 'M' } else { 'L' };
        let at = x.at(*position);
        let _ = write!(line, "{command}{at:.1} {:.1}", y.at(estimate.median));
        let _ = write!(intervals, "M{at:.1} {:.1}V{:.1}", y.at(estimate.low), y.at(estimate.high));
    }
    let _ = writeln!(
        body,
        "<g class=\"{}\"><path class=\"thin\" d=\"{intervals}\"/>{}</g>",
        class(number),
        stroke(&line, number)
    );
}

/// Draws a sample of each line with its name, and returns the bottom of the picture.
fn draw_legend<'n>(body: &mut String, names: impl Iterator<Item = &'n str>) -> f64 {
    const COLUMNS: usize = 4;
    let mut bottom = HEIGHT + LINE;
    for (number, name) in names.enumerate() {
        let left = (number % COLUMNS) as f64 * WIDTH / COLUMNS as f64;
        let middle = HEIGHT + LINE * (1.2 + (number / COLUMNS) as f64);
        let _ = writeln!(
            body,
            "<g class=\"{}\">{}</g>",
            class(number),
            stroke(&format!("M{left:.1} {middle:.1}h30"), number)
        );
        text(body, (left + 38.0, middle + 4.0), "start", name);
        bottom = middle + LINE;
    }
    bottom
}

fn class(number: usize) -> String {
    format!("c{}", number % COLOURS.len())
}

fn stroke(path: &str, number: usize) -> String {
    let dash = DASHES[number / COLOURS.len() % DASHES.len()];
    format!("<path class=\"line\" stroke-dasharray=\"{dash}\" d=\"{path}\"/>")
}

fn text(body: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = writeln!(body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape_html(text));
}

/// Formats a value of an axis, without trailing zeros. Zero has no unit.
fn tick(value: f64, unit: Unit) -> String {
    let text = if value == 0.0 { "0".to_owned() } else { figure(value, unit) };
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// An axis between two ends of the picture. A logarithmic axis has a position of its own for zero.
struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    unit: Unit,
    ends: [f64; 2],
}

impl Axis {
    fn covering(values: impl Iterator<Item = f64>, scale: Scale, unit: Unit, ends: [f64; 2]) -> Axis {
        let values: Vec<f64> = values.collect();
        let high = values.iter().copied().fold(1.0, f64::max);
        let least = values.into_iter().filter(|value| *value > 0.0).fold(high, f64::min);
        let (low, high) = match scale {
            Scale::Linear => (0.0, high * 1.05),
            Scale::Logarithmic => (least / 1.5, high * 1.5),
        };
        Axis { low, high, scale, unit, ends }
    }

    fn at(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => value / self.high,
            Scale::Logarithmic if value <= 0.0 => ZERO_SHARE / 4.0,
            Scale::Logarithmic => {
                let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
                ZERO_SHARE + (1.0 - ZERO_SHARE) * share
            }
        };
        self.ends[0] + share.clamp(0.0, 1.0) * (self.ends[1] - self.ends[0])
    }

    /// Returns the values that are labelled: at least four, at round distances, or powers of ten.
    fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Logarithmic {
            let decades = self.low.log10().ceil() as i32..=self.high.log10().floor() as i32;
            return std::iter::once(0.0).chain(decades.map(|decade| 10f64.powi(decade))).collect();
        }
        let decade = 10f64.powf(self.high.log10().floor());
        let steps = [decade, decade / 2.0, decade / 5.0];
        let step = steps.into_iter().find(|step| self.high / step >= 4.0).unwrap_or(decade / 5.0);
        (0..=(self.high / step) as i64).map(|tick| tick as f64 * step).collect()
    }
}

fn escape_html(text: &str) -> String {
    escape(text.as_bytes()).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const TEXT_WIDTH: usize = 120;
const PAGE_STYLE: &str = ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em}\
    pre{overflow-x:auto;font-size:13px}svg{max-width:100%;height:auto}@media(prefers-color-scheme:dark){body{background:#161a20;color:#e3e7ec}}";

pub fn html(report: &BenchReport) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
         <title>spawnscope bench</title><style>{PAGE_STYLE}</style></head>\n\
         <body><h1>What a launch costs here</h1>\n<p>{}</p>\n",
        escape_html(&values::describe_machine(&report.machine))
    );
    if report.quick {
        page.push_str("<p>quick measurement: small sizes, wide intervals</p>\n");
    }
    write_text(&render_end(report, TEXT_WIDTH), &mut page);
    for outcome in &report.experiments {
        page.push_str(&svg(outcome).unwrap_or_default());
        write_text(&experiment(outcome, true, TEXT_WIDTH), &mut page);
    }
    page.push_str("</body></html>\n");
    page
}

fn write_text(text: &str, page: &mut String) {
    let plain = anstream::adapter::strip_str(text).to_string();
    let lines: Vec<String> = plain.trim().lines().map(escape_html).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<pre>{}</pre>", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_has_labels_and_a_place_for_zero() {
        let axis = Axis::covering([0.0, 1e6, 1e9].into_iter(), Scale::Logarithmic, Unit::Bytes, [0.0, 100.0]);
        assert_eq!(axis.ticks(), [0.0, 1e6, 1e7, 1e8, 1e9]);
        assert!(0.0 < axis.at(0.0) && axis.at(0.0) < axis.at(1e6) && axis.at(1e9) < 100.0);
        for high in [1.0, 1.7, 3.0, 7.0, 99.0, 12_345.0] {
            let linear = Axis::covering([high].into_iter(), Scale::Linear, Unit::Nanos, [0.0, 1.0]).ticks();
            assert!((4..=12).contains(&linear.len()), "{high}: {linear:?}");
        }
        let labels = [0.0, 100.0, 1_500_000.0, 1e9].map(|value| tick(value, Unit::Nanos));
        assert_eq!(labels, ["0", "100 ns", "1.5 ms", "1 s"]);
    }
}
