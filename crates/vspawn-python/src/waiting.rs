//! Waits for descriptors. A signal ends the wait, so that Python's handlers run between two waits.

use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitResult {
    Ready,
    TimedOut,
    /// A signal arrived: call `Python::check_signals`, then wait again.
    Interrupted,
}

/// Returns the argument of poll for a descriptor. Without one, poll ignores the entry.
pub(crate) fn pollfd(fd: Option<RawFd>, events: i16) -> libc::pollfd {
    libc::pollfd { fd: fd.unwrap_or(-1), events, revents: 0 }
}

/// Waits until one of the descriptors is ready. Call it without the GIL.
pub(crate) fn wait_for_any(polls: &mut [libc::pollfd], deadline: Option<Instant>) -> Result<WaitResult, i32> {
    let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let limit = remaining.map(|remaining| libc::timespec {
        tv_sec: remaining.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: remaining.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pollfds with their number, a timespec or NULL, no mask.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, limit, std::ptr::null()) };
    match ready {
        0 => Ok(WaitResult::TimedOut),
        -1 => match errno() {
            libc::EINTR => Ok(WaitResult::Interrupted),
            errno => Err(errno),
        },
        _ => Ok(WaitResult::Ready),
    }
}

/// Waits until the process of a pidfd has ended. Without a pidfd, returns `Ready` after
/// `POLL_INTERVAL`, and the caller checks again.
pub(crate) fn wait_for_end(pidfd: Option<RawFd>, deadline: Option<Instant>) -> Result<WaitResult, i32> {
    if pidfd.is_some() {
        return wait_for_any(&mut [pollfd(pidfd, libc::POLLIN)], deadline);
    }
    let next_poll = Instant::now() + POLL_INTERVAL;
    let is_last = deadline.is_some_and(|deadline| deadline <= next_poll);
    let end = if is_last { deadline } else { Some(next_poll) };
    match wait_for_any(&mut [], end)? {
        WaitResult::TimedOut if !is_last => Ok(WaitResult::Ready),
        waited => Ok(waited),
    }
}

/// The interval at which a child without a pidfd is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Returns a child's status in the form of `returncode`, if it has ended. A status that the kernel
/// did not keep (the parent ignores SIGCHLD), or that other code has taken, counts as 0, as with
/// `subprocess`.
pub(crate) fn returncode(child: &mut vspawn::Child) -> Result<Option<i32>, vspawn::Error> {
    as_returncode(child.try_wait())
}

/// Like `returncode`, but waits until the child has ended. Returns `None` if a signal interrupted
/// the wait. Call it without the GIL.
pub(crate) fn returncode_when_ended(child: &mut vspawn::Child) -> Result<Option<i32>, vspawn::Error> {
    as_returncode(child.wait_interruptible())
}

fn as_returncode(ended: Result<Option<ExitStatus>, vspawn::Error>) -> Result<Option<i32>, vspawn::Error> {
    match ended {
        Ok(status) => Ok(status.map(exit_code)),
        Err(error) if error.raw_os_error() == libc::ECHILD => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

/// Returns the exit code, or the negative number of the signal that killed the process.
fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| status.signal().map_or(0, |signal| -signal))
}

/// Returns the number of a child's pidfd, if the kernel gave one.
pub(crate) fn pidfd(child: &vspawn::Child) -> Option<RawFd> {
    child.pidfd().map(|pidfd| pidfd.as_raw_fd())
}

/// Returns the calling thread's errno.
pub(crate) fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
