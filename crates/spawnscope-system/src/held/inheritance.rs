//! Gives the command the signal and descriptor state it would have without spawnscope: Rust's
//! runtime ignores SIGPIPE and opens closed standard streams before `main`, and the recorder blocks
//! signals and needs the default disposition of SIGCHLD. Only an initializer that runs before
//! `main` can see the original state.

use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};

use crate::signals::is_ignored;

const SIGPIPE_IGNORED: u8 = 1;
/// Bit of `INITIAL_STATE`: standard input was closed. The next two bits are for standard output and
/// standard error.
const STDIN_CLOSED: u8 = 2;
const SIGCHLD_IGNORED: u8 = 16;
static INITIAL_STATE: AtomicU8 = AtomicU8::new(0);

/// Sets the dispositions that spawnscope itself needs. While SIGCHLD is ignored, the kernel reaps
/// children and discards their wait statuses. Call this before any child is created.
pub fn use_own_dispositions() {
    set_disposition(Signal::SIGCHLD, false);
}

/// Restores the dispositions that spawnscope was started with. Call this in a process that is about
/// to execute a program of the user. Makes only system calls.
pub fn restore_dispositions() {
    let initial = INITIAL_STATE.load(Ordering::Relaxed);
    set_disposition(Signal::SIGPIPE, initial & SIGPIPE_IGNORED != 0);
    set_disposition(Signal::SIGCHLD, initial & SIGCHLD_IGNORED != 0);
}

fn set_disposition(signal: Signal, is_ignored: bool) {
    let handler = if is_ignored { SigHandler::SigIgn } else { SigHandler::SigDfl };
    let action = SigAction::new(handler, SaFlags::empty(), SigSet::empty());
    // SAFETY: sets no handler. This can fail only for a signal that does not exist.
    let _ = unsafe { sigaction(signal, &action) };
}

/// Restores the original state, and sets the signal mask to `mask`. Runs in the child, and makes
/// only system calls.
pub(super) fn restore(mask: &SigSet) {
    let initial = INITIAL_STATE.load(Ordering::Relaxed);
    restore_dispositions();
    for fd in (0..3).filter(|fd| initial & (STDIN_CLOSED << fd) != 0) {
        // SAFETY: the runtime opened /dev/null with this number; the child does not use it.
        unsafe { libc::close(fd) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(mask), None);
}

extern "C" fn record_initial_state() {
    let mut initial = 0;
    for (signal, bit) in [(libc::SIGPIPE, SIGPIPE_IGNORED), (libc::SIGCHLD, SIGCHLD_IGNORED)] {
        initial |= if is_ignored(signal) { bit } else { 0 };
    }
    for fd in 0..3 {
        // SAFETY: reads the flags of a descriptor, which may be closed.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1 {
            initial |= STDIN_CLOSED << fd;
        }
    }
    INITIAL_STATE.store(initial, Ordering::Relaxed);
}

#[used]
// SAFETY: the section holds functions of this type, called once before `main` on the only thread.
#[unsafe(link_section = ".init_array")]
static INITIALIZER: extern "C" fn() = record_initial_state;
