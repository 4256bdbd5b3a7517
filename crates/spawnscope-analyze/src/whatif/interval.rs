//! The confidence interval of a predicted wall. It combines the spread of the launches, the uncertainty of the machine constants, the model
//! error and the replay error.

use spawnscope_data::event::Nanos;

/// 95 % of a normal distribution lies within this number of standard deviations.
const DEVIATIONS: f64 = 1.96;
/// Relative spread of the saving per launch, where too few launches exist to measure it.
const SPREAD_OF_FEW: f64 = 0.25;
/// Minimum number of launches to measure a spread.
const MIN_VALUES: usize = 3;

/// Deviation of measured from predicted savings, as a share: twice the typical deviation (docs/guide/predictions.md).
const MODEL_ERROR: f64 = 0.05;

/// Unknown overhead of recording and drift of the machine between runs, as a share of the predicted wall.
pub(crate) const DRIFT: f64 = 0.05;

/// 95 % margins of a prediction to either side, in nanoseconds, under the assumption that the model is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    /// Margin of the saving.
    pub(super) saving: f64,
    /// Margin of the wall, which drifts between runs even without changes.
    pub(super) wall: f64,
}

impl Margins {
    /// Adds the uncertainty of waits for polling threads, if anything changes.
    pub(super) fn with_rounds(self, saved: f64, uncertain: Nanos) -> Margins {
        let of_rounds = if saved.abs() < 1.0 { 0.0 } else { uncertain.0 as f64 };
        Margins {
            saving: self.saving.hypot(of_rounds),
            wall: self.wall.hypot(of_rounds),
        }
    }
}

/// Computes the margins of a prediction. The standard error of the summed savings is the limit of a bootstrap over the changed launches of
/// each program.
pub(super) fn margins(predicted: f64, saved: f64, savings: &[Vec<f64>], constants: f64, replay_error: f64) -> Margins {
    let spread = relative_error(savings).hypot(constants);
    let of_saving = (DEVIATIONS * spread).hypot(MODEL_ERROR) * saved.abs();
    let of_replay = replay_error.abs() * predicted;
    Margins {
        saving: of_saving + of_replay,
        wall: of_saving.hypot(drift(saved, predicted)) + of_replay,
    }
}

/// Returns the drift. Zero when nothing changes, since the measured wall is not a prediction.
fn drift(saved: f64, predicted: f64) -> f64 {
    if saved.abs() < 1.0 { 0.0 } else { DRIFT * predicted }
}

/// Returns the standard error of the sum of all strata, as a share of the sum.
fn relative_error(strata: &[Vec<f64>]) -> f64 {
    let sum: f64 = strata.iter().flatten().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let error = strata.iter().map(|values| standard_error(values)).fold(0.0, f64::hypot);
    error / sum
}

/// The standard error of a sum.
fn standard_error(values: &[f64]) -> f64 {
    let (count, sum) = (values.len() as f64, values.iter().sum::<f64>());
    if values.len() < MIN_VALUES {
        return SPREAD_OF_FEW * sum.abs();
    }
    let squares: f64 = values.iter().map(|value| (value - sum / count).powi(2)).sum();
    (squares / (count - 1.0) * count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_unlike_programs_do_not_look_uncertain() {
        let (large, small) = (vec![100e6, 101e6, 99e6], vec![1e6; 20]);
        let apart = relative_error(&[large.clone(), small.clone()]);
        assert!(apart < 0.01, "{apart}");
        let mixed = relative_error(&[[large, small].concat()]);
        assert!(mixed > 10.0 * apart, "{mixed} and {apart}");
    }

    #[test]
    fn few_launches_tell_no_spread() {
        assert!((relative_error(&[vec![5e6]]) - SPREAD_OF_FEW).abs() < 1e-9);
        assert!(relative_error(&[vec![-5e6]]) == 0.0 && relative_error(&[]) == 0.0);
    }
}
