//! Changes that a spawn makes to the calling thread or process, each undone when its guard is dropped.

use crate::error::{Error, Stage};
use crate::sys::{SIGNAL_SET_BYTES, SignalSet, signal_bit, syscall};

/// Blocks all signals of this thread, including those that libc reserves (cancellation, set*id).
#[derive(Debug)]
pub(crate) struct SignalsBlocked {
    before: SignalSet,
}

impl SignalsBlocked {
    pub(crate) fn new() -> Result<SignalsBlocked, Error> {
        let (all, mut before): (SignalSet, SignalSet) = (!0, 0);
        // SAFETY: both sets are locals. The raw call is needed: libc's leaves its own signals unblocked.
        unsafe {
            syscall!(
                SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const all,
                &raw mut before,
                SIGNAL_SET_BYTES
            )
        }
        .map_err(|errno| Error::new(Stage::Signals, errno, "block the caller's signals"))?;
        Ok(SignalsBlocked { before })
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        // SAFETY: the set is ours. The call cannot fail with a valid set.
        unsafe {
            let _ = syscall!(
                SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const self.before,
                0,
                SIGNAL_SET_BYTES
            );
        }
    }
}

// Both may unwind: a pending cancellation acts as soon as it is enabled.
unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}
/// The value is the same in glibc and musl.
const PTHREAD_CANCEL_DISABLE: libc::c_int = 1;

/// Disables cancellation of this thread: a cancellation within a spawn would leave pipes, the count
/// of `dumpable.rs`, or a child without a handle behind.
#[derive(Debug)]
pub(crate) struct CancellationHeld {
    before: libc::c_int,
}

impl CancellationHeld {
    pub(crate) fn new() -> CancellationHeld {
        let mut before = 0;
        // SAFETY: stores the state in a local.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        CancellationHeld { before }
    }
}

impl Drop for CancellationHeld {
    fn drop(&mut self) {
        let mut ours = 0;
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(self.before, &raw mut ours) };
    }
}

/// Blocks SIGPIPE in this thread, so that a write without a reader only returns EPIPE.
#[derive(Debug)]
pub(crate) struct PipeSignalHeld {
    before: SignalSet,
    was_pending: bool,
}

impl PipeSignalHeld {
    pub(crate) fn new() -> PipeSignalHeld {
        let (set, mut before, mut pending): (SignalSet, SignalSet, SignalSet) = (PIPE, 0, 0);
        // SAFETY: the sets are locals.
        unsafe {
            let _ = syscall!(SYS_rt_sigpending, &raw mut pending, SIGNAL_SET_BYTES);
            let (how, set) = (libc::SIG_BLOCK, &raw const set);
            let _ = syscall!(SYS_rt_sigprocmask, how, set, &raw mut before, SIGNAL_SET_BYTES);
        }
        PipeSignalHeld {
            before,
            was_pending: pending & PIPE != 0,
        }
    }

    /// Removes the signal of a failed write, but not one that was pending before.
    pub(crate) fn take_back(&self) {
        let (set, now) = (PIPE, [0u64; 2]);
        if !self.was_pending {
            // SAFETY: a set, no siginfo, and a timespec of 0.
            unsafe {
                let _ = syscall!(SYS_rt_sigtimedwait, &raw const set, 0, now.as_ptr(), SIGNAL_SET_BYTES);
            }
        }
    }
}

impl Drop for PipeSignalHeld {
    fn drop(&mut self) {
        // SAFETY: the set is ours.
        unsafe {
            let before = &raw const self.before;
            let _ = syscall!(SYS_rt_sigprocmask, libc::SIG_SETMASK, before, 0, SIGNAL_SET_BYTES);
        }
    }
}

const PIPE: SignalSet = signal_bit(libc::SIGPIPE);
