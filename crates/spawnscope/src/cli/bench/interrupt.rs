//! Handles signals so that a measurement ends with the results so far.

use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

const CAUGHT_SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
static ARRIVED_SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn handle(signal: i32) {
    // On the second signal, exit at once.
    if ARRIVED_SIGNAL.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: `_exit` is async-signal-safe. The workers die with this process; the temporary
        // directory stays.
        unsafe { libc::_exit(i32::from(status_of(signal))) }
    }
}

/// Installs the handlers. Signals that were ignored when we were started, as under `nohup`, stay
/// ignored.
pub fn catch() -> Result<()> {
    let handler = SigAction::new(SigHandler::Handler(handle), SaFlags::SA_RESTART, SigSet::empty());
    for signal in CAUGHT_SIGNALS {
        // SAFETY: the handler only stores a number or exits.
        let inherited = unsafe { sigaction(signal, &handler) }.with_context(|| format!("failed to catch {signal}"))?;
        if matches!(inherited.handler(), SigHandler::SigIgn) {
            // SAFETY: restores the inherited disposition.
            unsafe { sigaction(signal, &inherited) }.with_context(|| format!("failed to ignore {signal}"))?;
        }
    }
    Ok(())
}

/// Returns the exit status for the signal that arrived, if any.
pub fn status() -> Option<u8> {
    match ARRIVED_SIGNAL.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(status_of(signal)),
    }
}

/// Returns the status that a shell reports for a program killed by `signal`.
fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
