//! Exchanges data with one child: writes its input and reads its output whenever a stream is ready, until all streams have ended.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::{CHUNK_BYTES, Capture, Captured};
use crate::error::{Error, Stage};
use crate::process::Child;
use crate::sys::{Errno, syscall};

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
    pub(super) fn new(child: Child, capture: &Capture<'a>) -> Exchange<'a> {
        Exchange {
            input: capture.input.unwrap_or_default(),
            limit: capture.limit,
            deadline: capture.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            timeout: capture.timeout,
            ..Exchange::without_limits(child)
        }
    }

    pub(super) fn without_limits(mut child: Child) -> Exchange<'a> {
        let outputs = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
        Exchange {
            stdin: child.stdin.take().map(OwnedFd::from),
            child,
            input: &[],
            outputs: outputs.map(|fd| Stream { fd, bytes: Vec::new() }),
            limit: usize::MAX,
            deadline: None,
            timeout: None,
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

    /// Writes and reads the streams that are ready, until all of them have ended. Returns an error for the timeout or the limit if
    /// one of them ended the exchange early.
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
        crate::handle::poll_any(&mut polls, self.remaining_time())
    }

    /// Writes some of the input. It is no error if the child does not read its input (EPIPE): its status reports the result.
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

    /// Waits until the child has ended. Returns an error for the timeout if it is still running at the deadline.
    fn wait_until_deadline(&mut self) -> Result<Option<Error>, Error> {
        let Some(remaining) = self.remaining_time() else {
            return Ok(None);
        };
        let ended = self.child.wait_timeout(remaining)?;
        Ok(ended.is_none().then(|| self.timed_out()))
    }

    /// Kills the child and, if it has its own group, the group. Returns an error if this process may not kill the child (which now
    /// runs as another user). The caller then does not wait for the child, which could take forever.
    fn stop(&mut self) -> Result<(), Error> {
        if self.child.has_own_group() {
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

/// Writes without sending SIGPIPE to the caller. The kernel sends it after a write to a pipe without a reader; it is blocked during
/// the write and then removed, so the caller's disposition does not matter.
fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let sigpipe_blocked = crate::guards::SigpipeGuard::new();
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
