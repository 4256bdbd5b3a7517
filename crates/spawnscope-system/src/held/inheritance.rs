//! Gives the command the signal and descriptor state it would have without spawnscope: Rust's runtime ignores SIGPIPE and opens
//! closed standard streams before `main`, and the recorder blocks signals. Only an initializer that runs before `main` can see the
//! original state.

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};

/// Bit of `INITIAL_STATE`: SIGPIPE was ignored.
const SIGPIPE_IGNORED: u8 = 1;
/// Bit of `INITIAL_STATE`: standard input was closed. The next two bits are for standard output and standard error.
const STDIN_CLOSED: u8 = 2;
/// The state that `record_initial_state` has found before `main`.
static INITIAL_STATE: AtomicU8 = AtomicU8::new(0);

/// Restores the original state, and sets the signal mask to `mask`. Runs in the child, and makes only system calls.
pub(super) fn restore(mask: &SigSet) {
    let initial = INITIAL_STATE.load(Ordering::Relaxed);
    if initial & SIGPIPE_IGNORED == 0 {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: sets the default disposition, not a handler.
        let _ = unsafe { sigaction(Signal::SIGPIPE, &default) };
    }
    for fd in (0..3).filter(|fd| initial & (STDIN_CLOSED << fd) != 0) {
        // SAFETY: the runtime opened /dev/null with this number; the child does not use it.
        unsafe { libc::close(fd) };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(mask), None);
}

extern "C" fn record_initial_state() {
    let mut initial = 0;
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads the disposition and changes nothing; all zeroes is a valid sigaction.
    let is_ignored = unsafe {
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    };
    if is_ignored {
        initial |= SIGPIPE_IGNORED;
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
