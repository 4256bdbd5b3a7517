//! What recording itself costs each system call: the recorder times calls of its own before the collector is attached, and
//! again when it is. The kernel's path to the tracepoints makes up most of it, and that is the same for every process.

use super::constant_of;
use crate::collect::now;
use crate::event::{Calibration, Constant};

/// Calls that are timed together.
const CALLS: u32 = 200;
/// Times that this is done: less than a millisecond in all.
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
        for _ in 0..CALLS {
            // SAFETY: a plain system call without arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        now().since(began).0 as f64 / f64::from(CALLS)
    })
}
