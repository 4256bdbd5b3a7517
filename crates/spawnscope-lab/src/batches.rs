//! The measurements of cases: first trials, then batches in rounds. Every case runs one batch per
//! round, so that disturbances of the machine affect all cases alike. There are as many rounds as
//! the noise requires and the time allows.
//!
//! Short cases that are compared with each other make the same number of launches per batch,
//! because a batch of two launches measures colder caches than one of twenty.

use std::time::{Duration, Instant};

use crate::LabError;
use crate::measurements::{MIN_ROUNDS, Measurements, Value};

#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Whether to use smaller sizes, and to accept a rough result.
    pub quick: bool,
    /// The time for the rounds of one experiment. `MIN_ROUNDS` rounds are run even if they take
    /// longer.
    pub time: Duration,
}

impl Effort {
    /// Returns the wanted noise: half an interval's length as a fraction of the median.
    pub(super) fn wanted_noise(self) -> f64 {
        if self.quick { 0.1 } else { 0.01 }
    }

    pub(super) fn batch(self) -> Duration {
        Duration::from_millis(if self.quick { 2 } else { 10 })
    }

    /// Returns the minimum and maximum number of launches in a batch of a case with short launches.
    /// Launches that are longer than a batch are measured one by one.
    pub(super) fn batch_launch_limits(self) -> [f64; 2] {
        if self.quick { [2.0, 5.0] } else { [5.0, 25.0] }
    }
}

/// The number of trials of each case. A disturbance of the machine may affect any trial, but hardly
/// all of them.
const TRIALS: usize = 5;
const TRIALS_IF_SLOW: usize = 3;
/// A case is slow if its trials took longer in total than this many batches should take.
const SLOW_BATCHES: u32 = 10;

/// A case, and its measurements so far.
pub struct Case<'a> {
    run: Run<'a>,
    /// Whether each call of `run` makes as many launches as requested, and returns the time of one
    /// launch in nanoseconds as the first value. Otherwise each call does the same work.
    makes_launches: bool,
    /// The number of columns, from the first, that must be within the wanted noise before the
    /// rounds end.
    quiet_columns: usize,
    trials: usize,
    trial_time: Duration,
    /// The time of a launch in the fastest trial, in nanoseconds.
    min_launch_ns: f64,
    count: u32,
    pub(super) measured: Measurements,
}

/// The function that measures a case. Returns a value for each column.
type Run<'a> = Box<dyn FnMut(u32) -> Result<Vec<f64>, LabError> + 'a>;

impl<'a> Case<'a> {
    /// Creates a case that makes as many launches as requested. The first value that `run` returns
    /// must be the time of one launch in nanoseconds. `keys` identify the case.
    pub fn new(
        keys: impl IntoIterator<Item = Value>,
        run: impl FnMut(u32) -> Result<Vec<f64>, LabError> + 'a,
    ) -> Case<'a> {
        Case {
            run: Box::new(run),
            makes_launches: true,
            quiet_columns: 1,
            trials: 0,
            trial_time: Duration::ZERO,
            min_launch_ns: f64::INFINITY,
            count: 1,
            measured: Measurements { keys: keys.into_iter().collect(), ..Measurements::default() },
        }
    }

    /// Creates a case whose amount of work does not depend on the requested number of launches.
    pub fn with_fixed_work(
        keys: impl IntoIterator<Item = Value>,
        mut run: impl FnMut() -> Result<Vec<f64>, LabError> + 'a,
    ) -> Case<'a> {
        Case { makes_launches: false, ..Case::new(keys, move |_| run()) }
    }

    /// Sets how many columns must be within the wanted noise. The default is one.
    #[must_use]
    pub fn quiet_columns(self, columns: usize) -> Case<'a> {
        Case { quiet_columns: columns, ..self }
    }

    fn needs_trial(&self, effort: Effort) -> bool {
        let is_slow = self.trial_time >= effort.batch() * SLOW_BATCHES;
        let needed = match self.makes_launches {
            true if is_slow => TRIALS_IF_SLOW,
            true => TRIALS,
            // A single trial warms up the caches.
            false => 1,
        };
        self.measured.failure.is_none() && self.trials < needed
    }

    fn run_trial(&mut self, effort: Effort) {
        // If more than one launch is requested, an uncounted one comes first, so that only launches
        // with warm caches are timed.
        let count = if is_short(self.min_launch_ns, effort) { 2 } else { 1 };
        let began = Instant::now();
        match (self.run)(count) {
            Ok(values) => {
                self.min_launch_ns = values.first().map_or(self.min_launch_ns, |one| one.min(self.min_launch_ns));
            }
            Err(failure) => self.measured.failure = Some(failure),
        }
        self.trial_time += began.elapsed();
        self.trials += 1;
    }

    pub(super) fn measure(&mut self) {
        if self.measured.failure.is_some() {
            return;
        }
        match (self.run)(self.count) {
            Ok(values) => self.measured.rounds.push(values),
            Err(failure) => self.measured.failure = Some(failure),
        }
    }

    /// Returns whether all columns that must be quiet are within the wanted noise, or the case has
    /// failed. Columns with a median of zero are ignored, because they have no relative noise.
    pub(super) fn is_quiet(&self, effort: Effort) -> bool {
        let estimates = (0..self.quiet_columns).filter_map(|column| self.measured.estimate(column));
        self.measured.failure.is_some()
            || estimates
                .filter(|estimate| estimate.median != 0.0)
                .all(|estimate| estimate.noise() <= effort.wanted_noise())
    }
}

/// Runs the trials of all cases in turn, so that a disturbance does not affect two trials of the
/// same case. Then decides how many launches each batch makes. `may_continue` is called before each
/// trial; if it returns false, nothing more is done.
pub(super) fn prepare(cases: &mut [Case<'_>], effort: Effort, may_continue: &dyn Fn() -> bool) {
    for _ in 0..TRIALS {
        for case in cases.iter_mut().filter(|case| case.needs_trial(effort)) {
            if !may_continue() {
                return;
            }
            case.run_trial(effort);
        }
    }
    let makes_launches = |case: &&mut Case<'_>| case.makes_launches && case.measured.failure.is_none();
    let mut cases: Vec<&mut Case<'_>> = cases.iter_mut().filter(makes_launches).collect();
    let min_launch_ns: Vec<f64> = cases.iter().map(|case| case.min_launch_ns).collect();
    for (case, count) in cases.iter_mut().zip(launch_counts(&min_launch_ns, effort)) {
        case.count = count;
        case.measured.launches = Some(count);
    }
}

fn is_short(launch_ns: f64, effort: Effort) -> bool {
    launch_ns <= effort.batch().as_nanos() as f64
}

/// Returns the launches per batch for cases with these launch times. All short cases get the same
/// number, chosen so that their batches have the wanted mean length. Launches that take longer than
/// a batch should are measured singly, since caches hardly affect them.
fn launch_counts(min_launch_ns: &[f64], effort: Effort) -> Vec<u32> {
    let short: Vec<f64> = min_launch_ns.iter().copied().filter(|one| is_short(*one, effort)).collect();
    let mean = short.iter().sum::<f64>() / short.len() as f64;
    let [min_launches, max_launches] = effort.batch_launch_limits();
    let short_count = (effort.batch().as_nanos() as f64 / mean).clamp(min_launches, max_launches) as u32;
    min_launch_ns.iter().map(|one| if is_short(*one, effort) { short_count } else { 1 }).collect()
}

const MAX_ROUNDS: usize = 200;

/// Measures all cases in rounds. `may_continue` is called before each batch with the fraction that
/// is done; once it returns false, the results so far are returned.
pub fn interleave(effort: Effort, mut cases: Vec<Case<'_>>, may_continue: &dyn Fn(f64) -> bool) -> Vec<Measurements> {
    prepare(&mut cases, effort, &|| may_continue(0.0));
    let mut order: Vec<usize> = (0..cases.len()).collect();
    // With a fixed seed, every run uses the same orders.
    let mut random = fastrand::Rng::with_seed(0);
    let began = Instant::now();
    'rounds: for round in 0..MAX_ROUNDS {
        let spent = began.elapsed().as_secs_f64() / effort.time.as_secs_f64().max(1e-9);
        let is_enough = round >= MIN_ROUNDS && (spent >= 1.0 || cases.iter().all(|case| case.is_quiet(effort)));
        let fraction = spent.min(round as f64 / MIN_ROUNDS as f64).min(1.0);
        if is_enough {
            break;
        }
        // A case that follows a slow one finds cold caches. In a random order, this does not always
        // affect the same case.
        random.shuffle(&mut order);
        for &index in &order {
            if !may_continue(fraction) {
                break 'rounds;
            }
            cases[index].measure();
        }
    }
    cases.into_iter().map(|case| case.measured).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use super::super::LabError;
    use super::super::measurements::Value;
    use super::super::outcome::{Outcome, Unit, key, measure};
    use super::*;

    const MS: f64 = 1e6;
    const FULL: Effort = Effort { quick: false, time: Duration::ZERO };

    /// Returns the counts for cases whose fastest trials had these launch times in milliseconds.
    fn counts_for(launches_ms: &[f64]) -> Vec<u32> {
        let least: Vec<f64> = launches_ms.iter().map(|one| one * MS).collect();
        launch_counts(&least, FULL)
    }

    #[test]
    fn compared_cases_get_equal_counts() {
        assert_eq!(counts_for(&[0.1, 0.09, 0.28, 1.1]), [25; 4]);
        assert_eq!(counts_for(&[0.1, 1.14, 1.83, 2.28, 0.82, 14.1]), [8, 8, 8, 8, 8, 1]);
        assert_eq!(counts_for(&[9.0, 9.5]), [5, 5], "a batch has several launches");
        assert_eq!(counts_for(&[52.0, 84.0]), [1, 1]);
        assert_eq!(counts_for(&[]), [0; 0]);
    }

    /// Prepares two cases with these launch times in milliseconds; disturbed trials take 90 ms
    /// longer. Returns the launches per batch and the number of trials of each case.
    fn prepare_two(launches_ms: [f64; 2], is_disturbed: fn(usize) -> bool) -> Vec<(Option<u32>, usize)> {
        let trials = [Cell::new(0), Cell::new(0)];
        let mut cases: Vec<Case<'_>> = Vec::new();
        for (trial, launch_ms) in trials.iter().zip(launches_ms) {
            cases.push(Case::new([], move |_| {
                let more = if is_disturbed(trial.replace(trial.get() + 1)) { 90.0 } else { 0.0 };
                Ok(vec![(launch_ms + more) * MS])
            }));
        }
        prepare(&mut cases, FULL, &|| true);
        let results = cases.iter().map(|case| (case.measured.launches, case.trials));
        results.collect()
    }

    #[test]
    fn disturbed_trials_do_not_change_the_counts() {
        let quiet = prepare_two([0.1, 0.3], |_| false);
        assert_eq!(quiet, [(Some(25), TRIALS); 2]);
        assert_eq!(prepare_two([0.1, 0.3], |trial| trial == 0), quiet);
        assert_eq!(prepare_two([0.1, 0.3], |trial| trial != 3), quiet);
        assert_eq!(prepare_two([0.1, 30.0], |_| false)[1].0, Some(1), "long in each trial");
    }

    #[test]
    fn a_case_with_fixed_work_gets_one_trial_as_a_warm_up() {
        let runs = Cell::new(0);
        let case = Case::with_fixed_work([], || {
            runs.set(runs.get() + 1);
            Ok(vec![1.0])
        });
        let mut cases = [case];
        prepare(&mut cases, FULL, &|| true);
        assert_eq!((cases[0].measured.launches, cases[0].trials), (None, 1));
        cases[0].measure();
        assert_eq!(cases[0].measured.rounds, [[1.0]]);
        drop(cases);
        assert_eq!(runs.get(), 2);
    }

    #[test]
    fn all_requested_columns_must_be_quiet() {
        for (quiet_columns, is_quiet) in [(1, true), (2, false)] {
            let mut case = Case::with_fixed_work([], || Ok(Vec::new())).quiet_columns(quiet_columns);
            case.measured.rounds = (1..9).map(|round| vec![5.0, round as f64, 0.0]).collect();
            assert_eq!(case.is_quiet(FULL), is_quiet, "{quiet_columns}");
        }
        let mut case = Case::with_fixed_work([], || Ok(Vec::new())).quiet_columns(3);
        case.measured.rounds = (0..9).map(|round| vec![5.0, 7.0, f64::from(round / 8)]).collect();
        assert!(case.is_quiet(FULL), "zero in most rounds");
    }

    const QUICK: Effort = Effort { quick: true, time: Duration::ZERO };

    fn case<'a>(name: &str, run: impl FnMut(u32) -> Result<Vec<f64>, LabError> + 'a) -> Case<'a> {
        Case::new([Value::from(name)], run)
    }

    #[test]
    fn every_case_runs_in_every_round_even_if_no_time_is_left() {
        let batches = RefCell::new(Vec::new());
        let noisy = ["a", "b", "c"].map(|name| {
            let batches = &batches;
            case(name, move |count| {
                assert!((1..=5).contains(&count));
                batches.borrow_mut().push(name);
                Ok(vec![batches.borrow().len() as f64])
            })
        });
        let measured = interleave(QUICK, noisy.into(), &|_| true);
        assert!(measured.iter().all(|case| case.rounds.len() == MIN_ROUNDS && case.failure.is_none()));
        let batches = batches.borrow();
        let rounds: Vec<Vec<&str>> = batches.chunks(3).map(<[_]>::to_vec).collect();
        assert_eq!(rounds.len(), MIN_ROUNDS + 5, "five trials precede the rounds");
        assert!(rounds.iter().all(|round| ["a", "b", "c"].iter().all(|name| round.contains(name))));
        assert!(rounds.iter().any(|round| round[0] != "a"), "no case is always the first");
    }

    #[test]
    fn quiet_cases_end_early_and_noisy_ones_run_until_a_limit() {
        let effort = Effort { quick: true, time: Duration::from_secs(3600) };
        let quiet = interleave(effort, vec![case("quiet", |_| Ok(vec![5.0]))], &|_| true);
        assert_eq!(quiet[0].rounds.len(), MIN_ROUNDS);
        let number = Cell::new(0.0);
        let noisy =
            interleave(effort, vec![case("noisy", |_| Ok(vec![number.replace(number.get() + 1.0)]))], &|_| true);
        assert_eq!(noisy[0].rounds.len(), MAX_ROUNDS, "the limit is reached before the hour is over");
    }

    #[test]
    fn a_failed_case_is_not_run_again_and_has_no_row_in_the_outcome() {
        let runs = Cell::new(0);
        let failing = case("failing", |_| {
            runs.set(runs.get() + 1);
            if runs.get() == 7 {
                return Err(LabError::Invalid("a child was missing".to_owned()));
            }
            Ok(vec![1.0])
        });
        let measured = interleave(QUICK, vec![failing, case("sound", |_| Ok(vec![2.0]))], &|_| true);
        assert_eq!(runs.get(), 7, "five of them were trials");
        let columns = vec![key("case", "case", Unit::Text), measure("wall_ns", "wall", Unit::Nanos)];
        let mut outcome = Outcome::new("", columns);
        outcome.add(&measured);
        assert_eq!(outcome.rows.len(), 1);
        assert_eq!(outcome.rows[0].get("case"), &Value::from("sound"));
        assert_eq!(outcome.notes, ["failing: invalid measurement: a child was missing"]);
    }

    #[test]
    fn an_interruption_keeps_the_results_so_far() {
        let calls = Cell::new(0);
        let measured = interleave(QUICK, vec![case("cut", |_| Ok(vec![1.0]))], &|_| calls.replace(calls.get() + 1) < 7);
        assert_eq!(measured[0].rounds.len(), 2, "also called before each of five trials");
        let never = interleave(QUICK, vec![case("none", |_| panic!("run"))], &|_| false);
        assert!(never[0].rounds.is_empty() && !never[0].has_results());
    }
}
