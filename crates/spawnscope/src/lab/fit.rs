//! Straight lines through what was measured, which a few outliers do not move.

use super::outcome::{Fit, Outcome};
use crate::statistics::{median, theil_sen_slope};

/// Fewer points have no line.
const FEWEST_POINTS: usize = 3;

impl Outcome {
    /// Adds a line for each series of the chart; the slope is for each `unit` of the x axis, which is called `per`.
    pub fn fit(&mut self, x: &str, unit: f64, per: &str) {
        if self.chart.as_ref().is_none_or(|chart| chart.x != x) {
            return;
        }
        let fits = self.series().into_iter().filter_map(|(series, points)| {
            let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(x, y)| (x / unit, y.median)).unzip();
            line(&x, &y).map(|(at_zero_ns, slope_ns, r_squared)| Fit {
                series,
                at_zero_ns,
                slope_ns,
                per: per.to_owned(),
                r_squared,
            })
        });
        self.fits = fits.collect();
    }
}

/// Value at nothing, slope, and the share of variance explained.
fn line(x: &[f64], y: &[f64]) -> Option<(f64, f64, Option<f64>)> {
    if x.len() < FEWEST_POINTS {
        return None;
    }
    let slope = theil_sen_slope(x, y)?;
    let at_zero = median(x.iter().zip(y).map(|(x, y)| y - slope * x))?;
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let around = |of: &dyn Fn(f64) -> f64| x.iter().zip(y).map(|(x, y)| (y - of(*x)).powi(2)).sum::<f64>();
    let (left, all) = (around(&|x| at_zero + slope * x), around(&|_| mean));
    let explained = (all > 0.0).then(|| (1.0 - left / all).max(0.0));
    Some((at_zero, slope, explained))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again_with_one_point_beside_it() {
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let y = [10.0, 12.0, 14.0, 16.0, 18.0, 100.0, 22.0];
        let (at_zero, slope, explained) = line(&x, &y).unwrap();
        assert_eq!((at_zero, slope), (10.0, 2.0));
        assert!(explained.unwrap() < 0.5, "the outlier is told");
        assert_eq!(line(&x[..2], &y[..2]), None);
        assert_eq!(line(&x, &[3.0; 7]).unwrap().2, None, "nothing varies");
    }
}
