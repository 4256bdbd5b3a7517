//! A running child. Its methods need no signal handler, and never reap or signal another child.

pub(crate) mod handle;
mod tree;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::handle::Handle;
use crate::child::job::SHARES_MEMORY;
use crate::error::{Error, Stage};
use crate::stdio::{ChildStderr, ChildStdin, ChildStdout, Pipe};
use crate::sys::Errno;
use crate::workspace::{ChildMemory, keep_until_child_has_left};

/// A child process. Dropping it neither kills nor waits: as with [`std::process::Child`], a child
/// that has ended stays a zombie until a call waits for it or the parent ends.
///
/// ```
/// use vspawn::{Command, Stdio};
///
/// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
/// assert!(child.try_wait()?.is_none());
/// drop(child.stdin.take()); // the end of its input
/// assert!(child.wait()?.success());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct Child {
    pub(crate) handle: Handle,
    /// Set while a detached child may still use our memory.
    pub(crate) child_memory: Option<ChildMemory>,
    /// Why a detached child did not call exec successfully.
    failure: Option<Error>,
    pub(crate) has_own_group: bool,
    status: Option<ExitStatus>,
    /// The parent's end of the child's piped standard input.
    pub stdin: Option<ChildStdin>,
    /// The parent's end of the child's piped standard output.
    pub stdout: Option<ChildStdout>,
    /// The parent's end of the child's piped standard error.
    pub stderr: Option<ChildStderr>,
}

impl Child {
    /// Creates a child without the parent's ends of its pipes.
    pub(crate) fn new(handle: Handle, has_own_group: bool) -> Child {
        let (child_memory, failure, status) = (None, None, None);
        let (stdin, stdout, stderr) = (None, None, None);
        Child { handle, child_memory, failure, has_own_group, status, stdin, stdout, stderr }
    }

    pub(crate) fn with_pipes(mut self, [stdin, stdout, stderr]: [Option<Pipe>; 3]) -> Child {
        self.stdin = stdin.map(|pipe| pipe.writer.into());
        self.stdout = stdout.map(|pipe| pipe.reader.into());
        self.stderr = stderr.map(|pipe| pipe.reader.into());
        self
    }

    /// Returns the process id. It is not reused before the child has been waited for.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// assert!(std::fs::exists(format!("/proc/{}", child.id())).unwrap());
    /// # child.kill()?;
    /// # child.wait()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn id(&self) -> u32 {
        self.handle.pid
    }

    /// Returns the pidfd, which becomes readable (for poll, epoll and similar calls) when the child
    /// has ended. `None` if the kernel gave none: the table of descriptors was full, or an emulator
    /// (qemu-user) or an old seccomp filter refuses pidfds. All methods then use the pid, which
    /// identifies the child until it has been waited for. A signal can reach another process only
    /// if other code waits for this child.
    ///
    /// ```
    /// use std::os::fd::AsRawFd;
    ///
    /// let mut child = vspawn::Command::new("true").spawn()?;
    /// if let Some(pidfd) = child.pidfd() {
    ///     let mut ended = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    ///     // SAFETY: one `pollfd`.
    ///     assert_eq!(unsafe { libc::poll(&raw mut ended, 1, -1) }, 1);
    /// }
    /// assert!(child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.handle.pidfd.as_ref().map(OwnedFd::as_fd)
    }

    /// Waits until the child has called exec, or has failed. After
    /// [`Prepared::spawn`](crate::Prepared::spawn), this returns at once; it is meant for
    /// [`spawn_nowait`](crate::Prepared::spawn_nowait).
    ///
    /// # Errors
    /// The stage and errno of the failure, before or at exec. The child has then been waited for.
    ///
    /// ```
    /// let mut child = vspawn::Command::new("/nowhere").spawn_nowait()?;
    /// assert_eq!(child.started().unwrap_err().stage(), vspawn::Stage::Exec);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn started(&mut self) -> Result<(), Error> {
        if let Some(child_memory) = &self.child_memory {
            while !self.has_left(child_memory) {
                let state = child_memory.sharing_state().load(Ordering::Acquire);
                child_memory.sleep_while(state.max(SHARES_MEMORY));
            }
            self.failure = child_memory.job().reported_error(&child_memory.plan);
            self.child_memory = None;
            if self.failure.is_some() {
                let _ = self.wait_for_end(0);
            }
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Returns whether a detached child has left our memory, by an exec or by its end. The kernel
    /// then clears the state, with two exceptions: a child that dumps core (before Linux 5.16), and
    /// the memory of a process that was forked from us.
    fn has_left(&self, child_memory: &ChildMemory) -> bool {
        child_memory.sharing_state().load(Ordering::Acquire) == 0 || self.handle.has_ended()
    }

    /// Closes the child's standard input, and waits until the child has ended, like
    /// [`std::process::Child::wait`].
    ///
    /// # Errors
    /// [`Stage::Wait`] with `ECHILD` if the parent ignores SIGCHLD (the kernel then keeps no
    /// status), or if other code has waited for the child; after `spawn_nowait`, the errors of
    /// [`Child::started`].
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("false").spawn()?.wait()?.code(), Some(1));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn wait(&mut self) -> Result<ExitStatus, Error> {
        drop(self.stdin.take());
        match self.wait_and_check_exec(0)? {
            Some(status) => Ok(status),
            None => Err(wait_error(self.id(), libc::ECHILD)),
        }
    }

    /// Waits like [`Child::wait`], but returns `None` after a signal handler has run in this
    /// thread, for callers that handle signals between two waits, such as interpreters. Leaves the
    /// child's standard input open.
    ///
    /// # Errors
    /// The same as [`Child::wait`].
    ///
    /// ```
    /// let mut child = vspawn::Command::new("true").spawn()?;
    /// let status = loop {
    ///     match child.wait_interruptible()? {
    ///         Some(status) => break status,
    ///         None => println!("a signal has arrived"),
    ///     }
    /// };
    /// assert!(status.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn wait_interruptible(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            match self.handle.wait_once(0) {
                Err(libc::EINTR) => return Ok(None),
                Ok(status) => self.status = status,
                Err(_) => {} // reported below, after the reason for a missing exec, which is more useful
            }
        }
        self.wait_and_check_exec(libc::WNOHANG)
    }

    /// Waits until the child has ended, then checks that its exec succeeded. In the other order,
    /// the parent would sleep twice.
    fn wait_and_check_exec(&mut self, options: i32) -> Result<Option<ExitStatus>, Error> {
        let status = self.wait_for_end(options);
        if !matches!(status, Ok(None)) {
            self.started()?;
        }
        status
    }

    /// Returns the child's status if it has ended. Does not wait.
    ///
    /// # Errors
    /// The same as [`Child::wait`].
    ///
    /// ```
    /// let mut child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// assert!(child.try_wait()?.is_none());
    /// # child.kill()?;
    /// # child.wait()?;
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, Error> {
        self.wait_and_check_exec(libc::WNOHANG)
    }

    /// Waits until the child ends, for at most `timeout`. Returns `None` if the child is still
    /// running then.
    ///
    /// # Errors
    /// The same as [`Child::wait`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// if child.wait_timeout(Duration::from_millis(10))?.is_none() {
    ///     child.kill()?;
    /// }
    /// assert!(!child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, Error> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if remaining == Some(Duration::ZERO) {
                return Ok(None);
            }
            self.handle.sleep_until_end(remaining).map_err(|errno| wait_error(self.id(), errno))?;
        }
    }

    fn wait_for_end(&mut self, options: i32) -> Result<Option<ExitStatus>, Error> {
        if self.status.is_none() {
            self.status = self.handle.wait(options).map_err(|errno| wait_error(self.id(), errno))?;
        }
        Ok(self.status)
    }

    /// Kills the child with SIGKILL. Does nothing if the child has been waited for.
    ///
    /// # Errors
    /// [`Stage::Kill`], for instance with `EPERM` if the child now runs as another user.
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// child.kill()?;
    /// assert_eq!(child.wait()?.signal(), Some(libc::SIGKILL));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn kill(&mut self) -> Result<(), Error> {
        self.signal(libc::SIGKILL)
    }

    /// Sends the child a signal. Does nothing if the child has been waited for.
    ///
    /// # Errors
    /// The same as [`Child::kill`].
    ///
    /// ```
    /// use std::os::unix::process::ExitStatusExt;
    ///
    /// let mut child = vspawn::Command::new("sleep").arg("60").spawn()?;
    /// child.signal(libc::SIGTERM)?;
    /// assert_eq!(child.wait()?.signal(), Some(libc::SIGTERM));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn signal(&mut self, signal: i32) -> Result<(), Error> {
        if self.status.is_some() {
            return Ok(());
        }
        self.handle.signal(signal).map_err(|errno| {
            let action = format!("send signal {signal} to process {}", self.id());
            Error::new(Stage::Kill, errno, action)
        })
    }

    /// Sends a signal to the child's process group, which the child must have created
    /// ([`process_group(0)`](crate::Command::process_group) or
    /// [`new_session`](crate::Command::new_session)).
    ///
    /// # Errors
    /// [`Stage::Kill`] with `EINVAL` if the child has no group of its own, with `ESRCH` if the
    /// group has ended; after `spawn_nowait`, the errors of [`Child::started`].
    ///
    /// ```
    /// let mut command = vspawn::Command::new("sh");
    /// let mut child = command.args(["-c", "sleep 60 & wait"]).new_session(true).spawn()?;
    /// child.signal_group(libc::SIGKILL)?; // the shell and sleep
    /// assert!(!child.wait()?.success());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn signal_group(&mut self, signal: i32) -> Result<(), Error> {
        // The child creates its group before its exec.
        self.started()?;
        let sent = match self.has_own_group {
            true => self.handle.signal_group(signal, self.was_waited_for()),
            false => Err(libc::EINVAL),
        };
        sent.map_err(|errno| {
            let action = format!("send signal {signal} to the process group of process {}", self.id());
            Error::new(Stage::Kill, errno, action)
        })
    }

    /// Whether the child has been waited for. Its pid may then be reused.
    pub(crate) fn was_waited_for(&self) -> bool {
        self.status.is_some()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(child_memory) = self.child_memory.take() {
            keep_until_child_has_left(child_memory);
        }
    }
}

fn wait_error(pid: u32, errno: Errno) -> Error {
    Error::new(Stage::Wait, errno, format!("wait for process {pid}"))
}
