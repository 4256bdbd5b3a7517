//! How far a predicted wall may be off: what the launches' own spread, the machine's constants, the model's and the replay's
//! error make of it.

/// Standard deviations of a normal distribution between which 95 % of it lie.
const DEVIATIONS: f64 = 1.96;
/// Relative spread of one launch's saving where too few launches tell it.
const SPREAD_OF_FEW: f64 = 0.25;
/// So many launches tell their spread.
const ENOUGH: usize = 3;

/// Savings that were predicted and then really made differed by this share of themselves, twice the typical difference
/// (docs/guide/predictions.md).
const MODEL_ERROR: f64 = 0.05;

/// What of recording's cost is not known, and the drift of a machine from one run to the next, as a share of the predicted wall.
const DRIFT: f64 = 0.05;

/// How far, to either side, 95 % of what comes true lies from what was predicted, in nanoseconds, as far as the model is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    /// Of the saving.
    pub(super) saving: f64,
    /// Of the wall, which drifts from one run to the next whatever is saved.
    pub(super) wall: f64,
}

/// The margins of a prediction. The standard error of the summed savings is what a bootstrap over the changed launches of each program
/// tends to.
pub(super) fn margins(predicted: f64, saved: f64, savings: &[Vec<f64>], constants: f64, replay_error: f64) -> Margins {
    let spread = relative_error(savings).hypot(constants);
    let of_saving = (DEVIATIONS * spread).hypot(MODEL_ERROR) * saved.abs();
    let of_replay = replay_error.abs() * predicted;
    Margins {
        saving: of_saving + of_replay,
        wall: of_saving.hypot(drift(saved, predicted)) + of_replay,
    }
}

/// None where nothing changes, as the measured wall is no prediction.
fn drift(saved: f64, predicted: f64) -> f64 {
    if saved.abs() < 1.0 { 0.0 } else { DRIFT * predicted }
}

/// The standard error of the sum of all strata as a share of it.
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
    if values.len() < ENOUGH {
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
