//! Estimates the shift that all cases of an experiment have in common between two runs, and finds the cases that stand out from it. Between
//! two runs, a machine drifts by more than the noise within one run. Interleaved cases drift alike, except for a scatter that can be
//! estimated from them.

use super::compare::Change;
use super::harness::{Estimate, MIN_ROUNDS};
use spawnscope_data::statistics::median;

/// The minimum number of cases for a common shift. The median of fewer cases has no 95 % interval.
const MIN_CASES: usize = MIN_ROUNDS;
/// A case farther from the median than this many standard deviations is an outlier, as proposed by
/// Iglewicz and Hoaglin. In 14 pairs of runs of one binary on a busy machine, 3.5 % and 5.0 % of
/// the results were false; with a limit of 3, they were 4.1 % and 6.5 %. To leave each case out of
/// its own median was no better (5.2 % and 6.8 %).
const OUTLIER_DEVIATIONS: f64 = 3.5;
/// Converts a median absolute deviation to a standard deviation of the normal distribution.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// The common shift of an experiment's cases in one column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CommonShift {
    /// The experiment.
    pub experiment: String,
    /// The column.
    pub column: String,
    /// The number of cases.
    pub cases: usize,
    /// The ratio of the new value to the old one: the median over the cases.
    pub ratio: f64,
    /// The lower end of the 95 % interval of `ratio`.
    pub low: f64,
    /// The upper end of the 95 % interval of `ratio`.
    pub high: f64,
    /// The standard deviation of the cases from `ratio`, as a fraction.
    pub spread: f64,
}

impl CommonShift {
    /// Returns whether the interval excludes 1, so that there is a shift.
    #[must_use]
    pub fn is_beyond_noise(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Finds the common shifts, and marks the changes that stand out from them. If an experiment has too few cases, none of them stands out.
pub fn find_common_shifts(changes: &mut [Change]) -> Vec<CommonShift> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for change in changes.iter() {
        let group = (change.experiment.clone(), change.column.clone());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut common_shifts = Vec::new();
    for (experiment, column) in groups {
        let members: Vec<usize> = (0..changes.len())
            .filter(|index| changes[*index].experiment == experiment && changes[*index].column == column)
            .collect();
        if let Some((center, deviation)) = median_and_deviation(changes, &members) {
            mark_outliers(changes, &members, center.median, deviation);
            common_shifts.push(CommonShift {
                experiment,
                column,
                cases: members.len(),
                ratio: center.median.exp(),
                low: center.low.exp(),
                high: center.high.exp(),
                spread: deviation.exp_m1(),
            });
        }
    }
    common_shifts
}

/// Returns the median of the logarithms of the ratios, with its interval, and the standard deviation of the logarithms; `None` for too few
/// cases.
fn median_and_deviation(changes: &[Change], members: &[usize]) -> Option<(Estimate, f64)> {
    let log_ratios: Vec<f64> = members.iter().map(|index| changes[*index].ratio.ln()).collect();
    let center = Estimate::from_values(&log_ratios).filter(|_| log_ratios.len() >= MIN_CASES)?;
    let deviation = median(log_ratios.iter().map(|one| (one - center.median).abs()))?;
    Some((center, MAD_TO_DEVIATION * deviation))
}

/// Marks the changes that stand out from the common shift.
fn mark_outliers(changes: &mut [Change], members: &[usize], center: f64, deviation: f64) {
    for &index in members {
        let change = &mut changes[index];
        change.stands_out = change.beyond_noise && is_outlier(change, center, deviation);
    }
}

/// Returns whether the distance from the median exceeds the change's own noise combined with the scatter of all cases (root of the sum of
/// squares).
fn is_outlier(change: &Change, center: f64, deviation: f64) -> bool {
    let distance = change.ratio.ln() - center;
    let end = if distance > 0.0 { change.low } else { change.high };
    let noise = (change.ratio / end).ln();
    distance.abs() > noise.hypot(OUTLIER_DEVIATIONS * deviation)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Row, Unit};
    use super::*;

    /// Returns a change for each ratio, with an interval of ± `noise`.
    fn changes(experiment: &str, ratios: &[f64], noise: f64) -> Vec<Change> {
        let changes = ratios.iter().map(|ratio| Change {
            experiment: experiment.to_owned(),
            case: String::new(),
            keys: Row::default(),
            column: "wall_ns".to_owned(),
            unit: Unit::Nanos,
            old: 1.0,
            new: *ratio,
            ratio: *ratio,
            low: ratio * (1.0 - noise),
            high: ratio * (1.0 + noise),
            beyond_noise: (ratio - 1.0).abs() > noise,
            stands_out: false,
        });
        changes.collect()
    }

    /// Returns the ratios of the changes that stand out.
    fn outliers(changes: &mut [Change]) -> Vec<f64> {
        find_common_shifts(changes);
        let out = changes.iter().filter(|change| change.stands_out);
        out.map(|change| change.ratio).collect()
    }

    #[test]
    fn a_case_that_shifts_unlike_all_others_stands_out() {
        let drifted = [1.05, 1.06, 1.04, 1.05, 1.07, 1.05, 1.4];
        assert_eq!(outliers(&mut changes("a", &drifted, 0.01)), [1.4]);
        assert_eq!(outliers(&mut changes("a", &drifted, 0.5)), [0.0; 0], "within its own noise");
        let scattered = [0.7, 1.3, 1.0, 1.5, 0.8, 1.2, 1.4];
        assert_eq!(outliers(&mut changes("a", &scattered, 0.01)), [0.0; 0]);
    }

    #[test]
    fn a_case_that_stays_equal_while_all_others_shift_does_not_stand_out() {
        let ratios = [1.5, 1.5, 1.5, 1.5, 1.5, 1.0];
        assert_eq!(outliers(&mut changes("a", &ratios, 0.01)), [0.0; 0]);
        let common_shifts = find_common_shifts(&mut changes("a", &ratios, 0.01));
        assert!(common_shifts[0].ratio > 1.49 && common_shifts[0].cases == 6);
    }

    #[test]
    fn an_experiment_with_too_few_cases_has_no_common_shift() {
        let mut few = changes("a", &[1.1, 1.1, 1.1, 1.1, 2.0], 0.01);
        assert_eq!(find_common_shifts(&mut few), [], "the range of five cases is only a 93.75 % interval");
        assert!(few.iter().all(|change| !change.stands_out));
    }
}
