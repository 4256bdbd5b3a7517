//! How far a predicted wall may be off: what the launches' own spread, the machine's constants, the model's and the replay's
//! error make of it.

use crate::event::Nanos;

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

/// An interval about `predicted` that holds the wall with a probability of 95 %, as far as the model is right. The standard error of
/// the summed savings is what a bootstrap over the changed launches tends to.
pub(super) fn interval(
    predicted: f64,
    saved: f64,
    savings: &[f64],
    constants: f64,
    replay_error: f64,
) -> (Nanos, Nanos) {
    let spread = relative_error(savings).hypot(constants);
    let of_saving = (DEVIATIONS * spread).hypot(MODEL_ERROR) * saved.abs();
    let half = of_saving.hypot(drift(saved, predicted)) + replay_error.abs() * predicted;
    (
        Nanos((predicted - half).max(0.0) as u64),
        Nanos((predicted + half) as u64),
    )
}

/// None where nothing changes, as the measured wall is no prediction.
fn drift(saved: f64, predicted: f64) -> f64 {
    if saved.abs() < 1.0 { 0.0 } else { DRIFT * predicted }
}

/// The standard error of a sum as a share of it.
fn relative_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    if mean <= 0.0 {
        return 0.0;
    }
    if values.len() < ENOUGH {
        return SPREAD_OF_FEW;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (count - 1.0)).sqrt() / mean / count.sqrt()
}
