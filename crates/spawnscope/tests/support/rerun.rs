//! Repeats a failed live test up to twice, each time in a new process. Most live tests measure or race, and a stalled machine can spoil any
//! of them, but a bug in the product fails each time. Each failure is printed, and repeated tests are listed at the end. The suite fails if
//! many tests were repeated, because a stall does not explain that. In continuous integration, it also fails if a repeated test fails
//! again when it runs alone: such a test has a race.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::Conclusion;

use super::attempts::side_by_side::alone;

/// The variable with the name of the only test that this process should run.
const REPEATED: &str = "SPAWNSCOPE_TEST_REPEATED";
/// Pauses before the repetitions. They grow, so that one burst of load does not spoil all of them.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];
/// One in this many tests may be repeated.
const REPEATABLE_ONE_IN: usize = 20;
/// How often continuous integration runs a repeated test alone.
const RUNS_ALONE: usize = 10;
/// How many of these runs must fail to show a race.
const FAILURES_OF_A_RACE: usize = 2;

/// The tests that failed, and passed when they were repeated.
static PASSED_WHEN_REPEATED: Mutex<Vec<&str>> = Mutex::new(Vec::new());

/// Returns the test that this process repeats, if any. Call this while there is only one thread.
pub fn repeated_test() -> Option<String> {
    let name = std::env::var(REPEATED).ok()?;
    // SAFETY: this process has one thread.
    unsafe { std::env::remove_var(REPEATED) };
    Some(name)
}

/// Runs the test that this process should repeat. The panic hook prints a failure.
pub fn run_repeated(test: impl FnOnce()) -> ExitCode {
    match catch_unwind(AssertUnwindSafe(test)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Runs a test, and repeats it in a new process if it fails. If all repetitions fail, the first failure is reported.
pub fn run_up_to_three_times(name: &'static str, test: impl FnOnce()) {
    let Err(failure) = catch_unwind(AssertUnwindSafe(test)) else {
        return;
    };
    for pause in PAUSES {
        sleep(pause);
        eprintln!("repeating `{name}` in a new process");
        if alone(|| passes_in_a_new_process(name)) {
            PASSED_WHEN_REPEATED.lock().expect("no test panicked with it").push(name);
            return;
        }
    }
    resume_unwind(failure);
}

fn passes_in_a_new_process(name: &str) -> bool {
    let binary = std::env::current_exe().expect("this binary has a path");
    let status = Command::new(binary).env(REPEATED, name).status();
    status.expect("this binary runs").success()
}

/// Returns libtest's result, unless too many tests were repeated or one of them has a race.
pub fn verdict(conclusion: &Conclusion) -> ExitCode {
    let passed_when_repeated = PASSED_WHEN_REPEATED.lock().expect("no test panicked with it");
    if passed_when_repeated.is_empty() {
        return conclusion.exit_code();
    }
    let run = usize::try_from(conclusion.num_passed + conclusion.num_failed).expect("fits");
    let count = passed_when_repeated.len();
    eprintln!("passed only when repeated, {count} of {run}: {}", passed_when_repeated.join(", "));
    let are_too_many = count > run.div_ceil(REPEATABLE_ONE_IN);
    if are_too_many {
        eprintln!("that is more than one in {REPEATABLE_ONE_IN}, which load alone does not explain: the suite fails");
    }
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    // All tests are examined, so that one run reports every race.
    let races = passed_when_repeated.iter().filter(|name| is_ci && has_race(name)).count();
    if are_too_many || races > 0 {
        return ExitCode::FAILURE;
    }
    conclusion.exit_code()
}

fn has_race(name: &str) -> bool {
    let (runs, failures) = run_alone(|| passes_in_a_new_process(name));
    let is_race = failures >= FAILURES_OF_A_RACE;
    let consequence = if is_race { ", so it has a race: the suite fails" } else { "" };
    eprintln!("`{name}` failed {failures} of {runs} runs on its own{consequence}");
    is_race
}

/// Runs a test until it is clear whether it has a race. Returns the number of runs, and how many of them failed.
pub fn run_alone(mut passes: impl FnMut() -> bool) -> (usize, usize) {
    let mut failures = 0;
    for run in 1..=RUNS_ALONE {
        failures += usize::from(!passes());
        if failures == FAILURES_OF_A_RACE {
            return (run, failures);
        }
    }
    (RUNS_ALONE, failures)
}
