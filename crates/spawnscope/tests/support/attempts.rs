//! Retries for tests that load on the machine can spoil. Attempts return the failure instead of
//! panicking, because a backtrace leaves the process with more memory, which makes the forks of all
//! later attempts slower.

// Other crates include this file, so it brings its module along.
#[path = "side_by_side.rs"]
pub mod side_by_side;

use std::thread::sleep;
use std::time::Duration;

use side_by_side::alone;

/// Pauses before the attempts in milliseconds. Growing pauses keep one burst of load from spoiling
/// all attempts. More attempts would hide races.
const PAUSES_MS: [u64; 3] = [0, 200, 1000];

/// Makes up to three attempts, until one succeeds, and returns its result. Return an error only for
/// failures that load can cause; assert everything else within the attempt. No other test runs
/// meanwhile.
#[track_caller]
pub fn best_of_three<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut failures = Vec::new();
    for (number, pause) in PAUSES_MS.into_iter().enumerate() {
        let result = alone(|| {
            sleep(Duration::from_millis(pause));
            attempt()
        });
        match result {
            Ok(result) => return result,
            Err(failure) => {
                // Printed even if a later attempt succeeds: a test that always needs several
                // attempts has a cause other than load.
                eprintln!("attempt {} of {}: {failure:.300}", number + 1, PAUSES_MS.len());
                failures.push(failure);
            }
        }
    }
    panic!("no attempt succeeded:\n{}", failures.join("\n"));
}

/// Makes attempts of length 1, 3 and 9. The longer an attempt is, the more time the recorder has.
#[track_caller]
pub fn with_growing_lengths<T>(mut attempt: impl FnMut(u32) -> Result<T, String>) -> T {
    let mut lengths = [1, 3, 9].into_iter();
    best_of_three(|| attempt(lengths.next().expect("one for each attempt")))
}

/// Returns how often a race is tried: `usual` times, or once if `SPAWNSCOPE_TEST_ONCE` is set, as
/// in guests whose clock counts instructions.
pub fn rounds(usual: usize) -> usize {
    if std::env::var_os("SPAWNSCOPE_TEST_ONCE").is_some() { 1 } else { usual }
}

/// Returns `Ok` if the condition holds, otherwise the description of the failure.
pub fn ok_if(condition: bool, describe: impl FnOnce() -> String) -> Result<(), String> {
    if condition { Ok(()) } else { Err(describe()) }
}
