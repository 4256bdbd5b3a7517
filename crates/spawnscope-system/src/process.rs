//! Handles to processes, waiting for them with a time limit, and reaping.

use std::ffi::c_int;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions};

use spawnscope_data::event::Pid;

/// Opens a handle to a process. It refers to this process even if the pid is reused, and is
/// readable when the process has ended. Fails for the id of a thread.
pub fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid.0).ok_or(Errno::SRCH)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Makes the kernel send `signal` to the calling process when the thread that created it ends
/// (PR_SET_PDEATHSIG). Children do not inherit this setting.
pub fn die_with_parent(signal: c_int) {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) };
}

/// Waits until a child has ended, without reaping it: what the kernel counted for it can still be
/// read. Fails with `Interrupted` if a caught signal interrupts the wait.
pub fn await_end(child: c_int) -> io::Result<()> {
    let child = rustix::process::Pid::from_raw(child).ok_or(Errno::CHILD)?;
    rustix::process::waitid(WaitId::Pid(child), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)?;
    Ok(())
}

/// Waits for a child (-1: any child) and reaps it. Returns its pid and wait status. Fails with
/// `Interrupted` if a caught signal interrupts the wait.
pub fn reap(child: c_int) -> io::Result<(c_int, c_int)> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    match unsafe { libc::waitpid(child, &raw mut status, 0) } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok((pid, status)),
    }
}

#[must_use]
pub fn reap_ended(child: Pid) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` has room for a status.
    let reaped = unsafe { libc::waitpid(child.0, &raw mut status, libc::WNOHANG) };
    (reaped == child.0).then_some(status)
}

pub fn is_readable_within(fd: impl AsFd, limit: Duration) -> bool {
    wait_until(&mut [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)], Instant::now() + limit)
}

pub fn wait_until(watched: &mut [PollFd<'_>], until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(watched, Some(&timeout)) {
            Err(Errno::INTR) if !left.is_zero() => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}
