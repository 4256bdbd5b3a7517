//! The legend below a plot: what each look means.

use super::series::{Points, Series};
use super::svg::{Anchor, Svg};
use super::theme::{FONT_SIZE, LINE_HEIGHT, colour, dash, mark, width_of};

/// Width of the sample of a look, in units of the SVG.
const SAMPLE_WIDTH: f64 = 30.0;
/// Width of the gaps around a name, in units of the SVG.
const GAP: f64 = 8.0;

/// Draws a sample of each line with its name. `area` is the left edge, the top and the width. Returns the bottom of the legend.
pub(super) fn draw_lines(svg: &mut Svg, series: &[Series<'_>], area: (f64, f64, f64)) -> f64 {
    let names: Vec<&str> = series.iter().map(|one| one.name.as_str()).collect();
    draw(svg, &names, area, |svg, number, (x, y)| {
        let one = &series[number];
        let line = format!("M{x:.1} {y:.1}h{SAMPLE_WIDTH}");
        if let Points::Published(_) = one.points {
            svg.path("line p ink", &line);
            return;
        }
        let (colour, dash) = (colour(one.look.colour), dash(one.look.dash));
        svg.path(&format!("line {colour} {dash}"), &line);
        let middle = x + SAMPLE_WIDTH / 2.0;
        svg.path(&format!("mark {colour}"), &format!("M{middle:.1} {y:.1}{}", mark(one.look.colour)));
    })
}

/// Draws a sample of each kind of bar with its name. Otherwise like `draw_lines`.
pub(super) fn draw_bars(svg: &mut Svg, names: &[&str], area: (f64, f64, f64)) -> f64 {
    draw(svg, names, area, |svg, number, (x, y)| {
        let bar = format!("M{x:.1} {:.1}h{SAMPLE_WIDTH}v10h-{SAMPLE_WIDTH}z", y - 5.0);
        svg.path(&format!("mark {}", colour(number)), &bar);
    })
}

/// Arranges names in as many columns as fit. `sample` draws the sample before a name; its position is the left end of the sample's middle line.
fn draw(
    svg: &mut Svg,
    names: &[&str],
    (left, top, width): (f64, f64, f64),
    sample: impl Fn(&mut Svg, usize, (f64, f64)),
) -> f64 {
    let line = LINE_HEIGHT;
    let longest = names.iter().map(|name| width_of(name)).fold(0.0, f64::max);
    let columns = ((width / (SAMPLE_WIDTH + 2.0 * GAP + longest)) as usize).max(1);
    let rows = names.len().div_ceil(columns);
    for (number, name) in names.iter().enumerate() {
        // Names fill one column after the other.
        let x = left + (number / rows.max(1)) as f64 * width / columns as f64;
        let y = top + (number % rows.max(1)) as f64 * line + line / 2.0;
        sample(svg, number, (x, y));
        svg.text((x + SAMPLE_WIDTH + GAP, y + FONT_SIZE * 0.35), Anchor::Start, name);
    }
    top + rows as f64 * line
}
