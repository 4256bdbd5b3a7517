//! What recording itself costs each system call: the recorder times calls of its own before the collector is attached, and
//! again when it is and follows the recorder too. Between every other two calls, instructions run that fill the nearest cache, as
//! those of an ordinary program do: one that does nothing but call finds the collector's code there, and pays a third less.

use super::constant_of;
use crate::arch::fill_instruction_cache;
use crate::collect::now;
use crate::event::{Calibration, Constant};

/// Calls that are timed together.
const CALLS: u32 = 100;
/// Times that this is done: a millisecond in all.
const ROUNDS: usize = 9;

/// What a system call takes while there is no recording, in nanoseconds.
pub struct Unrecorded(f64);

impl Unrecorded {
    /// Times it.
    #[must_use]
    pub fn measure() -> Unrecorded {
        let mut rounds = nanos_of_a_call();
        rounds.sort_by(f64::total_cmp);
        Unrecorded(rounds[ROUNDS / 2])
    }

    /// By how much longer it takes now; `None` when no difference is to be seen.
    #[must_use]
    pub fn compare(&self) -> Option<Calibration> {
        constant_of(
            Constant::RecordedCall,
            nanos_of_a_call().map(|nanos| nanos - self.0).to_vec(),
        )
    }
}

/// One call, by rounds.
fn nanos_of_a_call() -> [f64; ROUNDS] {
    [(); ROUNDS].map(|()| {
        let began = now();
        for _ in 0..CALLS / 2 {
            // SAFETY: a plain system call without arguments.
            unsafe {
                libc::syscall(libc::SYS_getppid);
                libc::syscall(libc::SYS_getppid);
            }
            fill_instruction_cache();
        }
        now().since(began).0 as f64 / f64::from(CALLS)
    })
}
