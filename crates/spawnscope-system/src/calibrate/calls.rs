//! Measures how much recording adds to each system call: the recorder times its own calls before the collector is attached, and
//! again when the collector is attached and follows the recorder too. After every second call it runs instructions that fill the L1
//! instruction cache, as an ordinary program would do. Without these, the collector's code stays cached and costs a third less.

use super::constant_of;
use crate::arch::fill_instruction_cache;
use crate::launch_timing::timing::{make_system_calls, timed};
use spawnscope_data::event::{Calibration, Constant};

/// Calls that are timed together.
const CALLS: u32 = 100;
/// Number of repetitions: a millisecond in all.
const ROUNDS: usize = 9;

/// The duration of a system call without a recording, in nanoseconds.
pub struct Unrecorded(f64);

impl Unrecorded {
    /// Measures it.
    #[must_use]
    pub fn measure() -> Unrecorded {
        let mut rounds = nanos_of_a_call();
        rounds.sort_by(f64::total_cmp);
        Unrecorded(rounds[ROUNDS / 2])
    }

    /// How much longer a call takes now; `None` if there is no measurable difference.
    #[must_use]
    pub fn compare(&self) -> Option<Calibration> {
        constant_of(
            Constant::RecordedCall,
            nanos_of_a_call().map(|nanos| nanos - self.0).to_vec(),
        )
    }
}

/// Nanoseconds per call, for each round.
fn nanos_of_a_call() -> [f64; ROUNDS] {
    [(); ROUNDS].map(|()| {
        let time = timed(|| {
            for _ in 0..CALLS / 2 {
                make_system_calls(2);
                fill_instruction_cache();
            }
        });
        time.0 as f64 / f64::from(CALLS)
    })
}
