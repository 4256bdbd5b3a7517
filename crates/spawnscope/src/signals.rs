//! Signals of spawnscope while a command runs. Those from the terminal have reached the command already, being sent
//! to the whole foreground group; those sent by a process are handed on, because the command must not miss a `kill` of
//! spawnscope. Sent to the whole group by a process, as `timeout` does, they reach the command twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

const CAUGHT: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Spawnscope's signals, blocked and readable.
pub struct Signals {
    caught: SignalFd,
    inherited_mask: SigSet,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which.
    pub signal: Signal,
    /// Whether the kernel sent it (a key at the terminal), rather than a process.
    pub from_terminal: bool,
}

impl Signals {
    /// Blocks the signals and makes them readable.
    ///
    /// # Errors
    /// When the kernel refuses a signalfd.
    pub fn catch() -> io::Result<Signals> {
        let mask = CAUGHT.into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let mut inherited_mask = SigSet::empty();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), Some(&mut inherited_mask))?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let caught = SignalFd::with_flags(&mask, flags)?;
        Ok(Signals { caught, inherited_mask })
    }

    /// The mask that was in force before, which the command is to have.
    #[must_use]
    pub fn inherited_mask(&self) -> &SigSet {
        &self.inherited_mask
    }

    /// Readable when a signal has arrived.
    #[must_use]
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }

    /// The next signal that has arrived.
    #[must_use]
    pub fn next(&self) -> Option<Arrived> {
        let info = self.caught.read_signal().ok().flatten()?;
        let signal = Signal::try_from(i32::try_from(info.ssi_signo).ok()?).ok()?;
        Some(Arrived {
            signal,
            from_terminal: info.ssi_code == libc::SI_KERNEL,
        })
    }
}

/// Whether we were started with the signal ignored, as `nohup` and a shell's background jobs are: then it stays so.
fn is_ignored(signal: Signal) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the disposition and changes nothing; all zeroes is a valid sigaction.
    unsafe {
        libc::sigaction(signal as i32, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
