//! Signals of spawnscope while a command runs. None of them ends spawnscope by its default action: the command would lose its
//! recorder. Those from the terminal have reached the command already, being sent to the whole foreground group; those
//! sent by a process are handed on, because the command must not miss a `kill` of spawnscope. Sent to the whole
//! group by a process, as `timeout` does, they reach the command twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// signal(7): not caught, since they stop, continue, or are ignored by default; or since a fault in spawnscope itself raises
/// them, which blocking would turn into a loop or a kill; or since nobody can catch them.
const NOT_CAUGHT: [libc::c_int; 17] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGPIPE,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
    libc::SIGSYS,
    libc::SIGABRT,
];

/// What the kernel sends for a key or the end of the terminal.
const OF_TERMINAL: [libc::c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];

/// Spawnscope's signals, blocked and readable.
pub struct Signals {
    caught: SignalFd,
    inherited_mask: SigSet,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which; a number, since real-time signals have no names.
    pub signal: libc::c_int,
    /// Whether the kernel sent it (a key at the terminal, a limit of ours), rather than a process.
    pub from_kernel: bool,
}

impl Arrived {
    /// Whether somebody wants spawnscope to end: not where the kernel tells of a limit of spawnscope's own (SIGXFSZ, SIGXCPU, a timer).
    #[must_use]
    pub fn is_to_end(self) -> bool {
        !self.from_kernel || OF_TERMINAL.contains(&self.signal)
    }

    /// Sends it to `pid`, unless the kernel did that already.
    pub fn hand_on(self, pid: i32) {
        if !self.from_kernel {
            // SAFETY: a plain system call. The process may have ended just now; then there is nobody to tell.
            unsafe { libc::kill(pid, self.signal) };
        }
    }
}

impl Signals {
    /// Blocks the signals and makes them readable.
    ///
    /// # Errors
    /// When the kernel refuses a signalfd.
    pub fn catch() -> io::Result<Signals> {
        let mut mask = SigSet::empty();
        let mut raw = *mask.as_ref();
        for signal in (1..=libc::SIGRTMAX()).filter(|signal| !NOT_CAUGHT.contains(signal) && !is_ignored(*signal)) {
            // SAFETY: `raw` is a valid set. libc refuses the numbers that it keeps for itself.
            unsafe { libc::sigaddset(&raw mut raw, signal) };
        }
        // SAFETY: `raw` was a valid set, and `sigaddset` leaves it one.
        mask = unsafe { SigSet::from_sigset_t_unchecked(raw) };
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
        Some(Arrived {
            signal: i32::try_from(info.ssi_signo).ok()?,
            from_kernel: info.ssi_code == libc::SI_KERNEL || info.ssi_code == libc::SI_TIMER,
        })
    }
}

/// Whether we were started with the signal ignored, as `nohup` and a shell's background jobs are: then it stays so.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: asks for the disposition and changes nothing; all zeroes is a valid sigaction.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
