//! The confidence interval of a predicted wall. It combines the spread of the launches, the
//! uncertainty of the machine constants, the model error and the replay error.

use spawnscope_data::event::Nanos;

/// 95 % of a normal distribution lies within this number of standard deviations.
const DEVIATIONS: f64 = 1.96;
/// Assumed relative spread of the saving per launch, if there are too few launches to measure it.
const SPREAD_OF_FEW: f64 = 0.25;
/// Minimum number of launches of a program for which a spread is measured.
const MIN_VALUES: usize = 3;

/// Model error: the deviation of measured savings from predicted savings, as a share of the saving.
/// Twice the typical deviation (docs/guide/predictions.md).
const MODEL_ERROR: f64 = 0.05;

/// Drift of the machine between runs and unknown overhead of recording, as a share of the predicted
/// wall.
pub(crate) const DRIFT: f64 = 0.05;

/// The 95 % margins of a prediction to either side, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    /// Margin of the saving.
    pub(super) saving: f64,
    /// Margin of the wall, which drifts between runs even without changes.
    pub(super) wall: f64,
}

impl Margins {
    /// Adds the uncertainty of waits for polling threads, if anything changes.
    pub(super) fn with_polling_uncertainty(self, saved: f64, uncertainty: Nanos) -> Margins {
        let polling = if saved.abs() < 1.0 { 0.0 } else { uncertainty.0 as f64 };
        Margins { saving: self.saving.hypot(polling), wall: self.wall.hypot(polling) }
    }
}

/// Computes the margins of a prediction. `savings` contains the savings of the changed launches, by
/// program, `constants` the relative uncertainty of the machine constants. The standard error of
/// the summed savings is what a bootstrap over the launches of each program would converge to.
pub(super) fn margins(predicted: f64, saved: f64, savings: &[Vec<f64>], constants: f64, replay_error: f64) -> Margins {
    let spread = relative_error(savings).hypot(constants);
    let saving_margin = (DEVIATIONS * spread).hypot(MODEL_ERROR) * saved.abs();
    let replay_margin = replay_error.abs() * predicted;
    Margins {
        saving: saving_margin + replay_margin,
        wall: saving_margin.hypot(drift(saved, predicted)) + replay_margin,
    }
}

/// Returns the drift. It is zero when nothing changes, since the wall was then measured and not
/// predicted.
fn drift(saved: f64, predicted: f64) -> f64 {
    if saved.abs() < 1.0 { 0.0 } else { DRIFT * predicted }
}

/// Returns the standard error of the sum of all values, as a share of the sum. Each stratum
/// contains the values of one program.
fn relative_error(strata: &[Vec<f64>]) -> f64 {
    let sum: f64 = strata.iter().flatten().sum();
    if sum <= 0.0 {
        return 0.0;
    }
    let error = strata.iter().map(|values| standard_error(values)).fold(0.0, f64::hypot);
    error / sum
}

/// Returns the standard error of the sum of these values.
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
    fn different_programs_do_not_increase_the_uncertainty() {
        let (large, small) = (vec![100e6, 101e6, 99e6], vec![1e6; 20]);
        let separate = relative_error(&[large.clone(), small.clone()]);
        assert!(separate < 0.01, "{separate}");
        let mixed = relative_error(&[[large, small].concat()]);
        assert!(mixed > 10.0 * separate, "{mixed} and {separate}");
    }

    #[test]
    fn few_launches_have_an_assumed_spread() {
        assert!((relative_error(&[vec![5e6]]) - SPREAD_OF_FEW).abs() < 1e-9);
        assert!(relative_error(&[vec![-5e6]]) == 0.0 && relative_error(&[]) == 0.0);
    }
}
