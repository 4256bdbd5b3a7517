//! Signals that end a measurement with what there is, rather than the process with nothing.

use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

const CAUGHT: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];
/// The one that arrived; 0: none.
static ARRIVED: AtomicI32 = AtomicI32::new(0);

extern "C" fn arrived(signal: i32) {
    // The second one ends us at once.
    if ARRIVED.swap(signal, Ordering::Relaxed) != 0 {
        // SAFETY: leaves at once; the workers die with us, and the keeper removes the folder.
        unsafe { libc::_exit(i32::from(status_of(signal))) }
    }
}

/// From now on signals are noticed; those that were ignored when we were started, as under `nohup`, stay so.
///
/// # Errors
/// When the kernel refuses.
pub fn catch() -> Result<()> {
    let handler = SigAction::new(SigHandler::Handler(arrived), SaFlags::SA_RESTART, SigSet::empty());
    for signal in CAUGHT {
        // SAFETY: the handler sets a number, or leaves.
        let inherited = unsafe { sigaction(signal, &handler) }.with_context(|| format!("failed to catch {signal}"))?;
        if matches!(inherited.handler(), SigHandler::SigIgn) {
            // SAFETY: as it was.
            unsafe { sigaction(signal, &inherited) }.with_context(|| format!("failed to ignore {signal}"))?;
        }
    }
    Ok(())
}

/// The exit status that the signal which arrived asks for.
pub fn status() -> Option<u8> {
    match ARRIVED.load(Ordering::Relaxed) {
        0 => None,
        signal => Some(status_of(signal)),
    }
}

/// As a shell tells it.
fn status_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
