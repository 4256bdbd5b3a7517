//! Spawnscope's own signals while a command runs, and SIGCHLD. None of them ends spawnscope by its default action: the command would lose its
//! recorder. Signals from the terminal go to the whole foreground group, so the command already has them. Signals sent by a process
//! are forwarded, because the command must not miss a `kill` of spawnscope. If a process signals the whole group, as `timeout`
//! does, the command receives the signal twice.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, SigmaskHow, Signal, sigaction, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// Signals that are not caught (signal(7)): those that by default stop, continue or are ignored; those that a fault in spawnscope
/// itself raises, where blocking would turn the fault into a loop or a kill; and those that cannot be caught.
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

/// Signals that the kernel sends for a key, or when the terminal closes.
const OF_TERMINAL: [libc::c_int; 3] = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP];

/// Spawnscope's signals, blocked and readable.
pub struct Signals {
    caught: SignalFd,
    inherited_mask: SigSet,
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// The signal number. Real-time signals have no names.
    pub signal: libc::c_int,
    /// Whether the kernel sent it (a key at the terminal, a resource limit of spawnscope's own) rather than a process.
    pub from_kernel: bool,
}

impl Arrived {
    /// Whether the signal requests that spawnscope end. False if the kernel reports one of spawnscope's own limits (SIGXFSZ,
    /// SIGXCPU, a timer).
    #[must_use]
    pub fn should_end(self) -> bool {
        !self.from_kernel || OF_TERMINAL.contains(&self.signal)
    }

    /// Forwards the signal to `pid`, unless the kernel has sent it there already.
    pub fn hand_on(self, pid: i32) {
        if !self.from_kernel {
            // SAFETY: a plain system call. If the process has just ended, the call fails without effect.
            unsafe { libc::kill(pid, self.signal) };
        }
    }
}

impl Signals {
    /// Blocks the signals and makes them readable.
    ///
    /// # Errors
    /// If the kernel refuses a signalfd.
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

/// Ends and stops of children and tracees, readable from a descriptor (SIGCHLD).
pub struct ChildChanges(SignalFd);

impl ChildChanges {
    /// Blocks SIGCHLD, and makes it readable. Must be called before threads are started: a thread that does not block it could receive
    /// and discard it. Also resets its disposition, because ignoring it, as our parent may have done, would discard wait statuses. A
    /// command that was already forked keeps the inherited setting.
    ///
    /// # Errors
    /// If the kernel refuses a signalfd.
    pub fn catch() -> io::Result<ChildChanges> {
        let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: sets the default disposition, not a handler.
        unsafe { sigaction(Signal::SIGCHLD, &default) }?;
        let mask = SigSet::from(Signal::SIGCHLD);
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&mask), None)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(ChildChanges(SignalFd::with_flags(&mask, flags)?))
    }

    /// Readable when there are changes.
    #[must_use]
    pub fn readiness(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes it unreadable until the next change. One SIGCHLD may cover several changes, so the caller must read all of them afterwards.
    pub fn clear(&self) {
        while let Ok(Some(_)) = self.0.read_signal() {}
    }
}

/// Interrupts the blocking system calls of a thread, which then fail with EINTR, by a signal that is ignored by default (SIGURG).
#[derive(Debug)]
pub struct ThreadWaker {
    thread: libc::pid_t,
}

impl ThreadWaker {
    /// A waker for the calling thread.
    ///
    /// # Errors
    /// If the kernel refuses the signal's handler.
    pub fn of_this_thread() -> io::Result<ThreadWaker> {
        extern "C" fn ignore(_: libc::c_int) {}
        // Without SA_RESTART: the call must not continue.
        let action = SigAction::new(SigHandler::Handler(ignore), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler does nothing.
        unsafe { sigaction(Signal::SIGURG, &action) }?;
        SigSet::from(Signal::SIGURG).thread_unblock()?;
        // SAFETY: a plain system call.
        let thread = unsafe { libc::gettid() };
        Ok(ThreadWaker { thread })
    }

    /// Interrupts the call that the thread is in. Without effect if it is between two calls, so the caller must repeat it until the thread
    /// has reacted.
    pub fn wake(&self) {
        // SAFETY: a plain system call. If the thread has ended, it fails, or reaches another thread of this process, which ignores it.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), self.thread, libc::SIGURG) };
    }
}

/// Whether spawnscope was started with the signal ignored, as by `nohup` or as a shell's background job. It then stays ignored.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads the disposition and changes nothing; all zeroes is a valid sigaction.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
