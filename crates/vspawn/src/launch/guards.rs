//! Changes that a spawn makes to the calling thread or process, each undone when its guard is
//! dropped.

use crate::error::{Error, Stage};
use crate::sys::{SIGNAL_SET_BYTES, SignalSet, syscall};

/// Blocks all signals of this thread, including those that libc reserves (for cancellation and
/// set*id).
#[derive(Debug)]
pub(crate) struct SignalGuard {
    pub(super) previous_mask: SignalSet,
}

impl SignalGuard {
    pub(crate) fn new() -> Result<SignalGuard, Error> {
        let (all, mut previous_mask): (SignalSet, SignalSet) = (!0, 0);
        // SAFETY: both sets are locals. The raw call is needed: libc's leaves its own signals
        // unblocked.
        unsafe {
            syscall!(SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut previous_mask, SIGNAL_SET_BYTES)
        }
        .map_err(|errno| Error::new(Stage::Signals, errno, "block the caller's signals"))?;
        Ok(SignalGuard { previous_mask })
    }
}

impl Drop for SignalGuard {
    fn drop(&mut self) {
        // SAFETY: the set is ours. The call cannot fail with a valid set.
        unsafe {
            let _ = syscall!(SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const self.previous_mask, 0, SIGNAL_SET_BYTES);
        }
    }
}

// The function may unwind: when it enables cancellation, a pending cancellation acts at once.
unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: libc::c_int, previous: *mut libc::c_int) -> libc::c_int;
}
/// The value is the same in glibc and musl.
const PTHREAD_CANCEL_DISABLE: libc::c_int = 1;

/// Disables cancellation of this thread. A cancellation within a spawn would leave behind open
/// pipes, a wrong count in `dumpable.rs`, or a child without a handle.
#[derive(Debug)]
pub(crate) struct CancellationGuard {
    previous_state: libc::c_int,
}

impl CancellationGuard {
    pub(crate) fn new() -> CancellationGuard {
        let mut previous_state = 0;
        // SAFETY: stores the state in a local.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut previous_state) };
        CancellationGuard { previous_state }
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(self.previous_state, &raw mut disabled) };
    }
}
