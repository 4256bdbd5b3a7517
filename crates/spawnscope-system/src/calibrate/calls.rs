//! Measures how much recording adds to each system call. The recorder times its own calls before
//! the collector is attached, and again when the collector is attached and follows the recorder
//! too. After every second call, it executes instructions that fill the L1 instruction cache, as an
//! ordinary program does. Without them, the collector's code would stay cached and cost a third
//! less.

use super::summarize;
use crate::arch::fill_instruction_cache;
use crate::launch_timing::timing::{make_system_calls, timed};
use spawnscope_data::event::{Calibration, Constant};

/// Number of calls in a round, which are timed together.
const CALLS: u32 = 100;
/// Number of rounds. Together they take a millisecond.
const ROUNDS: usize = 9;

/// The duration of a system call without a recording, in nanoseconds.
pub struct UnrecordedCall(f64);

impl UnrecordedCall {
    pub fn measure() -> UnrecordedCall {
        let mut rounds = nanos_per_call();
        rounds.sort_by(f64::total_cmp);
        UnrecordedCall(rounds[ROUNDS / 2])
    }

    /// Returns how much longer a system call takes now; `None` without a measurable difference.
    pub fn compare(&self) -> Option<Calibration> {
        summarize(Constant::RecordedCall, nanos_per_call().map(|nanos| nanos - self.0).to_vec())
    }
}

fn nanos_per_call() -> [f64; ROUNDS] {
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
