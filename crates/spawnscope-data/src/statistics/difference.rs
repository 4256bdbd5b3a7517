//! The 95 % confidence interval of the difference between two means, each of a few runs. A
//! bootstrap interval is too narrow for few runs, because a resample never contains a value that
//! was not measured. Welch's t assumes normally distributed values. The result covers both
//! intervals.

use super::student::two_sided_probability;

/// Number of resamples. With 1,000, the ends of an interval vary by a few percent of its width.
const RESAMPLES: usize = 1_000;
/// Fraction of the resamples below the lower end of the interval, and above its upper end.
const TAIL: f64 = 0.025;
/// A fixed seed, so that the same runs always give the same interval.
const SEED: u64 = 0x5eed_5eed;

/// 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// The same quantile for more degrees of freedom, from the normal distribution.
const NORMAL: f64 = 1.96;

/// An estimate with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Whether the interval contains zero: the difference may be noise.
    pub fn contains_zero(&self) -> bool {
        self.low <= 0.0 && self.high >= 0.0
    }

    pub fn margin(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Resamples of the runs of two sides. They are used for all measurements of these runs, because a
/// run is drawn as a whole.
#[derive(Clone, Debug)]
pub struct Resamples {
    sizes: [usize; 2],
    /// The indexes of the drawn runs, `RESAMPLES` times as many as each side has runs.
    drawn: [Vec<u32>; 2],
}

impl Resamples {
    /// Draws the resamples for two sides with these numbers of runs.
    pub fn draw(before: usize, after: usize) -> Resamples {
        let mut random = fastrand::Rng::with_seed(SEED);
        let sizes = [before, after];
        let drawn = sizes.map(|runs| (0..runs * RESAMPLES).map(|_| random.u32(0..runs as u32)).collect());
        Resamples { sizes, drawn }
    }

    /// Returns the difference between the means, after minus before. `None` if a side has fewer
    /// than two values, or if a value is missing for a run.
    pub fn difference(&self, before: &[f64], after: &[f64]) -> Option<Interval> {
        let is_complete = [before.len(), after.len()] == self.sizes && self.sizes.iter().all(|runs| *runs >= 2);
        if !is_complete {
            return None;
        }
        let value = mean(after) - mean(before);
        let mut differences: Vec<f64> = self.drawn[0]
            .chunks_exact(before.len())
            .zip(self.drawn[1].chunks_exact(after.len()))
            .map(|(earlier, later)| mean_of_drawn(later, after) - mean_of_drawn(earlier, before))
            .collect();
        differences.sort_unstable_by(f64::total_cmp);
        let outside = (TAIL * differences.len() as f64) as usize;
        let margin = welch(before, after).map_or(0.0, |(error, degrees)| student_quantile(degrees) * error);
        Some(Interval {
            value,
            low: differences[outside].min(value - margin),
            high: differences[differences.len() - 1 - outside].max(value + margin),
        })
    }
}

/// Returns the mean of one side with its 95 % confidence interval, by Student's t. `None` for fewer
/// than two values.
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    let value = mean(values);
    let degrees = values.len().checked_sub(1).filter(|degrees| *degrees > 0)?;
    let margin = student_quantile(degrees as f64) * (variance(values) / values.len() as f64).sqrt();
    Some(Interval { value, low: value - margin, high: value + margin })
}

/// Returns the mean; zero if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / (values.len().max(1)) as f64
}

fn mean_of_drawn(drawn: &[u32], values: &[f64]) -> f64 {
    drawn.iter().map(|run| values[*run as usize]).sum::<f64>() / drawn.len() as f64
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (values.len() - 1) as f64
}

/// Returns the probability that two sides whose means are equal differ by as much as these, by
/// Welch's t-test. Sides without any variance differ for certain. `None` if a side has fewer than
/// two values.
pub fn chance(before: &[f64], after: &[f64]) -> Option<f64> {
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let difference = mean(after) - mean(before);
    Some(match welch(before, after) {
        Some((error, degrees)) => two_sided_probability(difference / error, degrees),
        None if difference == 0.0 => 1.0,
        None => 0.0,
    })
}

/// Returns the standard error of the difference of the means, and the degrees of freedom of Welch
/// and Satterthwaite. `None` without variance.
fn welch(before: &[f64], after: &[f64]) -> Option<(f64, f64)> {
    let [earlier, later] = [before, after].map(|values| variance(values) / values.len() as f64);
    let error = earlier + later;
    let squares = earlier * earlier / (before.len() - 1) as f64 + later * later / (after.len() - 1) as f64;
    (error > 0.0).then(|| (error.sqrt(), error * error / squares))
}

/// Returns the 97.5 % quantile of Student's t. `degrees` is rounded down, so that the interval
/// becomes wider rather than narrower.
fn student_quantile(degrees: f64) -> f64 {
    let index = (degrees.floor() as usize).max(1) - 1;
    STUDENT.get(index).copied().unwrap_or(NORMAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_of_equal_sides_is_zero() {
        let values = [10.0, 11.0, 12.0, 13.0];
        let interval = Resamples::draw(4, 4).difference(&values, &values).unwrap();
        assert_eq!(interval.value, 0.0);
        assert!(interval.contains_zero() && interval.margin() > 1.0, "{interval:?}");
    }

    #[test]
    fn a_single_run_has_no_interval() {
        assert_eq!(Resamples::draw(1, 4).difference(&[1.0], &[1.0, 2.0, 3.0, 4.0]), None);
        assert_eq!(Resamples::draw(0, 0).difference(&[], &[]), None);
        assert_eq!(mean_interval(&[4.0]), None);
    }

    #[test]
    fn without_noise_the_interval_has_no_width() {
        let interval = Resamples::draw(3, 2).difference(&[5.0; 3], &[7.0; 2]).unwrap();
        assert_eq!((interval.low, interval.value, interval.high), (2.0, 2.0, 2.0));
    }

    /// Draws both sides from the same distribution 400 times. About 5 % of the intervals may
    /// exclude zero; 32 of 400 are tolerated.
    #[test]
    fn equal_sides_of_few_runs_seldom_look_different() {
        let mut random = fastrand::Rng::with_seed(7);
        for runs in [2, 3, 5, 10] {
            let resamples = Resamples::draw(runs, runs);
            let wrong = (0..400).filter(|_| {
                let [before, after] = [(); 2].map(|()| draw_side(&mut random, runs));
                !resamples.difference(&before, &after).unwrap().contains_zero()
            });
            let wrong = wrong.count();
            assert!(wrong <= 32, "{wrong} of 400 with {runs} runs");
        }
    }

    /// Returns sums of twelve uniform numbers, which are nearly normal.
    fn draw_side(random: &mut fastrand::Rng, runs: usize) -> Vec<f64> {
        (0..runs).map(|_| (0..12).map(|_| random.f64()).sum()).collect()
    }
}
