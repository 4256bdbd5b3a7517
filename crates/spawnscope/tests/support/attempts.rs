//! Retries for tests that load on the machine can spoil. Attempts return the failure instead of panicking, because a backtrace leaves the
//! process with more memory, which makes the forks of all later attempts slower.

use std::thread::sleep;
use std::time::Duration;

/// Pauses before the attempts in milliseconds; further attempts use the last. They grow, so that attempts do not share one load.
const PAUSES_MS: [u64; 4] = [0, 200, 1000, 2000];

/// Repeats an attempt until it succeeds, and returns its result. Return an error only for failures that load can cause; assert everything
/// else within the attempt.
#[track_caller]
pub fn best_of<T>(attempts: usize, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut failures = Vec::new();
    for number in 0..attempts {
        let pause = PAUSES_MS.get(number).or(PAUSES_MS.last()).copied().unwrap_or_default();
        sleep(Duration::from_millis(pause));
        match attempt() {
            Ok(result) => return result,
            Err(failure) => {
                // Printed even if a later attempt succeeds: a test that always needs several attempts has a cause other than load.
                eprintln!("attempt {} of {attempts}: {failure:.300}", number + 1);
                failures.push(failure);
            }
        }
    }
    panic!("none of {attempts} attempts succeeded:\n{}", failures.join("\n"));
}

/// Makes attempts of length 1, 3 and 9. The longer an attempt, the more time the recorder has to do its part.
#[track_caller]
pub fn at_length<T>(mut attempt: impl FnMut(u32) -> Result<T, String>) -> T {
    const LENGTHS: [u32; 3] = [1, 3, 9];
    let mut lengths = LENGTHS.into_iter();
    best_of(LENGTHS.len(), || attempt(lengths.next().expect("one for each attempt")))
}

/// How often a race is tried: `usual` times, or once if `SPAWNSCOPE_TEST_ONCE` is set, as in guests whose clock counts instructions.
pub fn rounds(usual: usize) -> usize {
    if std::env::var_os("SPAWNSCOPE_TEST_ONCE").is_some() {
        1
    } else {
        usual
    }
}

/// The outcome of an attempt: good if `holds`, else a description of what was seen.
pub fn good(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}
