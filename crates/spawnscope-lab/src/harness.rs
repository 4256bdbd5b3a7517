//! Measures cases in rounds: every case runs one batch per round, so that disturbances of the machine affect all cases alike. Makes as many
//! rounds as the noise requires and the time allows, and computes medians with intervals. `batches` has the batches themselves.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::LabError;
use super::batches::{Batch, Case, prepare};
use super::outcome::Value;
use spawnscope_data::statistics::median;

/// With fewer rounds, a median has no 95 % interval.
pub const MIN_ROUNDS: usize = 6;
const MAX_ROUNDS: usize = 200;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Use smaller sizes, and accept a rough result.
    pub quick: bool,
    /// The time for the rounds of one experiment. The minimum number of rounds is made in any case.
    pub time: Duration,
}

impl Effort {
    /// The wanted noise: half an interval's length as a fraction of the median.
    pub(super) fn wanted_noise(self) -> f64 {
        if self.quick { 0.1 } else { 0.01 }
    }

    /// How long one batch of a case should take.
    pub(super) fn batch(self) -> Duration {
        Duration::from_millis(if self.quick { 2 } else { 10 })
    }

    /// The minimum and maximum number of launches in a batch, if launches are short.
    pub(super) fn launches_in_a_turn(self) -> [f64; 2] {
        if self.quick { [2.0, 5.0] } else { [5.0, 25.0] }
    }
}

/// The measurements of one case.
#[derive(Debug)]
pub struct Measured {
    /// The keys that identify the case.
    pub keys: Vec<Value>,
    /// The values of each round.
    pub rounds: Vec<Vec<f64>>,
    /// The number of launches per round; unknown if the case determines its own amount of work.
    pub launches: Option<u32>,
    /// Why the values must not be used.
    pub failure: Option<LabError>,
}

/// A median, and an interval that contains it with a probability of at least 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median over rounds.
    pub median: f64,
    /// The lower end; the smallest value if there are too few rounds.
    pub low: f64,
    /// The upper end; the largest value if there are too few rounds.
    pub high: f64,
    /// The number of rounds.
    pub rounds: usize,
}

#[cfg(test)]
impl Estimate {
    /// An estimate for tests: `median` ± `half` over `rounds` rounds.
    pub(super) fn made_up(median: f64, half: f64, rounds: usize) -> Estimate {
        Estimate {
            median,
            low: median - half,
            high: median + half,
            rounds,
        }
    }
}

impl Estimate {
    /// The estimate from one value per round; `None` without rounds.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let below = ranks_outside(sorted.len());
        Some(Estimate {
            median: median(sorted.iter().copied())?,
            low: *sorted.get(below)?,
            high: *sorted.get(sorted.len() - 1 - below)?,
            rounds: sorted.len(),
        })
    }

    /// Half the interval as a fraction of the median; infinite if the median is zero and the interval is not.
    #[must_use]
    pub fn noise(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        if half == 0.0 { 0.0 } else { half / self.median.abs() }
    }
}

/// How many order statistics can be dropped at either end so that the others contain the median with 95 %. This is the sign test, which
/// follows the binomial distribution.
fn ranks_outside(count: usize) -> usize {
    const MISSED_AT_EACH_END: f64 = 0.025;
    let mut outside = 0;
    let mut probability = 0.5f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut sum = probability;
    while sum <= MISSED_AT_EACH_END && outside + 1 < count.div_ceil(2) {
        outside += 1;
        probability *= (count - outside + 1) as f64 / outside as f64;
        sum += probability;
    }
    // `outside` is the first rank that is too many.
    outside.saturating_sub(usize::from(sum > MISSED_AT_EACH_END))
}

impl Measured {
    /// A case that failed before its first round.
    #[must_use]
    pub fn failed(keys: Vec<Value>, failure: LabError) -> Measured {
        Measured {
            keys,
            rounds: Vec::new(),
            launches: None,
            failure: Some(failure),
        }
    }

    /// Whether it has results to report.
    #[must_use]
    pub fn has_results(&self) -> bool {
        self.failure.is_none() && !self.rounds.is_empty()
    }

    /// A description of the case by its keys.
    #[must_use]
    pub fn label(&self) -> String {
        let text = self.keys.iter().filter_map(|key| match key {
            Value::Text(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) if *number >= 1e6 => Some(spawnscope_data::units::bytes(*number as u64)),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        });
        text.collect::<Vec<_>>().join(", ")
    }

    /// The values of a column, round by round.
    #[must_use]
    pub fn values(&self, column: usize) -> Vec<f64> {
        self.rounds
            .iter()
            .filter_map(|round| round.get(column).copied())
            .collect()
    }

    /// The estimate of a column.
    #[must_use]
    pub fn estimate(&self, column: usize) -> Option<Estimate> {
        Estimate::of(&self.values(column))
    }

    /// The ratio to another case, computed round by round; `None` if the other case's value is zero.
    #[must_use]
    pub fn ratio(&self, base: &Measured, column: usize) -> Option<Estimate> {
        let ratios = quotients(&self.values(column), &base.values(column));
        Estimate::of(&ratios).filter(|ratio| ratio.median.is_finite() && ratio.high.is_finite())
    }
}

fn quotients(above: &[f64], below: &[f64]) -> Vec<f64> {
    above.iter().zip(below).map(|(above, below)| above / below).collect()
}

/// Measures all cases in rounds. `may_continue` is called before each batch with the finished share; if it returns false, the results so far are
/// returned.
pub fn interleave(effort: Effort, cases: Vec<Case<'_>>, may_continue: &dyn Fn(f64) -> bool) -> Vec<Measured> {
    let mut batches: Vec<Batch<'_>> = cases.into_iter().map(Batch::new).collect();
    prepare(&mut batches, effort, &|| may_continue(0.0));
    let mut order: Vec<usize> = (0..batches.len()).collect();
    // A fixed seed, so that every run uses the same orders.
    let mut random = fastrand::Rng::with_seed(0);
    let began = Instant::now();
    'rounds: for round in 0..MAX_ROUNDS {
        let spent = began.elapsed().as_secs_f64() / effort.time.as_secs_f64().max(1e-9);
        let enough = round >= MIN_ROUNDS && (spent >= 1.0 || batches.iter().all(|batch| batch.is_quiet(effort)));
        let done = spent.min(round as f64 / MIN_ROUNDS as f64).min(1.0);
        if enough {
            break;
        }
        // A case that follows a slow one finds cold caches; with a random order, no case always does.
        random.shuffle(&mut order);
        for &index in &order {
            if !may_continue(done) {
                break 'rounds;
            }
            batches[index].take();
        }
    }
    batches.into_iter().map(|batch| batch.measured).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use proptest::prelude::*;

    use super::super::outcome::{Outcome, Unit, key, measure};
    use super::*;

    const BRIEF: Effort = Effort {
        quick: true,
        time: Duration::ZERO,
    };

    fn case<'a>(name: &str, run: impl FnMut(u32) -> Result<Vec<f64>, LabError> + 'a) -> Case<'a> {
        Case::new([Value::from(name)], run)
    }

    #[test]
    fn intervals_are_those_of_the_sign_test() {
        // From tables of the binomial distribution: the number of values to drop at either end.
        for (count, outside) in [(6, 0), (8, 0), (9, 1), (11, 1), (12, 2), (20, 5), (25, 7), (100, 39)] {
            assert_eq!(ranks_outside(count), outside, "{count}");
        }
        let found = Estimate::of(&[9.0, 1.0, 2.0, 8.0, 3.0, 7.0, 4.0, 6.0, 5.0]).unwrap();
        assert_eq!((found.low, found.median, found.high, found.rounds), (2.0, 5.0, 8.0, 9));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn every_case_has_its_turn_in_every_round_and_the_fewest_rounds_are_made() {
        let batches = RefCell::new(Vec::new());
        let noisy = |name: &'static str| {
            let batches = &batches;
            case(name, move |count| {
                assert!((1..=5).contains(&count));
                batches.borrow_mut().push(name);
                Ok(vec![batches.borrow().len() as f64])
            })
        };
        let measured = interleave(BRIEF, vec![noisy("a"), noisy("b"), noisy("c")], &|_| true);
        assert!(
            measured
                .iter()
                .all(|case| case.rounds.len() == MIN_ROUNDS && case.failure.is_none())
        );
        let batches = batches.borrow();
        let rounds: Vec<Vec<&str>> = batches.chunks(3).map(<[_]>::to_vec).collect();
        assert_eq!(rounds.len(), MIN_ROUNDS + 5, "and trials");
        assert!(
            rounds
                .iter()
                .all(|round| ["a", "b", "c"].iter().all(|name| round.contains(name)))
        );
        assert!(
            rounds.iter().any(|round| round[0] != "a"),
            "no case is always the first"
        );
    }

    #[test]
    fn quiet_cases_end_early_and_noisy_ones_take_the_time() {
        let effort = Effort {
            quick: true,
            time: Duration::from_secs(3600),
        };
        let quiet = interleave(effort, vec![case("quiet", |_| Ok(vec![5.0]))], &|_| true);
        assert_eq!(quiet[0].rounds.len(), MIN_ROUNDS);
        let number = Cell::new(0.0);
        let noisy = interleave(
            effort,
            vec![case("noisy", |_| Ok(vec![number.replace(number.get() + 1.0)]))],
            &|_| true,
        );
        assert_eq!(noisy[0].rounds.len(), MAX_ROUNDS, "an hour is not over");
    }

    #[test]
    fn a_case_that_fails_is_not_run_again_and_gives_no_estimate_to_the_report() {
        let runs = Cell::new(0);
        let failing = case("failing", |_| {
            runs.set(runs.get() + 1);
            if runs.get() == 7 {
                return Err(LabError::Invalid("a child was missing".to_owned()));
            }
            Ok(vec![1.0])
        });
        let measured = interleave(BRIEF, vec![failing, case("sound", |_| Ok(vec![2.0]))], &|_| true);
        assert_eq!(runs.get(), 7, "five of them were trials");
        let columns = vec![key("case", "case", Unit::Text), measure("wall_ns", "wall", Unit::Nanos)];
        let mut outcome = Outcome::new("", columns);
        outcome.add(&measured);
        assert_eq!(outcome.rows.len(), 1);
        assert_eq!(outcome.rows[0].get("case"), &Value::from("sound"));
        assert_eq!(outcome.notes, ["failing: invalid measurement: a child was missing"]);
    }

    #[test]
    fn an_interruption_ends_with_what_there_is() {
        let asked = Cell::new(0);
        let may_continue = |_| {
            asked.set(asked.get() + 1);
            asked.get() <= 7
        };
        let measured = interleave(BRIEF, vec![case("cut", |_| Ok(vec![1.0]))], &may_continue);
        assert_eq!(measured[0].rounds.len(), 2, "also called before each of five trials");
        let never = interleave(BRIEF, vec![case("none", |_| panic!("run"))], &|_| false);
        assert!(never[0].rounds.is_empty() && !never[0].has_results());
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        // The machine is twice as slow in every second round, which does not affect the ratio.
        let rounds = |of: f64| (0..8).map(|round| vec![of * f64::from(1 + round % 2)]).collect();
        let measured = |of| Measured {
            keys: Vec::new(),
            rounds: rounds(of),
            launches: None,
            failure: None,
        };
        let ratio = measured(30.0).ratio(&measured(10.0), 0).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high), (3.0, 3.0, 3.0));
        assert_eq!(measured(1.0).ratio(&measured(0.0), 0), None);
    }

    proptest! {
        #[test]
        fn the_median_lies_in_its_interval(values in prop::collection::vec(-1e9..1e9f64, 1..80)) {
            let found = Estimate::of(&values).unwrap();
            prop_assert!(found.low <= found.median && found.median <= found.high);
        }

        #[test]
        fn at_least_95_percent_are_held_and_not_many_more(count in 6usize..200) {
            // Both tails beyond the dropped values, summed up without the loop under test.
            let outside = ranks_outside(count);
            let tail = |most: usize| (0..=most).map(|k| binomial(count, k)).sum::<f64>();
            prop_assert!(2.0 * tail(outside) <= 0.05 + 1e-9);
            prop_assert!(2.0 * tail(outside + 1) > 0.05 - 1e-9, "one more could be dropped");
        }
    }

    fn binomial(count: usize, k: usize) -> f64 {
        let ways: f64 = (0..k).map(|i| ((count - i) as f64 / (i + 1) as f64).ln()).sum();
        (ways - count as f64 * 2f64.ln()).exp()
    }
}
