//! The measurements of one case: the trials before the first batch, and the batches. A batch makes the same number of launches in all cases
//! that are compared with each other, because a batch of two launches measures colder caches than one of twenty.

use std::time::{Duration, Instant};

use super::LabError;
use super::harness::{Effort, Measured};
use super::outcome::Value;

/// The number of trials of each case. A disturbance may hit any trial, but hardly all of them.
const TRIALS: usize = 5;
/// The number of trials of a slow case.
const TRIALS_IF_SLOW: usize = 3;
/// A case is slow if its trials took longer than this many batches in total.
const SLOW_BATCHES: u32 = 10;

/// A case: the values that identify it, and the function that measures it.
pub struct Case<'a> {
    keys: Vec<Value>,
    run: Run<'a>,
    promised: usize,
}

enum Run<'a> {
    /// Makes the given number of launches; the first value is the nanoseconds of one launch.
    Launches(Box<dyn FnMut(u32) -> Result<Vec<f64>, LabError> + 'a>),
    /// Runs once, with its own amount of work.
    Whole(Box<dyn FnMut() -> Result<Vec<f64>, LabError> + 'a>),
}

impl<'a> Case<'a> {
    /// A case that makes as many launches as requested; the first value is the nanoseconds of one launch. `keys` identify it.
    pub fn new(
        keys: impl IntoIterator<Item = Value>,
        run: impl FnMut(u32) -> Result<Vec<f64>, LabError> + 'a,
    ) -> Case<'a> {
        Case::of(keys, Run::Launches(Box::new(run)))
    }

    /// A case that determines its own amount of work.
    pub fn whole(
        keys: impl IntoIterator<Item = Value>,
        run: impl FnMut() -> Result<Vec<f64>, LabError> + 'a,
    ) -> Case<'a> {
        Case::of(keys, Run::Whole(Box::new(run)))
    }

    fn of(keys: impl IntoIterator<Item = Value>, run: Run<'a>) -> Case<'a> {
        Case {
            keys: keys.into_iter().collect(),
            run,
            promised: 1,
        }
    }

    /// Sets how many columns must be within the wanted noise before the rounds end. The default is the first column only.
    #[must_use]
    pub fn promises(self, columns: usize) -> Case<'a> {
        Case {
            promised: columns,
            ..self
        }
    }
}

/// A case while it is being measured.
pub(super) struct Batch<'a> {
    run: Run<'a>,
    promised: usize,
    trials: usize,
    tried_for: Duration,
    /// Nanoseconds of a launch in the fastest trial.
    least_ns: f64,
    count: u32,
    pub(super) measured: Measured,
}

impl<'a> Batch<'a> {
    pub(super) fn new(case: Case<'a>) -> Batch<'a> {
        Batch {
            run: case.run,
            promised: case.promised,
            trials: 0,
            tried_for: Duration::ZERO,
            least_ns: f64::INFINITY,
            count: 1,
            measured: Measured {
                keys: case.keys,
                rounds: Vec::new(),
                launches: None,
                failure: None,
            },
        }
    }

    fn needs_trial(&self, effort: Effort) -> bool {
        let wanted = match self.run {
            Run::Launches(_) if self.tried_for < effort.batch() * SLOW_BATCHES => TRIALS,
            Run::Launches(_) => TRIALS_IF_SLOW,
            // The trial only warms up.
            Run::Whole(_) => 1,
        };
        self.measured.failure.is_none() && self.trials < wanted
    }

    fn try_out(&mut self, effort: Effort) {
        // With more than one launch, an uncounted one precedes them, so that only launches with warm caches are timed.
        let count = if is_short(self.least_ns, effort) { 2 } else { 1 };
        let began = Instant::now();
        match self.perform(count) {
            Ok(values) => self.least_ns = values.first().map_or(self.least_ns, |one| one.min(self.least_ns)),
            Err(failure) => self.measured.failure = Some(failure),
        }
        self.tried_for += began.elapsed();
        self.trials += 1;
    }

    /// Measures one batch, unless the case has failed.
    pub(super) fn take(&mut self) {
        if self.measured.failure.is_some() {
            return;
        }
        match self.perform(self.count) {
            Ok(values) => self.measured.rounds.push(values),
            Err(failure) => self.measured.failure = Some(failure),
        }
    }

    fn perform(&mut self, count: u32) -> Result<Vec<f64>, LabError> {
        match &mut self.run {
            Run::Launches(run) => run(count),
            Run::Whole(run) => run(),
        }
    }

    /// Whether all promised columns are within the wanted noise. Columns with a median of zero are ignored, because they have no relative
    /// noise.
    pub(super) fn is_quiet(&self, effort: Effort) -> bool {
        let estimates = (0..self.promised).filter_map(|column| self.measured.estimate(column));
        self.measured.failure.is_some()
            || estimates
                .filter(|estimate| estimate.median != 0.0)
                .all(|estimate| estimate.noise() <= effort.wanted_noise())
    }
}

/// Runs the trials of all cases in turns, so that a disturbance does not hit two trials of the same case, and decides how many launches
/// each batch makes. `may_continue` is called before each trial.
pub(super) fn prepare(batches: &mut [Batch<'_>], effort: Effort, may_continue: &dyn Fn() -> bool) {
    for _ in 0..TRIALS {
        for batch in batches.iter_mut().filter(|batch| batch.needs_trial(effort)) {
            if !may_continue() {
                return;
            }
            batch.try_out(effort);
        }
    }
    let of_launches =
        |batch: &&mut Batch<'_>| matches!(batch.run, Run::Launches(_)) && batch.measured.failure.is_none();
    let mut batches: Vec<&mut Batch<'_>> = batches.iter_mut().filter(of_launches).collect();
    let least: Vec<f64> = batches.iter().map(|batch| batch.least_ns).collect();
    for (batch, count) in batches.iter_mut().zip(counts(&least, effort)) {
        batch.count = count;
        batch.measured.launches = Some(count);
    }
}

fn is_short(launch_ns: f64, effort: Effort) -> bool {
    launch_ns <= effort.batch().as_nanos() as f64
}

/// The launches per batch for cases with these launch times. All short cases get the same number, chosen so that their batches have the
/// wanted mean length. Launches that take longer than a batch are measured singly, since caches hardly affect them.
fn counts(least_ns: &[f64], effort: Effort) -> Vec<u32> {
    let short: Vec<f64> = least_ns.iter().copied().filter(|one| is_short(*one, effort)).collect();
    let mean = short.iter().sum::<f64>() / short.len() as f64;
    let [fewest, most] = effort.launches_in_a_turn();
    let even = (effort.batch().as_nanos() as f64 / mean).clamp(fewest, most) as u32;
    let of_one = |one: &f64| if is_short(*one, effort) { even } else { 1 };
    least_ns.iter().map(of_one).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const MS: f64 = 1e6;
    const WHOLE: Effort = Effort {
        quick: false,
        time: Duration::ZERO,
    };

    /// The counts for cases with these launch times in milliseconds in the fastest trial.
    fn counts_of(launches_ms: &[f64]) -> Vec<u32> {
        let least: Vec<f64> = launches_ms.iter().map(|one| one * MS).collect();
        counts(&least, WHOLE)
    }

    #[test]
    fn compared_cases_get_equal_counts() {
        assert_eq!(counts_of(&[0.1, 0.09, 0.28, 1.1]), [25; 4]);
        assert_eq!(counts_of(&[0.1, 1.14, 1.83, 2.28, 0.82, 14.1]), [8, 8, 8, 8, 8, 1]);
        assert_eq!(counts_of(&[9.0, 9.5]), [5, 5], "a batch has several launches");
        assert_eq!(counts_of(&[52.0, 84.0]), [1, 1]);
        assert_eq!(counts_of(&[]), [0; 0]);
    }

    /// The launches and trials of two cases with these launch times in milliseconds; disturbed trials take longer.
    fn prepared(launches_ms: [f64; 2], is_disturbed: fn(usize) -> bool) -> Vec<(Option<u32>, usize)> {
        let trials = [Cell::new(0), Cell::new(0)];
        let case = |number: usize| {
            let trial = &trials[number];
            Case::new([], move |_| {
                let more = if is_disturbed(trial.replace(trial.get() + 1)) {
                    90.0
                } else {
                    0.0
                };
                Ok(vec![(launches_ms[number] + more) * MS])
            })
        };
        let mut batches: Vec<Batch<'_>> = (0..2).map(|number| Batch::new(case(number))).collect();
        prepare(&mut batches, WHOLE, &|| true);
        let results = batches.iter().map(|batch| (batch.measured.launches, batch.trials));
        results.collect()
    }

    #[test]
    fn a_disturbed_trial_decides_nothing() {
        let quiet = prepared([0.1, 0.3], |_| false);
        assert_eq!(quiet, [(Some(25), TRIALS); 2]);
        assert_eq!(prepared([0.1, 0.3], |trial| trial == 0), quiet);
        assert_eq!(prepared([0.1, 0.3], |trial| trial != 3), quiet);
        assert_eq!(prepared([0.1, 30.0], |_| false)[1].0, Some(1), "long in each trial");
    }

    #[test]
    fn a_whole_case_gets_only_a_trial_to_warm_up() {
        let runs = Cell::new(0);
        let case = Case::whole([], || {
            runs.set(runs.get() + 1);
            Ok(vec![1.0])
        });
        let mut batches = [Batch::new(case)];
        prepare(&mut batches, WHOLE, &|| true);
        assert_eq!((batches[0].measured.launches, batches[0].trials), (None, 1));
        batches[0].take();
        assert_eq!(batches[0].measured.rounds, [[1.0]]);
        drop(batches);
        assert_eq!(runs.get(), 2);
    }

    #[test]
    fn all_promised_columns_must_be_quiet() {
        let noisy = |round: usize| vec![5.0, round as f64, 0.0];
        for (promised, is_quiet) in [(1, true), (2, false)] {
            let mut batch = Batch::new(Case::whole([], || Ok(Vec::new())).promises(promised));
            batch.measured.rounds = (1..9).map(noisy).collect();
            assert_eq!(batch.is_quiet(WHOLE), is_quiet, "{promised}");
        }
        let mut batch = Batch::new(Case::whole([], || Ok(Vec::new())).promises(3));
        batch.measured.rounds = (0..9).map(|round| vec![5.0, 7.0, f64::from(round / 8)]).collect();
        assert!(batch.is_quiet(WHOLE), "zero in most rounds");
    }

    proptest! {
        #[test]
        fn short_cases_get_equal_counts_and_their_rounds_are_short(launches_ms in prop::collection::vec(0.05..40.0f64, 1..30)) {
            let found = counts_of(&launches_ms);
            let of_short: Vec<u32> = launches_ms.iter().zip(&found).filter(|(ms, _)| **ms <= 10.0).map(|(_, count)| *count).collect();
            prop_assert!(of_short.windows(2).all(|pair| pair[0] == pair[1]));
            let round: f64 = launches_ms.iter().zip(&found).filter(|(ms, _)| **ms <= 10.0).map(|(ms, count)| ms * f64::from(*count)).sum();
            prop_assert!(round <= 10.0 * 5.0 * of_short.len() as f64, "{round} {found:?}");
        }
    }
}
