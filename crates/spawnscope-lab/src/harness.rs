//! Measures cases in rounds. Every case runs one batch per round, so that disturbances of the
//! machine affect all cases alike. Runs as many rounds as the noise requires and the time allows,
//! and computes medians with intervals. The batches are in `batches`.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::LabError;
use super::batches::{Case, prepare};
use super::outcome::Value;
use spawnscope_data::statistics::median;

/// With fewer rounds, a median has no 95 % interval.
pub const MIN_ROUNDS: usize = 6;
const MAX_ROUNDS: usize = 200;

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

#[derive(Debug)]
pub struct Measurements {
    pub keys: Vec<Value>,
    pub rounds: Vec<Vec<f64>>,
    /// The number of launches per round; `None` for a case that does fixed work, whose launches the
    /// harness does not choose.
    pub launches: Option<u32>,
    pub failure: Option<LabError>,
}

/// A median, and an interval that contains it with a probability of at least 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub median: f64,
    /// The lower end of the interval; the smallest value if there are too few rounds.
    pub low: f64,
    /// The upper end of the interval; the largest value if there are too few rounds.
    pub high: f64,
    pub rounds: usize,
}

#[cfg(test)]
impl Estimate {
    /// Returns an estimate for tests: `median` ± `half` over `rounds` rounds.
    pub(super) fn for_test(median: f64, half: f64, rounds: usize) -> Estimate {
        Estimate { median, low: median - half, high: median + half, rounds }
    }
}

impl Estimate {
    /// Returns the estimate from one value per round; `None` without rounds.
    pub fn from_values(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let below = droppable_ranks(sorted.len());
        Some(Estimate {
            median: median(sorted.iter().copied())?,
            low: *sorted.get(below)?,
            high: *sorted.get(sorted.len() - 1 - below)?,
            rounds: sorted.len(),
        })
    }

    /// Returns half the interval as a fraction of the median; infinite if the median is zero and
    /// the interval is not.
    pub fn noise(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { half / self.median.abs() }
    }
}

/// Returns how many of the sorted values can be dropped at either end so that the range of the
/// remaining values contains the median with a probability of at least 95 %. This is the sign test,
/// which follows the binomial distribution.
fn droppable_ranks(count: usize) -> usize {
    // The maximum probability that the median lies beyond one given end of the range.
    const MAX_MISSED_AT_ONE_END: f64 = 0.025;
    let mut dropped = 0;
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = probability;
    while sum <= MAX_MISSED_AT_ONE_END && dropped + 1 < count.div_ceil(2) {
        dropped += 1;
        probability *= (count - dropped + 1) as f64 / dropped as f64;
        sum += probability;
    }
    // If the sum exceeds the limit, the last value that was dropped is one too many.
    dropped.saturating_sub(usize::from(sum > MAX_MISSED_AT_ONE_END))
}

impl Measurements {
    pub fn failed(keys: Vec<Value>, failure: LabError) -> Measurements {
        Measurements { failure: Some(failure), ..Measurements::new(keys) }
    }

    pub fn new(keys: Vec<Value>) -> Measurements {
        Measurements { keys, rounds: Vec::new(), launches: None, failure: None }
    }

    pub fn has_results(&self) -> bool {
        self.failure.is_none() && !self.rounds.is_empty()
    }

    pub fn label(&self) -> String {
        let text = self.keys.iter().filter_map(|key| match key {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) if *number >= 1e6 => Some(spawnscope_data::units::bytes(*number as u64)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        text.collect::<Vec<_>>().join(", ")
    }

    pub fn values(&self, column: usize) -> Vec<f64> {
        self.rounds.iter().filter_map(|round| round.get(column).copied()).collect()
    }

    pub fn estimate(&self, column: usize) -> Option<Estimate> {
        Estimate::from_values(&self.values(column))
    }

    /// Returns the ratio of a column to that of another case, computed round by round; `None` if
    /// the other case's value is zero.
    pub fn ratio(&self, base: &Measurements, column: usize) -> Option<Estimate> {
        let ratios = self.values(column).into_iter().zip(base.values(column)).map(|(value, base)| value / base);
        Estimate::from_values(&ratios.collect::<Vec<_>>())
            .filter(|ratio| ratio.median.is_finite() && ratio.high.is_finite())
    }
}

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
        let share = spent.min(round as f64 / MIN_ROUNDS as f64).min(1.0);
        if is_enough {
            break;
        }
        // A case that follows a slow one finds cold caches. In a random order, this does not always
        // affect the same case.
        random.shuffle(&mut order);
        for &index in &order {
            if !may_continue(share) {
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

    use super::super::outcome::{Outcome, Unit, key, measure};
    use super::*;

    const QUICK: Effort = Effort { quick: true, time: Duration::ZERO };

    fn case<'a>(name: &str, run: impl FnMut(u32) -> Result<Vec<f64>, LabError> + 'a) -> Case<'a> {
        Case::new([Value::from(name)], run)
    }

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // The number of values to drop at either end, from tables of the binomial distribution.
        for (count, dropped) in [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5), (25, 7), (100, 39)] {
            assert_eq!(droppable_ranks(count), dropped, "{count}");
        }
        let found = Estimate::from_values(&[9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]).unwrap();
        assert_eq!((found.low, found.median, found.high, found.rounds), (2.0, 5.0, 8.0, 9));
        assert_eq!(Estimate::from_values(&[]), None);
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
        assert_eq!(rounds.len(), MIN_ROUNDS + 5, "and trials");
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

    #[test]
    fn ratios_are_computed_within_rounds() {
        let ratio = with_slow_rounds(30.0).ratio(&with_slow_rounds(10.0), 0).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (3.0, 3.0, 3.0));
        assert_eq!(with_slow_rounds(1.0).ratio(&with_slow_rounds(0.0), 0), None);
    }

    /// Returns a case on a machine that is twice as slow in every second round, which does not
    /// affect a ratio.
    fn with_slow_rounds(time: f64) -> Measurements {
        let rounds = (0..8).map(|round| vec![time * f64::from(1 + round % 2)]).collect();
        Measurements { keys: Vec::new(), rounds, launches: None, failure: None }
    }
}
