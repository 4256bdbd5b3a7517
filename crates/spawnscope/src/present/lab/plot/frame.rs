//! The area between the axes of a plot: positions in it, its grid, and the labels of its axes.

use super::axis::Axis;
use super::svg::{Anchor, Svg};
use super::theme::Format;
use super::tick;

/// The minimum distance between two labels.
const LABEL_GAP: f64 = 10.0;

/// The area, in units of the SVG.
pub(super) struct Frame<'f> {
    pub(super) format: &'f Format,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame<'_> {
    pub(super) fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.position(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.position(value) * (self.bottom - self.top)
    }

    /// Draws a vertical line at each tick of the x axis, and below it as many labels as fit between the edges of the picture.
    pub(super) fn draw_x_axis(&self, svg: &mut Svg, axis: &Axis, edges: [f64; 2]) {
        let baseline = self.bottom + self.format.line_height();
        let labels: Vec<(f64, String)> = axis.ticks().into_iter().map(|value| self.label(axis, value, edges)).collect();
        for value in axis.ticks() {
            let x = self.x(axis, value);
            svg.path("grid", &format!("M{x:.1} {:.1}V{:.1}", self.top, self.bottom));
        }
        // Draws every label, every second label, or every third, so that their distances are regular.
        let step = (1..=labels.len()).find(|step| {
            let kept: Vec<&(f64, String)> = labels.iter().step_by(*step).collect();
            kept.windows(2).all(|pair| {
                let widths = pair.iter().map(|(_, label)| self.format.width_of(label));
                pair[1].0 - pair[0].0 >= widths.sum::<f64>() / 2.0 + LABEL_GAP
            })
        });
        for (middle, label) in labels.iter().step_by(step.unwrap_or(1)) {
            svg.text((*middle, baseline), Anchor::Middle, label);
        }
    }

    /// Returns the label of a tick, and its middle, which is below the tick or as near as the edges allow.
    fn label(&self, axis: &Axis, value: f64, [left, right]: [f64; 2]) -> (f64, String) {
        let label = tick(value, axis.unit);
        let half = self.format.width_of(&label) / 2.0;
        (self.x(axis, value).min(right - half).max(left + half), label)
    }

    /// Draws a horizontal line at each tick of the y axis, and its label on the left.
    pub(super) fn draw_y_axis(&self, svg: &mut Svg, axis: &Axis) {
        for value in axis.ticks() {
            let y = self.y(axis, value);
            svg.path("grid", &format!("M{:.1} {y:.1}H{:.1}", self.left, self.right));
            let baseline = y + self.format.font_size * 0.35;
            svg.text((self.left - 6.0, baseline), Anchor::End, &tick(value, axis.unit));
        }
    }

    /// Returns the width of the labels of a y axis.
    pub(super) fn y_label_width(format: &Format, axis: &Axis) -> f64 {
        let widths = axis.ticks().into_iter().map(|value| format.width_of(&tick(value, axis.unit)));
        widths.fold(0.0, f64::max) + 6.0
    }
}
