//! Attempts at what a machine that is busy with others can spoil. They return what went wrong instead of panicking, since a backtrace
//! leaves the process with memory that makes the forks of all later attempts dearer.

use std::thread::sleep;
use std::time::Duration;

/// Before each attempt, in milliseconds; before further ones, the last. They grow, so that attempts do not share one load.
const PAUSES_MS: [u64; 4] = [0, 200, 1000, 2000];

/// Makes attempts until one is good, and returns what it gave. An error is what the load of the machine may be the cause of;
/// what holds under any load is asserted in each attempt.
#[track_caller]
pub fn best_of<T>(attempts: usize, mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut failures = Vec::new();
    for number in 0..attempts {
        let pause = PAUSES_MS.get(number).or(PAUSES_MS.last()).copied().unwrap_or_default();
        sleep(Duration::from_millis(pause));
        match attempt() {
            Ok(result) => return result,
            Err(failure) => {
                // Said in any case: one that needs them every time has another cause than load.
                eprintln!("attempt {} of {attempts}: {failure:.300}", number + 1);
                failures.push(failure);
            }
        }
    }
    panic!("none of {attempts} attempts was good:\n{}", failures.join("\n"));
}

/// Makes attempts that are told their length: 1, 3 and 9. The recorder has the more time to do its part, the longer they are.
#[track_caller]
pub fn at_length<T>(mut attempt: impl FnMut(u32) -> Result<T, String>) -> T {
    const LENGTHS: [u32; 3] = [1, 3, 9];
    let mut lengths = LENGTHS.into_iter();
    best_of(LENGTHS.len(), || attempt(lengths.next().expect("one for each attempt")))
}

/// How often a race is tried: so many times, or once where `SPAWNSCOPE_TEST_ONCE` is set, as in guests whose clock counts instructions.
pub fn rounds(usual: usize) -> usize {
    if std::env::var_os("SPAWNSCOPE_TEST_ONCE").is_some() {
        1
    } else {
        usual
    }
}

/// An attempt's outcome: good if that holds, and else what was seen.
pub fn good(holds: bool, seen: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(seen()) }
}
