//! Child processes for work that can hang. Their parent waits for them with a time limit, and they
//! inherit none of its descriptors.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};

use crate::process::{is_readable_within, pidfd};
use spawnscope_data::event::Pid;

/// How long to wait for a killed process. If it waits for a file system, it may not react even to
/// SIGKILL.
pub const KILL_TIMEOUT: Duration = Duration::from_millis(60);

/// Only descriptors below this number are closed one by one, because RLIMIT_NOFILE can be a
/// billion.
const MAX_CLOSED_DESCRIPTORS: libc::rlim_t = 1 << 14;

/// A child that no other code reaps. Dropping this value kills the child and waits for it, but not
/// for longer than `KILL_TIMEOUT`.
#[derive(Debug)]
pub struct IsolatedChild {
    pub pid: c_int,
    pidfd: OwnedFd,
}

impl IsolatedChild {
    /// Forks a process without the parent's descriptors, so that a reader of the parent's output
    /// does not have to wait for the child. `input` becomes the child's standard input. `work` may
    /// do anything if the parent is single-threaded. Otherwise it may only make system calls.
    pub fn fork(input: Option<BorrowedFd<'_>>, work: impl FnOnce()) -> io::Result<IsolatedChild> {
        // SAFETY: the child never returns. The documentation above limits what `work` may do.
        match unsafe { fork() }? {
            ForkResult::Child => {
                isolate(input.map(|input| input.as_raw_fd()));
                work();
                // SAFETY: exits at once; no code of the parent runs in the child.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                let pid = child.as_raw();
                let pidfd = pidfd(Pid(pid)).inspect_err(|_| kill_and_reap(pid))?;
                Ok(IsolatedChild { pid, pidfd })
            }
        }
    }

    #[must_use]
    pub fn has_ended_by(&self, until: Instant) -> bool {
        is_readable_within(&self.pidfd, until.saturating_duration_since(Instant::now()))
    }

    pub fn leave_running(self) {
        std::mem::forget(self);
    }
}

impl Drop for IsolatedChild {
    fn drop(&mut self) {
        // SAFETY: a plain system call; the child was not reaped, so no other process has its pid.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        let _ = self.has_ended_by(Instant::now() + KILL_TIMEOUT);
        // SAFETY: a plain system call on our own child.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Kills and reaps a child that has just started and therefore cannot hang.
fn kill_and_reap(pid: c_int) {
    // SAFETY: plain system calls; the child was not reaped, so no other process has its pid.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// Closes the parent's descriptors and redirects the standard streams to /dev/null, except for
/// `input`. Unblocks all signals, and resets the disposition of SIGCHLD, because wait calls would
/// not return statuses if it were ignored.
fn isolate(input: Option<c_int>) {
    // SAFETY: plain system calls in a child process of ours.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const NO_SIGNALS, std::ptr::null_mut());
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        if let Some(input) = input {
            libc::dup2(input, 0);
        }
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) != 0 {
            close_one_by_one();
        }
    }
}

/// Closes all descriptors from 3 on. Used if the kernel lacks `close_range`, or if a seccomp filter
/// refuses it.
fn close_one_by_one() {
    // SAFETY: plain system calls in a child process of ours that uses none of its descriptors any
    // more; `limit` has room for a limit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for descriptor in 3..limit.rlim_cur.min(MAX_CLOSED_DESCRIPTORS) {
            libc::close(descriptor as c_int);
        }
    }
}

// SAFETY: a signal set is a set of bits, so all zeroes is the empty set.
static NO_SIGNALS: libc::sigset_t = unsafe { std::mem::zeroed() };
