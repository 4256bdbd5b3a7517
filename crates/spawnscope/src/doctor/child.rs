//! Processes forked from the doctor, which do what can hang: never waited for without a limit, and without its descriptors.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::unistd::{ForkResult, fork};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::collect::pidfd;
use crate::event::Pid;

/// How long one that was killed is waited for. Who waits for a file system may heed not even that, and is left behind.
pub(super) const GRACE: Duration = Duration::from_millis(60);

/// Descriptors that are closed one by one: a limit can be a thousand million.
const MOST_CLOSED: libc::rlim_t = 1 << 14;

/// A child of ours that nobody else reaps; killed when it is dropped, and waited for unless it hangs.
pub(super) struct Child {
    pid: c_int,
    ended: OwnedFd,
}

impl Child {
    /// A process with no descriptor of the doctor's, so that nobody who reads from the doctor waits for it too; its standard input may
    /// be given. `work` may do anything while the doctor has one thread, as it has but in tests; it is best if it only makes system calls.
    pub(super) fn fork(input: Option<BorrowedFd<'_>>, work: impl FnOnce()) -> io::Result<Child> {
        // SAFETY: the child never returns. What it may do is said of `work`.
        match unsafe { fork() }? {
            ForkResult::Child => {
                become_small(input.map(|input| input.as_raw_fd()));
                work();
                // SAFETY: leaves at once; nothing of the doctor's runs here.
                unsafe { libc::_exit(0) }
            }
            ForkResult::Parent { child } => {
                let pid = child.as_raw();
                let ended = pidfd(Pid(pid)).inspect_err(|_| end(pid))?;
                Ok(Child { pid, ended })
            }
        }
    }

    pub(super) fn pid(&self) -> c_int {
        self.pid
    }

    /// Waits for its end, but not for longer.
    pub(super) fn has_ended_by(&self, until: Instant) -> bool {
        is_readable_within(&self.ended, until.saturating_duration_since(Instant::now()))
    }

    /// Lets it go on by itself.
    pub(super) fn leave(self) {
        std::mem::forget(self);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: a plain system call; the pid is that of a child that was not reaped, so it is nobody else's.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        self.has_ended_by(Instant::now() + GRACE);
        // SAFETY: likewise.
        unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

/// Kills and reaps a child that has only begun, so that it does not hang.
fn end(pid: c_int) {
    // SAFETY: plain system calls; the pid is that of a child that was not reaped, so it is nobody else's.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        libc::waitpid(pid, std::ptr::null_mut(), 0);
    }
}

/// No descriptor of the doctor's, nobody to write to, wait calls that see children, and no signal blocked.
fn become_small(input: Option<c_int>) {
    // SAFETY: plain system calls in a process of our own.
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

/// Where the kernel, or a filter of system calls, knows no `close_range`.
fn close_one_by_one() {
    // SAFETY: plain system calls in a process of our own, none of whose descriptors is used any more; `limit` has room for a limit.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for descriptor in 3..limit.rlim_cur.min(MOST_CLOSED) {
            libc::close(descriptor as c_int);
        }
    }
}

// SAFETY: a set of bits; none is set.
static NO_SIGNALS: libc::sigset_t = unsafe { std::mem::zeroed() };

pub(super) fn die_with_parent() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}

/// Waits for a descriptor to be readable.
pub(super) fn is_readable_within(fd: impl AsFd, limit: Duration) -> bool {
    wait(
        &mut [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)],
        Instant::now() + limit,
    )
}

/// Whether anything came of these in time.
pub(super) fn wait(watched: &mut [PollFd<'_>], until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs().cast_signed(),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        match poll(watched, Some(&timeout)) {
            Err(Errno::INTR) if !left.is_zero() => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}
