//! The harness of the live tests itself: how many attempts a measurement has.

use std::panic::catch_unwind;

use crate::attempts::{best_of_three, ok_if, with_growing_lengths};

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
