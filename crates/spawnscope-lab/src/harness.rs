//! Measures cases in rounds. Every case runs one batch per round, so that disturbances of the
//! machine affect all cases alike. Runs as many rounds as the noise requires and the time allows.

use std::time::Instant;

use super::batches::{Case, Effort, prepare};
use super::measurements::{MIN_ROUNDS, Measurements};

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
