//! The harness of the live tests itself: how many attempts a test has, and when a test has a race.

#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "support/attempts.rs"]
mod attempts;
#[expect(dead_code, reason = "shared with the live tests, which use the rest")]
#[path = "support/rerun.rs"]
mod rerun;

use std::panic::catch_unwind;

use attempts::{best_of_three, ok_if, with_growing_lengths};

#[test]
fn the_third_attempt_is_the_last() {
    let attempts = std::cell::Cell::new(0);
    let succeeds_at = |number| {
        attempts.set(0);
        let attempt = || {
            attempts.set(attempts.get() + 1);
            ok_if(attempts.get() == number, || "not yet".to_owned())
        };
        catch_unwind(std::panic::AssertUnwindSafe(|| best_of_three(attempt))).is_ok()
    };
    assert!(succeeds_at(3) && attempts.get() == 3);
    assert!(!succeeds_at(4) && attempts.get() == 3);
}

#[test]
fn each_attempt_is_three_times_as_long_as_the_last() {
    let mut lengths = Vec::new();
    with_growing_lengths(|length| {
        lengths.push(length);
        ok_if(length == 9, || "too short".to_owned())
    });
    assert_eq!(lengths, [1, 3, 9]);
}

/// Runs a simulated test alone, which fails in these runs (counted from 1). Returns the numbers of runs and of failures.
fn run_failing(failing: &[usize]) -> (usize, usize) {
    let mut run = 0;
    rerun::run_alone(|| {
        run += 1;
        !failing.contains(&run)
    })
}

#[test]
fn two_failures_of_ten_runs_are_a_race() {
    assert_eq!(run_failing(&[]), (10, 0));
    assert_eq!(run_failing(&[4]), (10, 1));
    assert_eq!(run_failing(&[4, 10]), (10, 2));
    assert_eq!(run_failing(&[1, 2, 3]), (2, 2), "the second failure is enough");
}
