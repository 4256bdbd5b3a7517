//! Writes a child's input and reads its outputs at the same time, so that no pipe can fill up and
//! block.

use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::failure::os_error;
use crate::values::deadline;
use crate::waiting::{WaitResult, errno, pollfd, wait_for_any};

/// The memory that is reserved for each read: at least the first, at most the second of these
/// constants.
const MIN_ROOM_BYTES: usize = 4096;
const MAX_ROOM_BYTES: usize = 1024 * 1024;

/// The state of an exchange when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All streams have ended.
    Done,
    /// The input is written, or has no reader. The owner of its descriptor has to close it and call
    /// again.
    InputDone,
    TimedOut,
    /// An output is larger than the limit.
    TooLarge,
    /// See `WaitResult::Interrupted`.
    Interrupted,
}

/// The streams of one child. The descriptors are borrowed: their owner keeps them open.
pub(crate) struct Streams {
    stdin: Option<RawFd>,
    input: Option<PyBackedBytes>,
    written_bytes: usize,
    pub(crate) outputs: [Output; 2],
    /// The number of bytes that each output may have.
    pub(crate) limit: usize,
}

pub(crate) struct Output {
    /// None after the end of the stream.
    fd: Option<RawFd>,
    /// Whether reads do not block, because other code has set O_NONBLOCK.
    is_nonblocking: bool,
    /// None if the stream is not read.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Output {
    fn new(fd: Option<RawFd>) -> Output {
        let bytes = fd.map(|_| Vec::new());
        Output { fd, is_nonblocking: false, bytes }
    }

    /// Reads once. Returns `false` if a signal interrupted the read.
    fn read(&mut self) -> Result<bool, i32> {
        let (Some(fd), Some(bytes)) = (self.fd, &mut self.bytes) else { return Ok(true) };
        bytes.reserve(bytes.len().clamp(MIN_ROOM_BYTES, MAX_ROOM_BYTES));
        let room = bytes.spare_capacity_mut();
        // SAFETY: the room is ours, with its length.
        let count = unsafe { libc::read(fd, room.as_mut_ptr().cast(), room.len()) };
        match usize::try_from(count) {
            Ok(0) => self.fd = None,
            // SAFETY: the kernel has written this many bytes after the existing ones.
            Ok(count) => unsafe { bytes.set_len(bytes.len() + count) },
            Err(_) => match errno() {
                libc::EINTR => return Ok(false),
                libc::EAGAIN => self.is_nonblocking = true,
                errno => return Err(errno),
            },
        }
        Ok(true)
    }
}

impl Streams {
    pub(crate) fn new(
        stdin: Option<RawFd>,
        input: Option<PyBackedBytes>,
        stdout: Option<RawFd>,
        stderr: Option<RawFd>,
        limit: usize,
    ) -> Streams {
        if let Some(stdin) = stdin {
            set_nonblocking(stdin);
        }
        Streams { stdin, input, written_bytes: 0, outputs: [Output::new(stdout), Output::new(stderr)], limit }
    }

    /// Exchanges data until there is something to report. Call it without the GIL.
    pub(crate) fn advance(&mut self, deadline: Option<Instant>) -> Result<Progress, i32> {
        loop {
            let [stdout, stderr] = self.outputs.each_ref().map(|output| output.fd);
            let open = [self.stdin, stdout, stderr].into_iter().flatten().count();
            if open == 0 {
                return Ok(Progress::Done);
            }
            let mut polls =
                [pollfd(self.stdin, libc::POLLOUT), pollfd(stdout, libc::POLLIN), pollfd(stderr, libc::POLLIN)];
            // A single output without a timeout needs no poll, because the read itself waits.
            let is_nonblocking = self.outputs.iter().any(|output| output.is_nonblocking);
            if open > 1 || deadline.is_some() || self.stdin.is_some() || is_nonblocking {
                match wait_for_any(&mut polls, deadline)? {
                    WaitResult::Ready => {}
                    WaitResult::TimedOut => return Ok(Progress::TimedOut),
                    WaitResult::Interrupted => return Ok(Progress::Interrupted),
                }
            } else {
                polls.iter_mut().for_each(|poll| poll.revents = poll.events);
            }
            if let Some(progress) = self.exchange(polls.map(|poll| poll.fd >= 0 && poll.revents != 0))? {
                return Ok(progress);
            }
            // Checked after each round, so that available data is read, but an output that never
            // ends cannot delay the timeout.
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) && !self.has_ended() {
                return Ok(Progress::TimedOut);
            }
        }
    }

    fn has_ended(&self) -> bool {
        self.stdin.is_none() && self.outputs.iter().all(|output| output.fd.is_none())
    }

    fn exchange(&mut self, ready: [bool; 3]) -> Result<Option<Progress>, i32> {
        for (output, ready) in self.outputs.iter_mut().zip([ready[1], ready[2]]) {
            if ready && !output.read()? {
                return Ok(Some(Progress::Interrupted));
            }
            if output.bytes.as_ref().is_some_and(|bytes| bytes.len() > self.limit) {
                return Ok(Some(Progress::TooLarge));
            }
        }
        if ready[0] && self.write()? {
            self.stdin = None;
            return Ok(Some(Progress::InputDone));
        }
        Ok(None)
    }

    /// Writes some of the input. Returns whether everything is written. It is no error if the child
    /// does not read its input (EPIPE): its status reports the result.
    fn write(&mut self) -> Result<bool, i32> {
        let Some(stdin) = self.stdin else { return Ok(true) };
        let input = self.input.as_deref().unwrap_or_default();
        let rest = input.get(self.written_bytes..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(true);
        }
        // SAFETY: the bytes are borrowed, with their length.
        let count = unsafe { libc::write(stdin, rest.as_ptr().cast(), rest.len()) };
        match usize::try_from(count) {
            Ok(count) => {
                self.written_bytes += count;
                Ok(count == rest.len())
            }
            Err(_) => match errno() {
                libc::EPIPE => Ok(true),
                libc::EAGAIN | libc::EINTR => Ok(false),
                errno => Err(errno),
            },
        }
    }
}

/// Makes the parent's end of a pipe non-blocking. The child's end has its own flags.
fn set_nonblocking(fd: RawFd) {
    // SAFETY: integers.
    unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        if flags != -1 {
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
    }
}

/// The exchange of `Popen.communicate`, which may be interrupted and called again.
#[pyclass(frozen, module = "vspawn._core")]
pub(crate) struct Exchange(Mutex<Streams>);

#[pymethods]
impl Exchange {
    #[new]
    #[pyo3(signature = (stdin, input, stdout, stderr))]
    fn new(
        stdin: Option<RawFd>,
        input: Option<PyBackedBytes>,
        stdout: Option<RawFd>,
        stderr: Option<RawFd>,
    ) -> Exchange {
        Exchange(Mutex::new(Streams::new(stdin, input, stdout, stderr, usize::MAX)))
    }

    /// Returns `"done"`, `"input done"` (close the child's standard input and call again), or
    /// `"out of time"`.
    #[pyo3(signature = (timeout))]
    fn advance(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<&'static str> {
        let deadline = deadline(timeout)?;
        loop {
            let progress = py.detach(|| {
                let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                streams.advance(deadline)
            });
            match progress.map_err(os_error)? {
                Progress::Done => return Ok("done"),
                Progress::InputDone => return Ok("input done"),
                // Without a limit, no output is too large.
                Progress::TimedOut | Progress::TooLarge => return Ok("out of time"),
                Progress::Interrupted => py.check_signals()?,
            }
        }
    }

    /// Returns what was read from standard output and standard error so far.
    fn outputs<'py>(&self, py: Python<'py>) -> [Option<Bound<'py, PyBytes>>; 2] {
        // Without the GIL, since another thread may hold the lock for long, and needs the GIL to
        // continue.
        let outputs = py.detach(|| {
            let streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            streams.outputs.each_ref().map(|output| output.bytes.clone())
        });
        outputs.map(|bytes| bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }
}
