//! Whether a straight line fits the points, and if not, what a unit costs at either end.

use serde::{Deserialize, Serialize};

use super::effect::is_within_noise;
use super::fit::within_intervals;
use super::harness::Estimate;
use super::outcome::Outcome;

/// A line that explains less of the variance does not hold.
const MIN_EXPLAINED: f64 = 0.95;
const BYTES_IN_A_MB: f64 = 1e6;

/// How well a line describes its points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Linearity {
    /// Whether the slope may be used: it explains the points, and holds for both halves of them.
    #[serde(default)]
    pub holds: bool,
    /// Whether the slopes of the lower and the upper half contradict each other.
    #[serde(default)]
    pub bends: bool,
    /// If the line does not hold: pairs of an x, in units of the slope, and the nanoseconds per unit between the first point and that x.
    /// For the first x with a cost beyond the noise, and for the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<(f64, f64)>,
}

impl Linearity {
    /// Judges a line through these points that explains this share of their variance.
    pub(super) fn of(points: &[(f64, &Estimate)], explained: Option<f64>) -> Linearity {
        let mut points = points.to_vec();
        points.sort_by(|(x, _), (other, _)| x.total_cmp(other));
        let bends = bends(&points);
        let holds = !bends && explained.is_some_and(|share| share >= MIN_EXPLAINED);
        let each_ns = if holds { Vec::new() } else { at_the_ends(&points) };
        Linearity { holds, bends, each_ns }
    }
}

impl Outcome {
    /// Judges each line again, because reports stored by old versions lack the result.
    pub fn judge_lines(&mut self) {
        let series = self.series();
        let mut found = Vec::new();
        for fit in &self.fits {
            let unit = if fit.per == "MB" { BYTES_IN_A_MB } else { 1.0 };
            let points = series.iter().find(|(name, _)| *name == fit.series);
            let points = points.map_or(&[][..], |(_, points)| points);
            let scaled: Vec<(f64, &Estimate)> = points.iter().map(|(x, y)| (x / unit, *y)).collect();
            found.push(Linearity::of(&scaled, fit.r_squared));
        }
        for (fit, found) in self.fits.iter_mut().zip(found) {
            fit.linearity = found;
        }
    }
}

/// Whether the slopes that the noise allows for one half of the points exclude all that it allows for the other half. The middle point of
/// an odd number belongs to both halves.
fn bends(points: &[(f64, &Estimate)]) -> bool {
    let half = points.len().div_ceil(2);
    let lower = within_intervals(&points[..half]);
    let upper = within_intervals(&points[points.len() - half..]);
    match (lower, upper) {
        (Some(lower), Some(upper)) => lower.high < upper.low || upper.high < lower.low,
        _ => false,
    }
}

fn at_the_ends(points: &[(f64, &Estimate)]) -> Vec<(f64, f64)> {
    let Some(((start, first), others)) = points.split_first() else {
        return Vec::new();
    };
    let each = |(x, y): &(f64, &Estimate)| (*x, (y.median - first.median) / (x - start));
    let mut candidates = others
        .iter()
        .filter(|(x, y)| x > start && !is_within_noise(first, y))
        .map(each);
    let near = candidates.next();
    near.into_iter().chain(candidates.next_back()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(half: f64, medians: &[f64]) -> Vec<Estimate> {
        let estimate = |median: &f64| Estimate::made_up(*median, half, 9);
        medians.iter().map(estimate).collect()
    }

    fn judged(x: &[f64], half: f64, medians: &[f64], explained: f64) -> Linearity {
        let estimates = estimates(half, medians);
        let points: Vec<(f64, &Estimate)> = x.iter().copied().zip(&estimates).collect();
        Linearity::of(&points, Some(explained))
    }

    const COUNTS: [f64; 5] = [0.0, 10.0, 50.0, 100.0, 300.0];

    #[test]
    fn a_quadratic_curve_is_not_a_line_and_has_a_cost_at_either_end() {
        let quadratic = COUNTS.map(|x| 1000.0 + 90.0 * x + x * x);
        let found = judged(&COUNTS, 20.0, &quadratic, 0.99);
        assert!(found.bends && !found.holds, "despite its explained variance");
        assert_eq!(found.each_ns, [(10.0, 100.0), (300.0, 390.0)]);
    }

    #[test]
    fn a_line_holds_and_one_within_wide_noise_does_too() {
        let line = COUNTS.map(|x| 1000.0 + 90.0 * x);
        let found = judged(&COUNTS, 20.0, &line, 0.99);
        assert_eq!((found.holds, found.bends, found.each_ns.len()), (true, false, 0));
        let bent = COUNTS.map(|x| 1000.0 + 90.0 * x + 0.01 * x * x);
        assert!(judged(&COUNTS, 500.0, &bent, 0.99).holds, "the noise allows a line");
    }

    #[test]
    fn a_weak_fit_is_not_a_line_and_noise_near_the_first_point_is_not_a_cost() {
        let found = judged(&COUNTS, 300.0, &[1000.0, 900.0, 5000.0, 7000.0, 31_000.0], 0.94);
        assert!(!found.holds);
        assert_eq!(found.each_ns, [(50.0, 80.0), (300.0, 100.0)]);
    }
}
