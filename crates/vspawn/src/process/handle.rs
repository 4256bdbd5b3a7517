//! Identifies a child by its pidfd, so that no other process is ever waited for or signalled.
//! Without a pidfd (a full table of descriptors, qemu-user, an old seccomp filter), the child is
//! identified by its pid, which is equally reliable until the child has been waited for, unless
//! other code waits for it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use crate::sys::{Errno, PIDFD_SIGNAL_PROCESS_GROUP, syscall};

/// The interval at which a wait that must not block polls a child without a pidfd. Only a pidfd can
/// report the child's end to `poll`.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) pid: u32,
    pub(crate) pidfd: Option<OwnedFd>,
}

impl Handle {
    /// Opens a process that need not be our child. Returns `ESRCH` if it has ended.
    pub(crate) fn open(pid: u32) -> Result<Handle, Errno> {
        match pidfd_open(pid) {
            Err(libc::ESRCH) => Err(libc::ESRCH),
            pidfd => Ok(Handle { pid, pidfd: pidfd.ok() }),
        }
    }

    /// Waits for this process only, and continues after signals.
    pub(crate) fn wait(&self, options: i32) -> Result<Option<ExitStatus>, Errno> {
        loop {
            match self.wait_once(options) {
                Err(libc::EINTR) => {}
                result => return result,
            }
        }
    }

    pub(crate) fn wait_once(&self, options: i32) -> Result<Option<ExitStatus>, Errno> {
        if let Some(pidfd) = &self.pidfd {
            match wait_by(libc::P_PIDFD, pidfd.as_raw_fd(), options) {
                // There is no P_PIDFD before Linux 5.4, and in emulators.
                Err(libc::EINVAL) => {}
                result => return result,
            }
        }
        wait_by(libc::P_PID, self.pid as i32, options)
    }

    /// Returns whether the child has ended, even if it has not been waited for.
    pub(crate) fn has_ended(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => {
                let mut ended = [pollfd_for_reading(pidfd.as_fd())];
                poll_any(&mut ended, Some(Duration::ZERO)).is_ok() && ended[0].revents & libc::POLLIN != 0
            }
            None => !matches!(self.wait_once(libc::WNOHANG | libc::WNOWAIT), Ok(None)),
        }
    }

    /// Sleeps until the child may have ended, for at most `limit`.
    pub(crate) fn sleep_until_end(&self, limit: Option<Duration>) -> Result<(), Errno> {
        match &self.pidfd {
            Some(pidfd) => poll_any(&mut [pollfd_for_reading(pidfd.as_fd())], limit),
            None => poll_any(&mut [], Some(limit.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL))),
        }
    }

    pub(crate) fn signal(&self, signal: i32) -> Result<(), Errno> {
        match self.signal_by_pidfd(signal, 0) {
            // A filter or an emulator may refuse the call. If EPERM is instead due to missing
            // permissions, `kill` returns it, too.
            None | Some(Err(libc::ENOSYS | libc::EPERM | libc::EINVAL)) => kill(self.pid as i32, signal),
            Some(result) => result,
        }
    }

    /// Signals the group whose leader is this process. After the process has been waited for, only
    /// a pidfd still identifies its group.
    pub(crate) fn signal_group(&self, signal: i32, was_waited_for: bool) -> Result<(), Errno> {
        match self.signal_by_pidfd(signal, PIDFD_SIGNAL_PROCESS_GROUP) {
            // EINVAL: before Linux 6.9.
            None | Some(Err(libc::ENOSYS | libc::EPERM | libc::EINVAL)) if !was_waited_for => {
                kill(-(self.pid as i32), signal)
            }
            None => Err(libc::ESRCH),
            Some(result) => result,
        }
    }

    fn signal_by_pidfd(&self, signal: i32, flags: u32) -> Option<Result<(), Errno>> {
        let pidfd = self.pidfd.as_ref()?.as_raw_fd();
        // SAFETY: integers.
        Some(unsafe { syscall!(SYS_pidfd_send_signal, pidfd, signal, 0, flags) }.map(drop))
    }
}

fn kill(pid: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: integers.
    unsafe { syscall!(SYS_kill, pid as isize, signal) }.map(drop)
}

pub(crate) fn pidfd_open(pid: u32) -> Result<OwnedFd, Errno> {
    // SAFETY: integers; the new descriptor has no other owner.
    unsafe { syscall!(SYS_pidfd_open, pid, 0).map(|fd| OwnedFd::from_raw_fd(fd as i32)) }
}

fn wait_by(kind: libc::idtype_t, id: i32, options: i32) -> Result<Option<ExitStatus>, Errno> {
    // SAFETY: a `siginfo_t` of zeros is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = options | libc::WEXITED;
    // SAFETY: the kernel writes one `siginfo_t`.
    unsafe { syscall!(SYS_waitid, kind, id, &raw mut info, options, 0) }?;
    Ok(exit_status(&info))
}

/// Returns the status that waitid stored, or `None` if no process has ended.
fn exit_status(info: &libc::siginfo_t) -> Option<ExitStatus> {
    // SAFETY: waitid fills these fields, or leaves the zeros.
    let (pid, status) = unsafe { (info.si_pid(), info.si_status()) };
    (pid != 0).then(|| {
        ExitStatus::from_raw(match info.si_code {
            libc::CLD_EXITED => (status & 0xff) << 8,
            libc::CLD_DUMPED => status | 0x80,
            _ => status,
        })
    })
}

fn pollfd_for_reading(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 }
}

/// Waits until one of the descriptors is ready, for at most `timeout` (`None`: no limit). Returns
/// early if a signal interrupts the wait.
pub(crate) fn poll_any(polls: &mut [libc::pollfd], timeout: Option<Duration>) -> Result<(), Errno> {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pollfds with their number, and a timespec or NULL.
    match unsafe { syscall!(SYS_ppoll, polls.as_mut_ptr(), polls.len(), limit, 0, 0) } {
        Err(libc::EINTR) | Ok(_) => Ok(()),
        Err(errno) => Err(errno),
    }
}
