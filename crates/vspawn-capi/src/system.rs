//! `vspawn_system`: runs a program and waits for it, and treats the caller's signals as POSIX requires for system.

use std::ffi::{c_char, c_int};
use std::os::unix::process::ExitStatusExt;

use libc::{SIGCHLD, SIGINT, SIGQUIT, sigaction, sigset_t};

use crate::entry::entry_or;
use crate::error::Failure;
use crate::options::command_of;
use crate::state;
use crate::stream::as_c_does;

const INTERRUPTS: [c_int; 2] = [SIGINT, SIGQUIT];

/// The dispositions of SIGINT and SIGQUIT before the first of the active calls.
pub(crate) struct HeldSignals {
    calls: usize,
    before: [sigaction; 2],
}

/// One active call: the process ignores SIGINT and SIGQUIT, and this thread blocks SIGCHLD.
struct Held {
    mask: sigset_t,
    /// Those of SIGINT and SIGQUIT that were not ignored before.
    effective: Vec<c_int>,
}

impl Held {
    fn new() -> Held {
        // SAFETY: sets and actions of zeros are valid, and are initialised here.
        let (mut mask, mut child_signal): (sigset_t, sigset_t) = unsafe { std::mem::zeroed() };
        let before = state::with(|state| {
            let held = state.held.get_or_insert_with(ignore_interrupts);
            held.calls += 1;
            held.before
        });
        // SAFETY: locals.
        unsafe {
            libc::sigemptyset(&raw mut child_signal);
            libc::sigaddset(&raw mut child_signal, SIGCHLD);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const child_signal, &raw mut mask);
        }
        let pairs = INTERRUPTS.into_iter().zip(before);
        let effective = pairs.filter(|(_, action)| action.sa_sigaction != libc::SIG_IGN);
        Held {
            mask,
            effective: effective.map(|(signal, _)| signal).collect(),
        }
    }
}

impl HeldSignals {
    /// Makes only system calls, because it is also called in a process that was just forked.
    pub(crate) fn put_back(&self) {
        for (signal, before) in INTERRUPTS.into_iter().zip(&self.before) {
            // SAFETY: the action that was there before.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
    }
}

fn ignore_interrupts() -> HeldSignals {
    let before = INTERRUPTS.map(|signal| {
        // SAFETY: an action of zeros has an empty mask; both are locals.
        unsafe {
            let (mut ignore, mut before): (sigaction, sigaction) = std::mem::zeroed();
            ignore.sa_sigaction = libc::SIG_IGN;
            libc::sigaction(signal, &raw const ignore, &raw mut before);
            before
        }
    });
    HeldSignals { calls: 0, before }
}

impl Drop for Held {
    fn drop(&mut self) {
        state::with(|state| {
            let Some(held) = &mut state.held else { return };
            held.calls -= 1;
            if held.calls > 0 {
                return;
            }
            held.put_back();
            state.held = None;
        });
        // SAFETY: the mask that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.mask, std::ptr::null_mut()) };
    }
}

/// Runs a program and waits for its end: system without a shell. During the call, the process ignores SIGINT and SIGQUIT, and
/// SIGCHLD is blocked in the calling thread; the program starts with the previous settings.
///
/// argv: as for vspawn; borrowed for the call. Returns what waitpid stores, or -1 with errno, including if the program
/// cannot be executed, and ECHILD if the process ignores SIGCHLD. Unlike system, it is not a cancellation point.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vspawn_system(argv: *const *const c_char) -> c_int {
    entry_or(-1, || -> Result<c_int, Failure> {
        // SAFETY: strings as documented, or NULL.
        let mut command = unsafe { command_of(std::ptr::null(), argv) }?;
        // The mask as it is before it is changed here.
        as_c_does(&mut command);
        let held = Held::new();
        command.default_signals(&held.effective);
        Ok(command.status()?.into_raw())
    })
}
