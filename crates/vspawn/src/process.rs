//! A running child: a pidfd, so no signal handler is needed, and no other child is ever reaped or signalled.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, Stage};
use crate::launch::failure;
use crate::stdio::{ChildStderr, ChildStdin, ChildStdout, Pipe};
use crate::sys::{Errno, PIDFD_SIGNAL_PROCESS_GROUP, syscall};
use crate::workspace::{InUse, keep_until_gone};

/// The result of a spawn.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) pid: u32,
    pub(crate) pidfd: OwnedFd,
    /// Set while a detached child may still use our memory.
    pub(crate) in_use: Option<InUse>,
    pub(crate) has_own_group: bool,
}

impl Parts {
    /// Takes the status of a child that is about to end.
    pub(crate) fn reap(&self) {
        let _ = wait_on(self.pidfd.as_fd(), 0);
    }
}

/// A child process. Dropping it neither kills nor waits: as with [`std::process::Child`], a child that has ended stays
/// a zombie until a call waits for it or the parent ends.
#[derive(Debug)]
pub struct Child {
    pid: u32,
    pidfd: OwnedFd,
    in_use: Option<InUse>,
    /// Why a detached child did not reach its exec.
    failure: Option<Error>,
    has_own_group: bool,
    status: Option<ExitStatus>,
    /// The parent's end of the child's piped standard input.
    pub stdin: Option<ChildStdin>,
    /// The parent's end of the child's piped standard output.
    pub stdout: Option<ChildStdout>,
    /// The parent's end of the child's piped standard error.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    pub(crate) fn new(parts: Parts, pipes: [Option<Pipe>; 3]) -> Child {
        let [stdin, stdout, stderr] = pipes;
        Child {
            pid: parts.pid,
            pidfd: parts.pidfd,
            in_use: parts.in_use,
            failure: None,
            has_own_group: parts.has_own_group,
            status: None,
            stdin: stdin.map(|pipe| pipe.writer.into()),
            stdout: stdout.map(|pipe| pipe.reader.into()),
            stderr: stderr.map(|pipe| pipe.reader.into()),
        }
    }

    /// The process id. It is not reused before the child was waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Waits until the child has called exec. After [`Prepared::spawn`](crate::Prepared::spawn) it already has; after
    /// [`spawn_nowait`](crate::Prepared::spawn_nowait), this waits for the exec or for its failure.
    ///
    /// # Errors
    /// The stage and errno of the failure, before or at exec. The child has then been waited for.
    pub fn started(&mut self) -> Result<(), Error> {
        if let Some(in_use) = &self.in_use {
            while !self.has_left(in_use) {
                // Not FUTEX_PRIVATE: the kernel's wake-up for a cleared tid is not private.
                // SAFETY: the word is in our workspace, the time is a constant.
                unsafe {
                    let (word, inside) = (in_use.inside().as_ptr(), in_use.inside().load(Ordering::Acquire));
                    let _ = syscall!(SYS_futex, word, libc::FUTEX_WAIT, inside.max(1), &raw const LOOK_AGAIN);
                }
            }
            self.failure = failure(&in_use.plan, in_use.job());
            self.in_use = None;
            if self.failure.is_some() {
                let _ = self.wait_for_end(0);
            }
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Whether a detached child has left our memory: it has called exec or ended. The kernel clears the word then,
    /// except for a child that dumps core (before Linux 5.16), and not in a process forked from us.
    fn has_left(&self, in_use: &InUse) -> bool {
        in_use.inside().load(Ordering::Acquire) == 0 || self.has_ended()
    }

    fn has_ended(&self) -> bool {
        let mut ended = [readable(self.pidfd.as_fd())];
        poll_any(&mut ended, Some(Duration::ZERO)).is_ok() && ended[0].revents & libc::POLLIN != 0
    }

    /// Waits for the child's end. Its standard input is closed first, as with [`std::process::Child::wait`].
    ///
    /// # Errors
    /// [`Stage::Wait`] with `ECHILD` if the parent ignores SIGCHLD (the kernel then keeps no status), or if other code
    /// has waited for the child; after `spawn_nowait`, the errors of [`Child::started`].
    pub fn wait(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        match self.wait_in_order(0)? {
            Some(status) => Ok(status),
            None => Err(wait_error(self.pid, libc::ECHILD)),
        }
    }

    /// Waits like [`Child::wait`], but returns `None` once a signal's handler has run in this thread. For callers that handle
    /// signals between two waits, such as interpreters. Leaves the child's standard input open.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_interruptible(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            match wait_once(self.pidfd.as_fd(), 0) {
                Err(libc::EINTR) => return Ok(None),
                Ok(status) => self.status = status,
                Err(_) => {} // reported below, after the reason for a missing exec, which is more useful
            }
        }
        self.wait_in_order(libc::WNOHANG)
    }

    /// Waits for the end first, which happens once, then checks whether there was an exec. In the other order, the parent would
    /// sleep twice.
    fn wait_in_order(&mut self, options: i32) -> Result<Option<ExitStatus>, Error> {
        let status = self.wait_for_end(options);
        if !matches!(status, Ok(None)) {
            self.started()?;
        }
        status
    }

    /// The child's status, if it has ended.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.wait_in_order(libc::WNOHANG)
    }

    /// Waits until the child ends, for at most `timeout`. Returns `None` if the child still runs.
    ///
    /// # Errors
    /// As [`Child::wait`].
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, Error> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(None);
            }
            poll_any(&mut [readable(self.pidfd.as_fd())], left).map_err(|errno| wait_error(self.pid, errno))?;
        }
    }

    fn wait_for_end(&mut self, options: i32) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            self.status = wait_on(self.pidfd.as_fd(), options).map_err(|errno| wait_error(self.pid, errno))?;
        }
        Ok(self.status)
    }

    /// Kills the child with SIGKILL. Does nothing if it was waited for.
    ///
    /// # Errors
    /// [`Stage::Kill`], for instance with `EPERM` if the child has become another user.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.signal(libc::SIGKILL)
    }

    /// Sends the child a signal. Does nothing if it was waited for.
    ///
    /// # Errors
    /// As [`Child::kill`].
    pub fn signal(&mut self, signal: i32) -> Result<(), Error> {
        self.send(signal, 0).map_err(|errno| {
            Error::new(
                Stage::Kill,
                errno,
                format!("send signal {signal} to process {}", self.pid),
            )
        })
    }

    /// Sends a signal to the child's process group, which the child must have created
    /// ([`process_group(0)`](crate::Command::process_group) or [`new_session`](crate::Command::new_session)).
    ///
    /// # Errors
    /// [`Stage::Kill`] with `EINVAL` if the child has no group of its own, with `ESRCH` if the group has ended; after
    /// `spawn_nowait`, the errors of [`Child::started`].
    pub fn signal_group(&mut self, signal: i32) -> Result<(), Error> {
        // The child creates its group on its way to the exec.
        self.started()?;
        let failed = |errno| {
            let action = format!("send signal {signal} to the process group of process {}", self.pid);
            Error::new(Stage::Kill, errno, action)
        };
        if !self.has_own_group {
            return Err(failed(libc::EINVAL));
        }
        match self.send(signal, PIDFD_SIGNAL_PROCESS_GROUP) {
            // Before Linux 6.9. The group's number is the child's pid, which is not reused until it was waited for.
            Err(libc::EINVAL) if self.status.is_none() => {
                // SAFETY: integers.
                unsafe { syscall!(SYS_kill, -(self.pid as isize), signal) }.map(drop)
            }
            result => result,
        }
        .map_err(failed)
    }

    fn send(&self, signal: i32, flags: u32) -> Result<(), Errno> {
        if self.status.is_some() && flags == 0 {
            return Ok(());
        }
        // SAFETY: integers.
        unsafe { syscall!(SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), signal, 0, flags) }.map(drop)
    }

    /// Whether its status was taken; its pid may be reused then.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.status.is_some()
    }

    pub(crate) fn has_own_group(&self) -> bool {
        self.has_own_group
    }
}

/// The pidfd: readable when the child has ended, for poll, epoll and similar calls.
impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(in_use) = self.in_use.take() {
            keep_until_gone(in_use);
        }
    }
}

/// After this time, a wait for the word that the kernel clears checks whether the child has ended without clearing it.
static LOOK_AGAIN: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

fn readable(fd: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

fn wait_error(pid: u32, errno: Errno) -> Error {
    Error::new(Stage::Wait, errno, format!("wait for process {pid}"))
}

/// Waits only for the process behind a pidfd.
fn wait_on(pidfd: BorrowedFd<'_>, options: i32) -> Result<Option<ExitStatus>, Errno> {
    loop {
        match wait_once(pidfd, options) {
            Err(libc::EINTR) => {}
            result => return result,
        }
    }
}

fn wait_once(pidfd: BorrowedFd<'_>, options: i32) -> Result<Option<ExitStatus>, Errno> {
    // SAFETY: a `siginfo_t` of zeros is valid.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = options | libc::WEXITED;
    // SAFETY: the kernel writes one `siginfo_t`.
    unsafe { syscall!(SYS_waitid, libc::P_PIDFD, pidfd.as_raw_fd(), &raw mut info, options, 0) }?;
    Ok(status_in(&info))
}

/// `None` if no process has ended.
fn status_in(info: &libc::siginfo_t) -> Option<ExitStatus> {
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

/// Waits until one of them is ready, at most for this time (`None`: no limit). Returns early if a signal interrupts it.
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
