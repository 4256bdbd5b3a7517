//! Fits straight lines through measured points, robust against a few outliers.

use super::measurements::{Estimate, MIN_ROUNDS, Measurements};
use super::outcome::{Fit, Outcome};
use spawnscope_data::statistics::{median, theil_sen_slope};

/// Minimum share of the variance that a line must explain to hold.
const MIN_EXPLAINED: f64 = 0.95;
const MIN_POINTS: usize = 4;

impl Outcome {
    /// Fits a line to each series of the chart that has enough points and a slope beyond their
    /// noise. A note lists the series whose slope is within the noise. Slopes are per `unit` of the
    /// column along the x axis; `unit_name` is the name of that unit.
    pub fn fit(&mut self, unit: f64, unit_name: &str) {
        self.add_lines(unit, unit_name, |_, points| slope_within_intervals(points));
    }

    /// Like `fit`, if each round measured the values of x one after the other, in a sweep. The
    /// points of a sweep depend on each other, so each sweep gives one slope, and the interval is
    /// that of these slopes. An interval of independent points would be too narrow: it was 1 %, and
    /// two runs within a minute differed by 9 %.
    pub fn fit_sweeps(&mut self, unit: f64, unit_name: &str, measured: &[Measurements]) {
        let series = self.points(measured.iter().filter(|case| case.has_results()).map(Some));
        self.add_lines(unit, unit_name, |name, _| {
            let (_, cases) = series.iter().find(|(other, _)| other == name)?;
            slope_over_sweeps(cases, unit)
        });
    }

    fn add_lines(
        &mut self,
        unit: f64,
        unit_name: &str,
        find_slope: impl Fn(&str, &[(f64, &Estimate)]) -> Option<Estimate>,
    ) {
        let (mut fits, mut flat) = (Vec::new(), Vec::new());
        for (series, points) in self.series() {
            let scaled: Vec<(f64, &Estimate)> = points.iter().map(|(x, y)| (x / unit, *y)).collect();
            match find_slope(&series, &scaled).filter(|_| points.len() >= MIN_POINTS) {
                Some(slope) if slope.low > 0.0 || slope.high < 0.0 => {
                    fits.extend(line_through(series, &scaled, &slope, unit_name));
                }
                Some(_) => flat.push(series),
                None => {}
            }
        }
        self.fits = fits;
        if !flat.is_empty() {
            self.note(format!("no slope beyond the noise: {}", flat.join("; ")));
        }
    }
}

fn line_through(series: String, points: &[(f64, &Estimate)], slope: &Estimate, unit_name: &str) -> Option<Fit> {
    let at_zero = median(points.iter().map(|(x, y)| y.median - slope.median * x))?;
    let mean = points.iter().map(|(_, y)| y.median).sum::<f64>() / points.len() as f64;
    let unexplained = sum_of_squares(points, |x| at_zero + slope.median * x);
    let total = sum_of_squares(points, |_| mean);
    let r_squared = (total > 0.0).then(|| (1.0 - unexplained / total).max(0.0));
    Some(Fit {
        series,
        at_zero_ns: at_zero,
        slope_ns: slope.median,
        slope_interval_ns: [slope.low, slope.high],
        x_unit: unit_name.to_owned(),
        r_squared,
        holds: r_squared.is_some_and(|share| share >= MIN_EXPLAINED),
    })
}

fn sum_of_squares(points: &[(f64, &Estimate)], model: impl Fn(f64) -> f64) -> f64 {
    points.iter().map(|(x, y)| (y.median - model(*x)).powi(2)).sum()
}

/// Returns the median of the slopes of all complete sweeps, with its interval.
fn slope_over_sweeps(cases: &[(f64, &Measurements)], unit: f64) -> Option<Estimate> {
    let sweeps = cases.iter().map(|(_, case)| case.rounds.len()).min()?;
    let x: Vec<f64> = cases.iter().map(|(x, _)| x / unit).collect();
    let slopes = (0..sweeps).filter_map(|sweep| {
        let y: Option<Vec<f64>> = cases.iter().map(|(_, case)| case.rounds[sweep].first().copied()).collect();
        theil_sen_slope(&x, &y?)
    });
    let slopes: Vec<f64> = slopes.collect();
    Estimate::from_values(&slopes).filter(|found| found.rounds >= MIN_ROUNDS)
}

/// Returns the median slope over all pairs of points. The intervals of two points permit a range of
/// slopes. The interval of the result extends from the median of the lower ends of these ranges to
/// the median of their upper ends.
fn slope_within_intervals(points: &[(f64, &Estimate)]) -> Option<Estimate> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().map(|(x, y)| (*x, y.median)).unzip();
    let (mut least, mut most) = (Vec::new(), Vec::new());
    for (number, (x, y)) in points.iter().enumerate() {
        for (other_x, other) in points.iter().skip(number + 1).filter(|(other_x, _)| other_x != x) {
            let ((lower, upper), distance) =
                if x < other_x { ((y, other), other_x - x) } else { ((other, y), x - other_x) };
            least.push((upper.low - lower.high) / distance);
            most.push((upper.high - lower.low) / distance);
        }
    }
    let (median_slope, rounds) = (theil_sen_slope(&x, &y)?, points.len());
    Some(Estimate { median: median_slope, low: median(least)?, high: median(most)?, rounds })
}

#[cfg(test)]
mod tests {
    use super::super::measurements::Value;
    use super::super::outcome::{Row, Scale, Unit, key, measure};
    use super::*;

    fn estimates(half: f64, medians: &[f64]) -> Vec<Estimate> {
        medians.iter().map(|median| Estimate::for_test(*median, half, 6)).collect()
    }

    fn fit_medians(half: f64, medians: &[f64]) -> Option<Fit> {
        let estimates = estimates(half, medians);
        let points: Vec<(f64, &Estimate)> = estimates.iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
        line_through(String::new(), &points, &slope_within_intervals(&points)?, "step")
    }

    #[test]
    fn a_line_is_recovered_despite_one_outlier() {
        let found = fit_medians(0.5, &[10.0, 12.0, 14.0, 16.0, 18.0, 100.0, 22.0]).unwrap();
        assert_eq!((found.at_zero_ns, found.slope_ns), (10.0, 2.0));
        let [low, high] = found.slope_interval_ns;
        assert!(low > 1.0 && low < 2.0 && high > 2.0, "{found:?}");
        assert!(found.r_squared.unwrap() < 0.5 && !found.holds, "the outlier lowers it");
        assert_eq!(fit_medians(0.5, &[3.0; 7]).unwrap().r_squared, None, "nothing varies");
    }

    /// Returns an outcome with a chart of walls by size, without points.
    fn outcome_with_chart() -> Outcome {
        let columns = vec![
            key("case", "case", Unit::Text),
            key("size", "size", Unit::Bytes),
            measure("wall_ns", "wall", Unit::Nanos),
        ];
        let mut outcome = Outcome::new("", columns);
        outcome.draw("size", "wall_ns", &["case"], Scale::Linear);
        outcome
    }

    /// Returns an outcome with one series of 40 noisy points, measured in a sweep for each slope.
    fn outcome_of_sweeps(slopes: &[f64]) -> Outcome {
        let mut outcome = outcome_with_chart();
        let mut random = fastrand::Rng::with_seed(1);
        let measured = (0..40).map(f64::from).map(|x| Measurements {
            keys: vec![Value::from("swept"), Value::Number(x * 1e3)],
            rounds: slopes.iter().map(|slope| vec![100.0 + random.f64() + slope * x]).collect(),
            launches: None,
            failure: None,
        });
        let measured: Vec<Measurements> = measured.collect();
        outcome.add(&measured);
        outcome.fit_sweeps(1e3, "kB", &measured);
        outcome
    }

    #[test]
    fn the_interval_of_a_slope_over_sweeps_spans_the_slopes_of_the_sweeps() {
        let found = outcome_of_sweeps(&[10.0, 14.0, 9.0, 13.0, 11.0, 12.0]);
        let [low, high] = found.fits[0].slope_interval_ns;
        assert!((low - 9.0).abs() < 0.1 && (high - 14.0).abs() < 0.1, "{:?}", found.fits);
        assert!((found.fits[0].slope_ns - 11.5).abs() < 0.1);
        // Each sweep has a clear slope, but the slopes contradict each other.
        let contradictory = outcome_of_sweeps(&[1.0, -1.0, 2.0, -1.5, 1.0, -1.0]);
        assert_eq!(
            (contradictory.fits.len(), contradictory.notes.as_slice()),
            (0, &["no slope beyond the noise: swept".to_owned()][..])
        );
        let few = outcome_of_sweeps(&[10.0; 5]);
        assert_eq!(few.fits, [], "fewer sweeps have no interval");
    }

    #[test]
    fn a_slope_within_the_noise_of_its_points_is_not_fitted() {
        let mut outcome = outcome_with_chart();
        for (case, half) in [("clear", 10.0), ("noisy", 300.0)] {
            for (size, wall) in estimates(half, &[1000.0, 1100.0, 1200.0, 1300.0]).into_iter().enumerate() {
                outcome.rows.push(Row(vec![
                    ("case".to_owned(), Value::from(case)),
                    ("size".to_owned(), Value::from(size as u64 * 1000)),
                    ("wall_ns".to_owned(), Value::from(Some(wall))),
                ]));
            }
        }
        for (size, wall) in estimates(1.0, &[1.0, 1.1, 1.2]).into_iter().enumerate() {
            outcome.rows.push(Row(vec![
                ("case".to_owned(), Value::from("three points")),
                ("size".to_owned(), Value::from(size as u64 * 1000)),
                ("wall_ns".to_owned(), Value::from(Some(wall))),
            ]));
        }
        outcome.fit(1e3, "kB");
        assert_eq!(outcome.fits.len(), 1);
        assert_eq!((outcome.fits[0].series.as_str(), outcome.fits[0].slope_ns), ("clear", 100.0));
        assert_eq!(outcome.fits[0].slope_interval_ns, [85.0, 115.0]);
        assert_eq!(outcome.notes, ["no slope beyond the noise: noisy"]);
    }
}
