//! The shift that all cases of an experiment have in common between two runs, and the cases that stand out from it. A machine drifts by
//! more than the noise of one run shows. Interleaved cases drift alike, except for a scatter that can be estimated from them.

use super::compare::Change;
use super::harness::{Estimate, MIN_ROUNDS};
use spawnscope_data::statistics::median;

/// Fewer cases have no common shift, because their median has no 95 % interval.
const MIN_CASES: usize = MIN_ROUNDS;
/// The threshold in standard deviations from the median, as proposed by Iglewicz and Hoaglin.
const OUTLIER_DEVIATIONS: f64 = 3.5;
/// Converts a median absolute deviation to a standard deviation of the normal distribution.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// The common shift of an experiment's cases in one column.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct CommonShift {
    /// The experiment. `None` for the pooled cases of experiments that have too few.
    pub experiment: Option<String>,
    /// The column. `None` for pooled cases.
    pub column: Option<String>,
    /// The number of cases.
    pub cases: usize,
    /// The median of their ratios, new to old.
    pub ratio: f64,
    /// The lower end of the 95 % interval over cases.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
    /// The scatter of the cases around it: a standard deviation, as a fraction.
    pub spread: f64,
}

impl CommonShift {
    /// Whether the common shift differs from none.
    #[must_use]
    pub fn is_beyond_noise(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }
}

/// Marks the changes that stand out, and returns the common shifts they were compared with. Cases of experiments with too few cases are
/// pooled. If the pool is also too small, none of them stands out.
pub fn judge(changes: &mut [Change]) -> Vec<CommonShift> {
    let mut groups: Vec<(String, String)> = Vec::new();
    for change in changes.iter() {
        let group = (change.experiment.clone(), change.column.clone());
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    let mut common_shifts = Vec::new();
    let mut left: Vec<usize> = Vec::new();
    for (experiment, column) in groups {
        let belongs = |change: &Change| change.experiment == experiment && change.column == column;
        let members: Vec<usize> = (0..changes.len()).filter(|at| belongs(&changes[*at])).collect();
        match median_and_deviation(changes, &members) {
            Some(found) => common_shifts.push(CommonShift {
                experiment: Some(experiment),
                column: Some(column),
                ..mark_outliers(changes, &members, found)
            }),
            None => left.extend(members),
        }
    }
    if let Some(found) = median_and_deviation(changes, &left) {
        common_shifts.push(mark_outliers(changes, &left, found));
    }
    common_shifts
}

/// The median of the logarithms with its interval, and their standard deviation.
fn median_and_deviation(changes: &[Change], members: &[usize]) -> Option<(Estimate, f64)> {
    let moved: Vec<f64> = members.iter().map(|at| changes[*at].ratio.ln()).collect();
    let middle = Estimate::of(&moved).filter(|_| moved.len() >= MIN_CASES)?;
    let deviation = median(moved.iter().map(|one| (one - middle.median).abs()))?;
    Some((middle, MAD_TO_DEVIATION * deviation))
}

/// Marks the changes that stand out from the common shift, and returns it.
fn mark_outliers(changes: &mut [Change], members: &[usize], (middle, deviation): (Estimate, f64)) -> CommonShift {
    for &at in members {
        let change = &mut changes[at];
        change.stands_out = change.beyond_noise && is_outlier(change, middle.median, deviation);
    }
    CommonShift {
        experiment: None,
        column: None,
        cases: members.len(),
        ratio: middle.median.exp(),
        low: middle.low.exp(),
        high: middle.high.exp(),
        spread: deviation.exp_m1(),
    }
}

/// Whether the distance from the median exceeds the change's own noise combined with the scatter of all cases (root of the sum of squares).
fn is_outlier(change: &Change, middle: f64, deviation: f64) -> bool {
    let distance = change.ratio.ln() - middle;
    let end = if distance > 0.0 { change.low } else { change.high };
    let noise = (change.ratio / end).ln();
    distance.abs() > noise.hypot(OUTLIER_DEVIATIONS * deviation)
}

#[cfg(test)]
mod tests {
    use super::super::outcome::{Row, Unit};
    use super::*;

    /// One change for each ratio, with an interval of ± `noise`.
    fn changes(experiment: &str, ratios: &[f64], noise: f64) -> Vec<Change> {
        let change = |ratio: &f64| Change {
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
        };
        ratios.iter().map(change).collect()
    }

    fn apart(changes: &mut [Change]) -> Vec<f64> {
        judge(changes);
        let out = changes.iter().filter(|change| change.stands_out);
        out.map(|change| change.ratio).collect()
    }

    #[test]
    fn a_case_is_outlier_from_what_all_others_did() {
        let drifted = [1.05, 1.06, 1.04, 1.05, 1.07, 1.05, 1.4];
        assert_eq!(apart(&mut changes("a", &drifted, 0.01)), [1.4]);
        assert_eq!(
            apart(&mut changes("a", &drifted, 0.5)),
            [0.0; 0],
            "within its own noise"
        );
        let scattered = [0.7, 1.3, 1.0, 1.5, 0.8, 1.2, 1.4];
        assert_eq!(apart(&mut changes("a", &scattered, 0.01)), [0.0; 0]);
    }

    #[test]
    fn a_case_that_stays_while_all_others_shift_is_not_a_change() {
        let moved = [1.5, 1.5, 1.5, 1.5, 1.5, 1.0];
        assert_eq!(apart(&mut changes("a", &moved, 0.01)), [0.0; 0]);
        let common_shifts = judge(&mut changes("a", &moved, 0.01));
        assert!(common_shifts[0].ratio > 1.49 && common_shifts[0].cases == 6);
    }

    #[test]
    fn few_cases_are_held_against_all_others_that_are_few() {
        let mut all = changes("a", &[1.1, 1.1, 1.1], 0.01);
        assert_eq!(judge(&mut all), []);
        assert_eq!(
            judge(&mut changes("a", &[1.1; 5], 0.01)),
            [],
            "the range of five cases is only a 93.75 % interval"
        );
        all.extend(changes("b", &[1.1, 1.1, 2.0], 0.01));
        let common_shifts = judge(&mut all);
        assert_eq!((common_shifts.len(), common_shifts[0].experiment.as_deref()), (1, None));
        assert_eq!(apart(&mut all), [2.0]);
    }
}
