//! Judges whether a straight line fits the points. If not, computes what a unit costs near the
//! first point and at the last one.

use serde::{Deserialize, Serialize};

use super::fit::slope_within_intervals;
use super::harness::Estimate;
use super::noise_notes::is_within_noise;

/// A line that explains a smaller share of the variance than this does not hold.
const MIN_EXPLAINED: f64 = 0.95;

/// How well a line describes its points.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Linearity {
    /// Whether the slope may be used: the line explains the points, and its slope holds for both
    /// halves of them.
    pub holds: bool,
    /// Whether the slopes of the lower and the upper half contradict each other.
    pub bends: bool,
    /// Empty if the line holds. Otherwise pairs of an x, in units of the slope, and the nanoseconds
    /// per unit between the first point and that x: one pair for the first x whose cost is beyond
    /// the noise, and one for the last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each_ns: Vec<(f64, f64)>,
}

impl Linearity {
    /// Judges a line through these points. `explained` is the share of their variance that it
    /// explains.
    pub(super) fn judge(points: &[(f64, &Estimate)], explained: Option<f64>) -> Linearity {
        let mut points = points.to_vec();
        points.sort_by(|(x, _), (other, _)| x.total_cmp(other));
        let bends = bends(&points);
        let holds = !bends && explained.is_some_and(|share| share >= MIN_EXPLAINED);
        let each_ns = if holds { Vec::new() } else { costs_at_ends(&points) };
        Linearity { holds, bends, each_ns }
    }
}

/// Returns whether the slopes of the two halves of the points have intervals that do not overlap.
/// The middle point of an odd number belongs to both halves.
fn bends(points: &[(f64, &Estimate)]) -> bool {
    let half = points.len().div_ceil(2);
    let lower = slope_within_intervals(&points[..half]);
    let upper = slope_within_intervals(&points[points.len() - half..]);
    match (lower, upper) {
        (Some(lower), Some(upper)) => lower.high < upper.low || upper.high < lower.low,
        _ => false,
    }
}

/// Returns the pairs of `Linearity::each_ns`.
fn costs_at_ends(points: &[(f64, &Estimate)]) -> Vec<(f64, f64)> {
    let Some(((start, first), others)) = points.split_first() else {
        return Vec::new();
    };
    let mut candidates = others
        .iter()
        .filter(|(x, y)| x > start && !is_within_noise(first, y))
        .map(|(x, y)| (*x, (y.median - first.median) / (x - start)));
    let first_cost = candidates.next();
    first_cost.into_iter().chain(candidates.next_back()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimates(half: f64, medians: &[f64]) -> Vec<Estimate> {
        medians.iter().map(|median| Estimate::for_test(*median, half, 9)).collect()
    }

    fn judge_line(x: &[f64], half: f64, medians: &[f64], explained: f64) -> Linearity {
        let estimates = estimates(half, medians);
        let points: Vec<(f64, &Estimate)> = x.iter().copied().zip(&estimates).collect();
        Linearity::judge(&points, Some(explained))
    }

    const COUNTS: [f64; 5] = [0.0, 10.0, 50.0, 100.0, 300.0];

    #[test]
    fn a_quadratic_curve_is_not_a_line_and_has_different_costs_at_its_ends() {
        let quadratic = COUNTS.map(|x| 1000.0 + 90.0 * x + x * x);
        let found = judge_line(&COUNTS, 20.0, &quadratic, 0.99);
        assert!(found.bends && !found.holds, "despite its explained variance");
        assert_eq!(found.each_ns, [(10.0, 100.0), (300.0, 390.0)]);
    }

    #[test]
    fn a_line_holds_and_so_does_a_bent_curve_within_wide_noise() {
        let line = COUNTS.map(|x| 1000.0 + 90.0 * x);
        let found = judge_line(&COUNTS, 20.0, &line, 0.99);
        assert_eq!((found.holds, found.bends, found.each_ns.len()), (true, false, 0));
        let bent = COUNTS.map(|x| 1000.0 + 90.0 * x + 0.01 * x * x);
        assert!(judge_line(&COUNTS, 500.0, &bent, 0.99).holds, "the noise allows a line");
    }

    #[test]
    fn a_weak_fit_does_not_hold_and_differences_within_the_noise_are_no_cost() {
        let found = judge_line(&COUNTS, 300.0, &[1000.0, 900.0, 5000.0, 7000.0, 31_000.0], 0.94);
        assert!(!found.holds);
        assert_eq!(found.each_ns, [(50.0, 80.0), (300.0, 100.0)]);
    }
}
