//! Exchanges data with one child: writes its input and reads its output whenever a stream is ready,
//! until all streams have ended.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::error::{Error, Stage};
use crate::process::Child;
use crate::process::handle::poll_any;
use crate::sys::{Errno, SIGNAL_SET_BYTES, SignalSet, signal_bit, syscall};

const CHUNK_BYTES: usize = 64 * 1024;

/// What was captured, even if the run failed.
///
/// ```
/// let captured = vspawn::Command::new("yes").capture().limit(4).run_to_any_end()?;
/// assert_eq!(captured.stdout, b"y\ny\n");
/// assert_eq!(captured.cut.unwrap().stage(), vspawn::Stage::Limit);
/// assert!(!captured.status.success());
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Captured {
    /// The exit status: that of a killed process if the child exceeded the timeout or the limit.
    pub status: ExitStatus,
    /// What was read from standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// What was read from standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Why the child was killed: an error with [`Stage::Timeout`] or [`Stage::Limit`]. `None` if it
    /// was not.
    pub cut: Option<Error>,
}

impl Captured {
    /// Whether the child was killed because of the timeout.
    ///
    /// ```
    /// let captured = vspawn::Command::new("true").capture().run_to_any_end()?;
    /// assert!(!captured.timed_out());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn timed_out(&self) -> bool {
        let kind = self.cut.as_ref().map(Error::kind);
        kind == Some(ErrorKind::TimedOut)
    }
}

/// A child, its open streams, and what was read from them so far.
pub(super) struct Exchange<'a> {
    child: Child,
    input: &'a [u8],
    stdin: Option<OwnedFd>,
    outputs: [Stream; 2],
    limit: usize,
    deadline: Option<Instant>,
    timeout: Option<Duration>,
}

#[derive(Default)]
struct Stream {
    fd: Option<OwnedFd>,
    bytes: Vec<u8>,
}

impl<'a> Exchange<'a> {
    pub(super) fn new(mut child: Child, input: &'a [u8], limit: usize, timeout: Option<Duration>) -> Exchange<'a> {
        let outputs = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        Exchange {
            stdin: child.stdin.take().map(OwnedFd::from),
            child,
            input,
            outputs: outputs.map(|fd| Stream { fd, bytes: Vec::new() }),
            limit,
            deadline: timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            timeout,
        }
    }

    pub(super) fn finish(mut self) -> Result<Captured, Error> {
        let mut stopped_by = match self.exchange() {
            Ok(stopped_by) => stopped_by,
            Err(errno) => {
                self.stop()?;
                let _ = self.child.wait();
                return Err(Error::new(Stage::Communicate, errno, "exchange data with the child"));
            }
        };
        if stopped_by.is_none() {
            stopped_by = self.wait_until_deadline()?;
        }
        if stopped_by.is_some() {
            self.stop()?;
        }
        let status = self.child.wait()?;
        let [stdout, stderr] = self.outputs.map(|mut stream| {
            stream.bytes.truncate(self.limit);
            stream.bytes
        });
        Ok(Captured { status, stdout, stderr, cut: stopped_by })
    }

    /// Writes and reads the streams that are ready, until all of them have ended. Returns an error
    /// for the timeout or the limit if one of them ended the exchange early.
    fn exchange(&mut self) -> Result<Option<Error>, Errno> {
        for fd in self.open_fds() {
            set_nonblocking(fd)?;
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        let mut chunk = Vec::new();
        chunk.try_reserve_exact(CHUNK_BYTES).map_err(|_| libc::ENOMEM)?;
        chunk.resize(CHUNK_BYTES, 0u8);
        while self.stdin.is_some() || self.outputs.iter().any(|stream| stream.fd.is_some()) {
            if self.remaining_time() == Some(Duration::ZERO) {
                return Ok(Some(self.timed_out()));
            }
            self.wait_for_any()?;
            self.write_some()?;
            for stream in &mut self.outputs {
                stream.read_some(&mut chunk)?;
            }
            if self.outputs.iter().any(|stream| stream.bytes.len() > self.limit) {
                return Ok(Some(self.too_large()));
            }
        }
        Ok(None)
    }

    fn open_fds(&self) -> Vec<BorrowedFd<'_>> {
        let outputs = self.outputs.iter().filter_map(|stream| stream.fd.as_ref());
        outputs.chain(&self.stdin).map(OwnedFd::as_fd).collect()
    }

    fn remaining_time(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn wait_for_any(&self) -> Result<(), Errno> {
        let reads = self.outputs.iter().filter_map(|stream| Some((stream.fd.as_ref()?, libc::POLLIN)));
        let writes = self.stdin.as_ref().map(|fd| (fd, libc::POLLOUT));
        let polls = reads.chain(writes).map(|(fd, events)| libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 });
        let mut polls: Vec<_> = polls.collect();
        poll_any(&mut polls, self.remaining_time())
    }

    /// Writes some of the input. It is no error if the child does not read its input (EPIPE): its
    /// status reports the result.
    fn write_some(&mut self) -> Result<(), Errno> {
        let Some(stdin) = &self.stdin else { return Ok(()) };
        match write(stdin.as_fd(), self.input) {
            Ok(written) => {
                self.input = self.input.get(written..).unwrap_or_default();
                if self.input.is_empty() {
                    self.stdin = None;
                }
                Ok(())
            }
            Err(libc::EPIPE) => {
                self.stdin = None;
                Ok(())
            }
            Err(libc::EAGAIN | libc::EINTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Waits until the child has ended. Returns an error for the timeout if it is still running at
    /// the deadline.
    fn wait_until_deadline(&mut self) -> Result<Option<Error>, Error> {
        let Some(remaining) = self.remaining_time() else { return Ok(None) };
        let ended = self.child.wait_timeout(remaining)?;
        Ok(ended.is_none().then(|| self.timed_out()))
    }

    /// Kills the child and, if it has its own group, the group. Returns an error if this process
    /// may not kill the child (which now runs as another user). The caller then does not wait for
    /// the child, which could take forever.
    fn stop(&mut self) -> Result<(), Error> {
        if self.child.has_own_group {
            let _ = self.child.signal_group(libc::SIGKILL);
        }
        self.child.kill()
    }

    fn timed_out(&self) -> Error {
        let pid = self.child.id();
        let timeout = self.timeout.unwrap_or_default();
        Error::new(Stage::Timeout, libc::ETIMEDOUT, format!("run process {pid} within {timeout:?}"))
    }

    fn too_large(&self) -> Error {
        let (pid, limit) = (self.child.id(), self.limit);
        let action = format!("keep the output of process {pid} within {limit} bytes");
        Error::new(Stage::Limit, libc::EMSGSIZE, action)
    }
}

impl Stream {
    fn read_some(&mut self, chunk: &mut [u8]) -> Result<(), Errno> {
        let Some(fd) = &self.fd else { return Ok(()) };
        match read(fd.as_fd(), chunk) {
            Ok(0) => self.fd = None,
            Ok(bytes) => {
                self.bytes.try_reserve(bytes).map_err(|_| libc::ENOMEM)?;
                self.bytes.extend_from_slice(&chunk[..bytes]);
            }
            Err(libc::EAGAIN | libc::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        Ok(())
    }
}

fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> Result<usize, Errno> {
    // SAFETY: the buffer is ours, with its length.
    unsafe { syscall!(SYS_read, fd.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) }
}

/// Writes without sending SIGPIPE to the caller. The kernel sends it after a write to a pipe
/// without a reader; it is blocked during the write and then removed, so the caller's disposition
/// does not matter.
fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let sigpipe_blocked = SigpipeGuard::new();
    // SAFETY: the bytes are borrowed, with their length.
    let result = unsafe { syscall!(SYS_write, fd.as_raw_fd(), bytes.as_ptr(), bytes.len()) };
    if result == Err(libc::EPIPE) {
        sigpipe_blocked.remove_pending();
    }
    result
}

pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: integers.
    unsafe {
        let flags = syscall!(SYS_fcntl, fd.as_raw_fd(), libc::F_GETFL)?;
        syscall!(SYS_fcntl, fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK as usize).map(drop)
    }
}

/// Blocks SIGPIPE in this thread, so that a write to a pipe without a reader only returns EPIPE.
#[derive(Debug)]
struct SigpipeGuard {
    previous_mask: SignalSet,
    was_pending: bool,
}

impl SigpipeGuard {
    fn new() -> SigpipeGuard {
        let (set, mut previous_mask, mut pending): (SignalSet, SignalSet, SignalSet) = (SIGPIPE_ONLY, 0, 0);
        // SAFETY: the sets are locals.
        unsafe {
            let _ = syscall!(SYS_rt_sigpending, &raw mut pending, SIGNAL_SET_BYTES);
            let (how, set) = (libc::SIG_BLOCK, &raw const set);
            let _ = syscall!(SYS_rt_sigprocmask, how, set, &raw mut previous_mask, SIGNAL_SET_BYTES);
        }
        SigpipeGuard { previous_mask, was_pending: pending & SIGPIPE_ONLY != 0 }
    }

    /// Removes the pending SIGPIPE of a failed write, unless one was pending before.
    fn remove_pending(&self) {
        let (set, zero_timeout) = (SIGPIPE_ONLY, [0u64; 2]);
        if !self.was_pending {
            // SAFETY: a set, no siginfo, and a timespec of 0.
            unsafe {
                let _ = syscall!(SYS_rt_sigtimedwait, &raw const set, 0, zero_timeout.as_ptr(), SIGNAL_SET_BYTES);
            }
        }
    }
}

impl Drop for SigpipeGuard {
    fn drop(&mut self) {
        // SAFETY: the set is ours.
        unsafe {
            let previous_mask = &raw const self.previous_mask;
            let _ = syscall!(SYS_rt_sigprocmask, libc::SIG_SETMASK, previous_mask, 0, SIGNAL_SET_BYTES);
        }
    }
}

const SIGPIPE_ONLY: SignalSet = signal_bit(libc::SIGPIPE);
