//! `vspawn_system` runs a program and waits for it. It treats the caller's signals as POSIX
//! requires for system.

use std::ffi::{c_char, c_int};
use std::os::unix::process::ExitStatusExt;

use libc::{SIGCHLD, sigset_t};

use crate::entry::entry_or;
use crate::failure::Failure;
use crate::options::command_from_argv;
use crate::pointers::signals;
use crate::state::{INTERRUPTS, SavedDispositions, with_lock};

/// One active call: the process ignores SIGINT and SIGQUIT, and this thread blocks SIGCHLD.
struct InterruptGuard {
    /// The thread's mask before the call.
    mask: sigset_t,
    /// Those of SIGINT and SIGQUIT that were not ignored before the call.
    previously_effective: Vec<c_int>,
}

impl InterruptGuard {
    fn new() -> InterruptGuard {
        // SAFETY: sets and actions of zeros are valid, and are initialised here.
        let (mut mask, mut child_signal): (sigset_t, sigset_t) = unsafe { std::mem::zeroed() };
        let before = with_lock(|state| {
            let dispositions = state.dispositions.get_or_insert_with(SavedDispositions::ignore_interrupts);
            dispositions.calls += 1;
            dispositions.before
        });
        // SAFETY: locals.
        unsafe {
            libc::sigemptyset(&raw mut child_signal);
            libc::sigaddset(&raw mut child_signal, SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const child_signal, &raw mut mask);
        }
        let pairs = INTERRUPTS.into_iter().zip(before);
        let previously_effective = pairs.filter(|(_, action)| action.sa_sigaction != libc::SIG_IGN);
        InterruptGuard { mask, previously_effective: previously_effective.map(|(signal, _)| signal).collect() }
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        with_lock(|state| {
            let Some(dispositions) = &mut state.dispositions else { return };
            dispositions.calls -= 1;
            if dispositions.calls > 0 {
                return;
            }
            dispositions.restore();
            state.dispositions = None;
        });
        // SAFETY: the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut()) };
    }
}

/// Runs a program and waits until it has ended: system without a shell. During the call, the
/// process ignores SIGINT and SIGQUIT, and SIGCHLD is blocked in the calling thread; the program
/// starts with the previous settings.
///
/// argv: as for vspawn; borrowed for the call. Returns what waitpid stores; -1 with errno on
/// failure, for example if the program cannot be executed, or ECHILD if the process ignores
/// SIGCHLD. Unlike system, it is not a cancellation point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_system(argv: *const *const c_char) -> c_int {
    entry_or(-1, || -> Result<c_int, Failure> {
        // SAFETY: strings as documented, or NULL.
        let mut command = unsafe { command_from_argv(std::ptr::null(), argv) }?;
        let guard = InterruptGuard::new();
        // SAFETY: the mask that the guard has stored.
        let blocked = unsafe { signals(&raw const guard.mask) }?;
        command.inherit_sigpipe().blocked_signals(&blocked).default_signals(&guard.previously_effective);
        Ok(command.with_pidfd(false).status()?.into_raw())
    })
}
