//! The confidence interval of a predicted wall: how uncertain it is, by cause. No interval is
//! narrower than the machine repeats itself.

use spawnscope_data::event::Nanos;

/// 95 % of a normal distribution lies within this number of standard deviations.
const DEVIATIONS: f64 = 1.96;
/// Assumed relative spread of the saving per launch, if there are too few launches to measure it.
const SPREAD_OF_FEW: f64 = 0.25;
/// Minimum number of launches of a program for which a spread is measured.
const MIN_VALUES: usize = 3;

/// The 95 % margin of the model, as a share of the saving: the part that is the same for all
/// recordings of a command, and the part that differs between them.
const MODEL_ERROR: [f64; 2] = [0.02, 0.02];
/// The same, if the causes of waits are reconstructed.
const MODEL_ERROR_OF_RECONSTRUCTED: [f64; 2] = [0.05, 0.05];
/// By which share what remains may be quicker than recorded, because less runs beside it: caches,
/// and CPUs that share a core. It was in 28 of 37 pairs of programs. With this and `MODEL_ERROR`,
/// 84 intervals of 89 contain the real wall.
const QUICKER: f64 = 0.12;

/// Minimum 95 % margin of a wall, as a share of it.
const MIN_MARGIN: f64 = 0.01;
/// The relative standard deviation between runs of one command, if the calibration did not measure
/// how well the machine repeats itself.
pub(super) const USUAL_REPEATABILITY: f64 = 0.035;
/// The largest relative standard deviation between runs that is believed. A busy machine delays
/// single operations of the calibration more than whole commands.
const MAX_REPEATABILITY: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Runs,
    Launches,
    /// Costs that were measured separately or assumed, such as what a program does at its start.
    Costs,
    Model,
    Polling,
    Replay,
    UnknownWaits,
    /// CPUs that programs outside of the recording held.
    HeldCpus,
}

/// The 95 % margins of a prediction to either side, by cause, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Margins {
    /// How much the remaining wall differs between runs, even without changes.
    pub(super) drift: f64,
    /// How much the saving differs between recordings.
    pub(super) between: f64,
    launches: f64,
    costs: f64,
    model: f64,
    polling: f64,
    replay: f64,
    /// How much quicker what remains may be. At most as much remains as there is, and at most as
    /// much disturbed it as goes.
    pub(super) quicker: f64,
}

impl Margins {
    /// Computes the margins of a predicted wall and of a saving, in nanoseconds. `costs` is the
    /// standard deviation of separately measured or assumed costs, as a share of the saving. Of the
    /// waits, it takes how much those for polling threads may be wrong, and whether their causes
    /// are reconstructed.
    pub(super) fn new(
        [predicted, saved]: [f64; 2],
        savings: Savings,
        [costs, replay_error]: [f64; 2],
        (polling, are_reconstructed): (Nanos, bool),
        repeatability: Option<f64>,
    ) -> Margins {
        let quicker = QUICKER * saved.clamp(0.0, predicted.max(0.0));
        let saved = saved.abs();
        let error = if are_reconstructed { MODEL_ERROR_OF_RECONSTRUCTED } else { MODEL_ERROR };
        let [model, between] = error.map(|share| share * saved);
        Margins {
            drift: drift(repeatability) * predicted,
            between,
            launches: DEVIATIONS * savings.relative_error * saved,
            costs: DEVIATIONS * costs * saved,
            model,
            polling: if saved < 1.0 { 0.0 } else { polling.0 as f64 },
            replay: replay_error.abs() * predicted,
            quicker,
        }
    }

    /// Returns the margin of the saving, in which most of the drift cancels.
    pub(super) fn saving(&self) -> f64 {
        [self.between, self.launches, self.costs, self.model, self.polling].into_iter().fold(0.0, f64::hypot)
            + self.replay
    }

    pub(super) fn wall(&self) -> f64 {
        (self.saving() - self.replay).hypot(self.drift) + self.replay
    }

    /// Returns the parts of the margins of the saving and of the wall that differ between runs.
    pub(super) fn of_one_run(&self) -> [f64; 2] {
        let saving = self.between.hypot(self.launches);
        [saving, saving.hypot(self.drift)]
    }

    /// Returns the largest cause, given how many nanoseconds depend on waits with an unknown cause,
    /// on how many CPUs others hold, and on what is start-up.
    pub(super) fn largest_cause(&self, [waits, cpus, guessed]: [f64; 3]) -> Cause {
        let causes = [
            (self.between.hypot(self.drift), Cause::Runs),
            (self.launches, Cause::Launches),
            (self.costs.max(guessed), Cause::Costs),
            (self.model.max(self.quicker), Cause::Model),
            (self.polling, Cause::Polling),
            (self.replay, Cause::Replay),
            (waits, Cause::UnknownWaits),
            (cpus, Cause::HeldCpus),
        ];
        causes.into_iter().max_by(|one, other| one.0.total_cmp(&other.0)).map_or(Cause::Runs, |(_, cause)| cause)
    }
}

/// Returns the 95 % margin of a wall, as a share of it, because runs of one command differ.
pub(super) fn drift(repeatability: Option<f64>) -> f64 {
    let deviation = repeatability.unwrap_or(USUAL_REPEATABILITY).min(MAX_REPEATABILITY);
    (DEVIATIONS * deviation).max(MIN_MARGIN)
}

/// How several recordings of a command change a margin.
pub(super) struct Narrowed {
    /// The part of the margin that differs between runs, for one run and for all of them.
    parts: [f64; 2],
}

impl Narrowed {
    /// Computes how much a value for all runs differs from the truth. The runs may differ by more
    /// than was expected from each.
    pub(super) fn new(values: &[f64], of_one: f64) -> Narrowed {
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let measured = DEVIATIONS * (squares / (count - 1.0).max(1.0)).sqrt();
        Narrowed { parts: [of_one, measured.max(of_one) / count.sqrt()] }
    }

    /// Returns the margin for all runs, from that of one run.
    pub(super) fn of(&self, margin: Nanos) -> Nanos {
        let [one, all] = self.parts;
        let rest = (margin.0 as f64).powi(2) - one.powi(2);
        Nanos((rest.max(0.0) + all.powi(2)).sqrt() as u64)
    }
}

/// The savings of the changed launches together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Savings {
    pub(super) sum: f64,
    /// The standard error of the sum, as a share of it: what a bootstrap over the launches of each
    /// program would converge to.
    relative_error: f64,
}

impl Savings {
    /// Sums savings. Each stratum contains those of one program.
    pub(super) fn of(strata: &[Vec<f64>]) -> Savings {
        let sum: f64 = strata.iter().flatten().sum();
        let error = strata.iter().map(|values| standard_error(values)).fold(0.0, f64::hypot);
        Savings { sum, relative_error: if sum <= 0.0 { 0.0 } else { error / sum } }
    }
}

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
        let relative_error = |strata: &[Vec<f64>]| Savings::of(strata).relative_error;
        let separate = relative_error(&[large.clone(), small.clone()]);
        assert!(separate < 0.01, "{separate}");
        let mixed = relative_error(&[[large, small].concat()]);
        assert!(mixed > 10.0 * separate, "{mixed} and {separate}");
    }

    #[test]
    fn few_launches_have_an_assumed_spread() {
        let relative_error = |strata: &[Vec<f64>]| Savings::of(strata).relative_error;
        assert!((relative_error(&[vec![5e6]]) - SPREAD_OF_FEW).abs() < 1e-9);
        assert!(relative_error(&[vec![-5e6]]) == 0.0 && relative_error(&[]) == 0.0);
    }

    #[test]
    fn no_wall_is_more_certain_than_the_machine_repeats_itself() {
        let margins =
            |repeatability| Margins::new([100e6, 0.0], Savings::default(), [0.0; 2], (Nanos(0), false), repeatability);
        let margin = |repeatability| margins(repeatability).wall() / 1e6;
        assert_eq!([Some(0.0), Some(0.001), Some(0.02), Some(9.0)].map(margin), [1.0, 1.0, 3.92, 19.6]);
        assert!((6.0..8.0).contains(&margin(None)), "{}", margin(None));
    }

    #[test]
    fn several_runs_are_as_certain_as_they_agree() {
        assert_eq!(Narrowed::new(&[100.0; 4], 8.0).of(Nanos(8)), Nanos(4));
        assert_eq!(Narrowed::new(&[100.0; 4], 8.0).of(Nanos(10)), Nanos(7), "the rest remains");
        let scattered = Narrowed::new(&[80.0, 120.0, 80.0, 120.0], 8.0).of(Nanos(8));
        assert!(scattered > Nanos(20), "{scattered:?}");
        assert_eq!(Narrowed::new(&[100.0], 8.0).of(Nanos(9)), Nanos(9), "one run changes nothing");
    }
}
