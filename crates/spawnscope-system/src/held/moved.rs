//! What an exec keeps but a fork does not hand on: interval timers, the child-subreaper attribute,
//! and pending signals. The command would have them if it had been executed in the recorder's
//! place, so they move from the recorder to the command.

use std::mem::MaybeUninit;

use nix::sys::prctl;
use nix::sys::signal::SigSet;

/// The interval timers of a process (setitimer(2)). Their types differ between C libraries.
const TIMERS: [i32; 3] = [0, 1, 2];

#[derive(Debug)]
pub(super) struct MovedAttributes {
    timers: [libc::itimerval; TIMERS.len()],
    is_subreaper: bool,
    /// The signals that were blocked and pending. A real-time signal may be in it several times.
    pending: Vec<libc::c_int>,
}

impl MovedAttributes {
    /// Takes the attributes from this process: disarms the timers, and consumes the pending signals
    /// that `mask` blocks.
    pub(super) fn take(mask: &SigSet) -> MovedAttributes {
        MovedAttributes { timers: TIMERS.map(disarm), is_subreaper: take_subreaper(), pending: take_pending(mask) }
    }

    /// Gives the attributes to this process, which must block the signals. A timer continues with
    /// the time that was left when it was taken. Makes only system calls.
    pub(super) fn give(&self) {
        for (timer, value) in TIMERS.iter().zip(&self.timers) {
            // SAFETY: plain system calls, which read `value`.
            unsafe { libc::setitimer(*timer as _, value, std::ptr::null_mut()) };
        }
        for signal in &self.pending {
            // SAFETY: plain system calls. The signal stays pending, because it is blocked.
            unsafe { libc::kill(libc::getpid(), *signal) };
        }
        if self.is_subreaper {
            let _ = prctl::set_child_subreaper(true);
        }
    }
}

fn disarm(timer: i32) -> libc::itimerval {
    let mut before = MaybeUninit::zeroed();
    // SAFETY: all zeroes is a valid timer that is disarmed, and the call writes the earlier one to
    // `before`, for which zeroes are valid, too.
    unsafe {
        let disarmed = MaybeUninit::<libc::itimerval>::zeroed().assume_init();
        libc::setitimer(timer as _, &raw const disarmed, before.as_mut_ptr());
        before.assume_init()
    }
}

fn take_subreaper() -> bool {
    let is_subreaper = prctl::get_child_subreaper().unwrap_or(false);
    if is_subreaper {
        let _ = prctl::set_child_subreaper(false);
    }
    is_subreaper
}

fn take_pending(mask: &SigSet) -> Vec<libc::c_int> {
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let mut pending = Vec::new();
    // SAFETY: `mask` is a valid set, which the call reads. It returns a negative number if no
    // signal is pending.
    while let signal @ 1.. = unsafe { libc::sigtimedwait(mask.as_ref(), std::ptr::null_mut(), &raw const at_once) } {
        pending.push(signal);
    }
    pending
}
