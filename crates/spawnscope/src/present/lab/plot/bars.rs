//! Small tables as bars: a group per row, and a bar per drawn column with its interval.

use super::axis::{Axis, Frame};
use super::legend;
use super::svg::{Anchor, Svg};
use super::theme::{FONT_SIZE, LINE_HEIGHT, WIDTH, colour, width_of};
use crate::lab::harness::Estimate;
use crate::lab::outcome::label;
use crate::lab::outcome::{Column, Outcome, Row, Scale};
use crate::present::lab::values::{format_estimate, is_shown};
use crate::present::text::truncate;

/// Height of a bar, in units of the SVG.
const BAR_HEIGHT: f64 = 17.0;
/// Distance between groups, in units of the SVG.
const GROUP_GAP: f64 = 9.0;
/// Maximum share of the width for labels beside bars.
const MAX_LABEL_SHARE: f64 = 0.4;
/// The longest figure that can follow a bar.
const LONGEST_FIGURE: &str = "~8,888 us";

/// Draws the bars. Returns `None` if nothing was measured.
pub(super) fn draw(outcome: &Outcome) -> Option<String> {
    let bars = outcome.bars.iter();
    let columns: Vec<&Column> =
        bars.filter_map(|name| outcome.columns.iter().find(|column| column.name == *name)).collect();
    let values =
        outcome.rows.iter().flat_map(|row| columns.iter().filter_map(|column| row.get(&column.name).estimate()));
    let values: Vec<&Estimate> = values.filter(|value| is_shown(value)).collect();
    let unit = columns.first()?.unit;
    if values.is_empty() {
        return None;
    }
    let axis = Axis::covering(values.iter().map(|value| value.high), Scale::Linear, unit);
    let mut bars = Bars {
        outcome,
        columns,
        axis,
        frame: Frame {
            left: labels_width(outcome) + GROUP_GAP,
            right: WIDTH - width_of(LONGEST_FIGURE),
            top: 4.0,
            bottom: 0.0,
        },
    };
    bars.frame.bottom = bars.frame.top + bars.group_height() * outcome.rows.len() as f64;
    Some(bars.draw())
}

struct Bars<'o> {
    outcome: &'o Outcome,
    columns: Vec<&'o Column>,
    axis: Axis,
    frame: Frame,
}

/// Returns the width of the labels of the groups.
fn labels_width(outcome: &Outcome) -> f64 {
    let widths = outcome.rows.iter().map(|row| width_of(&label(outcome, row)));
    widths.fold(0.0, f64::max).min(WIDTH * MAX_LABEL_SHARE)
}

impl Bars<'_> {
    /// Returns the height of a group with the gap after it.
    fn group_height(&self) -> f64 {
        BAR_HEIGHT * self.columns.len() as f64 + GROUP_GAP
    }

    fn draw(&self) -> String {
        let frame = &self.frame;
        let mut svg = Svg::new();
        frame.draw_x_axis(&mut svg, &self.axis, [0.0, WIDTH]);
        for (number, row) in self.outcome.rows.iter().enumerate() {
            self.draw_group(&mut svg, row, frame.top + self.group_height() * number as f64);
        }
        let mut end = frame.bottom + 1.5 * LINE_HEIGHT;
        let names: Vec<&str> = self.columns.iter().map(|column| column.title.as_str()).collect();
        if names.len() > 1 {
            end = legend::draw_bars(&mut svg, &names, (0.0, end, WIDTH));
        }
        svg.finish(end, &format!("Plot: {}", names.join(", ")))
    }

    fn draw_group(&self, svg: &mut Svg, row: &Row, top: f64) {
        let characters = (self.frame.left / width_of("n")) as usize;
        let baseline = top + BAR_HEIGHT * self.columns.len() as f64 / 2.0 + FONT_SIZE * 0.35;
        svg.text((0.0, baseline), Anchor::Start, &truncate(&label(self.outcome, row), characters));
        for (position, column) in self.columns.iter().enumerate() {
            if let Some(value) = row.get(&column.name).estimate() {
                self.draw_bar(svg, value, top + BAR_HEIGHT * position as f64, position);
            }
        }
    }

    fn draw_bar(&self, svg: &mut Svg, value: &Estimate, top: f64, position: usize) {
        let (frame, middle) = (&self.frame, top + BAR_HEIGHT / 2.0);
        let baseline = middle + FONT_SIZE * 0.35;
        let text = format_estimate(value, self.axis.unit);
        if !is_shown(value) {
            svg.text((frame.left + 6.0, baseline), Anchor::Start, &text);
            return;
        }
        let left = frame.left;
        let [end, low, high] = [value.median, value.low, value.high].map(|value| frame.x(&self.axis, value));
        let bar =
            format!("M{left:.1} {:.1}H{:.1}V{:.1}H{left:.1}z", top + 1.0, end.max(left + 1.0), top + BAR_HEIGHT - 2.0);
        svg.path(&format!("mark {}", colour(position)), &bar);
        let [above, below] = [middle - 3.5, middle + 2.5];
        let interval = format!(
            "M{low:.1} {above:.1}V{below:.1}M{high:.1} {above:.1}V{below:.1}M{low:.1} {:.1}H{high:.1}",
            middle - 0.5
        );
        svg.path("thin ink", &interval);
        svg.text((high.max(end) + 6.0, baseline), Anchor::Start, &text);
    }
}
