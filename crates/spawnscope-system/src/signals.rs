//! The signals that spawnscope receives while a command runs, and SIGCHLD. Spawnscope blocks and
//! reads them, because their default action would end spawnscope, and the command would lose its
//! recorder. The terminal sends signals to the whole foreground process group, so the command
//! receives them too. Signals that a process sends to spawnscope, as `kill` does, are forwarded to
//! the command. If a process signals the whole group, as `timeout` does, the command receives the
//! signal twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that are not caught (signal(7)): those whose default action is to stop, to continue or
/// to do nothing; those that a fault in spawnscope itself raises, because blocking them would turn
/// the fault into a loop or a kill; and those that cannot be caught.
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

/// Signals that the kernel sends for a key at the terminal, or when the terminal closes.
const TERMINAL_SIGNALS: [libc::c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];

/// Spawnscope's signals, blocked and readable.
pub struct Signals {
    caught: SignalFd,
    inherited_mask: SigSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedSignal {
    /// The signal number. Real-time signals have no names.
    pub signal: libc::c_int,
    /// Whether the kernel, not a process, sent the signal: because of a key at the terminal or a
    /// resource limit of spawnscope.
    pub from_kernel: bool,
}

impl ArrivedSignal {
    /// Whether the signal asks spawnscope to end. False if the kernel reports that spawnscope has
    /// reached a limit (SIGXFSZ, SIGXCPU) or that a timer of spawnscope has expired.
    pub fn should_end(self) -> bool {
        !self.from_kernel || TERMINAL_SIGNALS.contains(&self.signal)
    }

    /// Forwards the signal to `pid`, unless the kernel sent it: the kernel sends signals of the
    /// terminal to `pid` as well.
    pub fn forward_to(self, pid: i32) {
        if !self.from_kernel {
            // SAFETY: a plain system call. If the process has just ended, the call fails without
            // effect.
            unsafe { libc::kill(pid, self.signal) };
        }
    }
}

impl Signals {
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

    /// The signal mask before `catch`, which the command must get.
    pub fn inherited_mask(&self) -> &SigSet {
        &self.inherited_mask
    }

    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.caught.as_fd()
    }

    #[must_use]
    pub fn next(&self) -> Option<ArrivedSignal> {
        let info = self.caught.read_signal().ok().flatten()?;
        Some(ArrivedSignal {
            signal: i32::try_from(info.ssi_signo).ok()?,
            from_kernel: info.ssi_code == libc::SI_KERNEL || info.ssi_code == libc::SI_TIMER,
        })
    }
}

/// Reports by a readable descriptor that children or tracees have ended or stopped (SIGCHLD).
pub struct ChildChanges(SignalFd);

impl ChildChanges {
    /// Blocks SIGCHLD, and makes it readable. Must be called before threads are started, because a
    /// thread that does not block the signal could receive and discard it.
    pub fn catch() -> io::Result<ChildChanges> {
        let mask = SigSet::from(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(ChildChanges(SignalFd::with_flags(&mask, flags)?))
    }

    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes the descriptor unreadable until the next change. One SIGCHLD may stand for several
    /// changes, so the caller must handle all of them afterwards.
    pub fn clear(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

/// Interrupts the blocking system calls of a thread, which then fail with EINTR. Uses SIGURG, which
/// is ignored by default.
#[derive(Debug)]
pub struct ThreadWaker {
    thread: libc::pid_t,
}

impl ThreadWaker {
    pub fn of_this_thread() -> io::Result<ThreadWaker> {
        extern "C" fn ignore(_: libc::c_int) {}
        // SA_RESTART is not set, because the interrupted call must not be restarted.
        let action = SigAction::new(SigHandler::Handler(ignore), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGURG, &action) }?;
        SigSet::from(Signal::SIGURG).thread_unblock()?;
        // SAFETY: a plain system call.
        let thread = unsafe { libc::gettid() };
        Ok(ThreadWaker { thread })
    }

    /// Interrupts the system call that the thread is in. Has no effect if the thread is between two
    /// calls, so the caller must repeat this until the thread has reacted.
    pub fn wake(&self) {
        // SAFETY: a plain system call. If the thread has ended, the call fails, or signals another
        // thread of this process, where it has no effect.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.thread, libc::SIGURG) };
    }
}

/// Whether the signal is ignored, as it may be from the start under `nohup` or in a shell's
/// background job.
pub(crate) fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads the disposition and changes nothing; all zeroes is a valid sigaction.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
