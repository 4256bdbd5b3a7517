//! Axes of plots: the position of a value, the labelled values, and the grid between the axes. A logarithmic axis reserves a separate
//! position for zero.

use super::svg::{Anchor, Svg};
use super::theme::{FONT_SIZE, LINE_HEIGHT, width_of};
use super::tick;
use crate::lab::outcome::{Scale, Unit};

/// The share of a logarithmic axis for zero and the gap after it.
const ZERO_SHARE: f64 = 0.1;
/// With fewer decades than this, multiples of 2 and 5 are labelled as well.
const FEW_DECADES: usize = 3;
/// Minimum number of steps on a linear axis.
const MIN_STEPS: f64 = 4.0;
/// The minimum distance between two labels.
const LABEL_GAP: f64 = 10.0;

/// An axis. It maps values to positions between 0 and 1.
pub(super) struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    has_zero: bool,
    pub(super) unit: Unit,
}

impl Axis {
    /// Creates an axis that covers these values.
    pub(super) fn covering(values: impl Iterator<Item = f64>, scale: Scale, unit: Unit) -> Axis {
        let is_logarithmic = scale == Scale::Logarithmic;
        let values: Vec<f64> = values.collect();
        let high = values.iter().copied().fold(f64::MIN, f64::max);
        let positive = values.iter().copied().filter(|value| *value > 0.0);
        let low = if is_logarithmic { positive.fold(f64::MAX, f64::min) } else { 0.0 };
        // A single value needs a range too, and points must not touch the frame.
        let (low, high) = match is_logarithmic {
            true if low > high => (1.0, 10.0),
            true => (low / 1.5, high * 1.5),
            false => (low, if high > 0.0 { high * 1.05 } else { 1.0 }),
        };
        Axis { low, high, scale, has_zero: is_logarithmic && values.iter().any(|value| *value <= 0.0), unit }
    }

    /// Returns the position between 0 and 1. Values above the axis are clipped to its end.
    pub(super) fn position(&self, value: f64) -> f64 {
        let value = value.min(self.high);
        if self.scale == Scale::Linear {
            return (value - self.low) / (self.high - self.low);
        }
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        match self.has_zero {
            true if value <= 0.0 => ZERO_SHARE / 4.0,
            true => ZERO_SHARE + (1.0 - ZERO_SHARE) * share,
            false => share,
        }
    }

    /// Returns the values that are labelled.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.scale == Scale::Linear {
            let step = round_step(self.high - self.low);
            return (0..=(self.high / step) as i64).map(|tick| tick as f64 * step).collect();
        }
        let decades = self.low.log10().floor() as i32..=self.high.log10().ceil() as i32;
        let range = self.low..=self.high;
        let whole = decades.clone().map(|decade| 10f64.powi(decade)).filter(|tick| range.contains(tick));
        let mut ticks: Vec<f64> = whole.collect();
        if ticks.len() < FEW_DECADES {
            let parts = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|part| part * 10f64.powi(decade)));
            ticks = parts.filter(|tick| range.contains(tick)).collect();
        }
        self.has_zero.then_some(0.0).into_iter().chain(ticks).collect()
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that gives at least four steps.
fn round_step(range: f64) -> f64 {
    let decade = 10f64.powf(range.log10().floor());
    let steps = [decade, decade / 2.0, decade / 5.0];
    steps.into_iter().find(|step| range / step >= MIN_STEPS).unwrap_or(decade / 5.0)
}

/// The area between the axes of a plot, in units of the SVG.
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + axis.position(value) * (self.right - self.left)
    }

    pub(super) fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - axis.position(value) * (self.bottom - self.top)
    }

    /// Draws a vertical line at each tick of the x axis, and below it as many labels as fit between the edges of the picture.
    pub(super) fn draw_x_axis(&self, svg: &mut Svg, axis: &Axis, edges: [f64; 2]) {
        let baseline = self.bottom + LINE_HEIGHT;
        let labels: Vec<(f64, String)> = axis.ticks().into_iter().map(|value| self.label(axis, value, edges)).collect();
        for value in axis.ticks() {
            let x = self.x(axis, value);
            svg.path("grid", &format!("M{x:.1} {:.1}V{:.1}", self.top, self.bottom));
        }
        // Draws every label, every second label, or every third, so that their distances are regular.
        let step = (1..=labels.len()).find(|step| {
            let kept: Vec<&(f64, String)> = labels.iter().step_by(*step).collect();
            kept.windows(2).all(|pair| {
                let widths = pair.iter().map(|(_, label)| width_of(label));
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
        let half = width_of(&label) / 2.0;
        (self.x(axis, value).min(right - half).max(left + half), label)
    }

    /// Draws a horizontal line at each tick of the y axis, and its label on the left.
    pub(super) fn draw_y_axis(&self, svg: &mut Svg, axis: &Axis) {
        for value in axis.ticks() {
            let y = self.y(axis, value);
            svg.path("grid", &format!("M{:.1} {y:.1}H{:.1}", self.left, self.right));
            let baseline = y + FONT_SIZE * 0.35;
            svg.text((self.left - 6.0, baseline), Anchor::End, &tick(value, axis.unit));
        }
    }

    /// Returns the width of the labels of a y axis.
    pub(super) fn y_label_width(axis: &Axis) -> f64 {
        let widths = axis.ticks().into_iter().map(|value| width_of(&tick(value, axis.unit)));
        widths.fold(0.0, f64::max) + 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_has_a_labelled_position_on_a_logarithmic_axis() {
        let axis = Axis::covering([0.0, 1e6, 1e9].into_iter(), Scale::Logarithmic, Unit::Bytes);
        assert_eq!(axis.ticks(), [0.0, 1e6, 1e7, 1e8, 1e9]);
        assert!(0.0 < axis.position(0.0) && axis.position(0.0) < axis.position(1e6));
        assert!(axis.position(1e9) < 1.0);
        let without = Axis::covering([1e6, 1e9].into_iter(), Scale::Logarithmic, Unit::Bytes);
        assert_eq!(without.ticks()[0], 1e6);
    }

    #[test]
    fn every_axis_has_some_labels() {
        for high in [1.0, 1.7, 3.0, 7.0, 99.0, 12_345.0] {
            let linear = Axis::covering([high].into_iter(), Scale::Linear, Unit::Nanos).ticks();
            assert!((4..=12).contains(&linear.len()), "{high}: {linear:?}");
            let narrow = Axis::covering([high, high * 3.0].into_iter(), Scale::Logarithmic, Unit::Nanos).ticks();
            assert!(narrow.len() >= 2, "{high}: {narrow:?}");
        }
    }
}
