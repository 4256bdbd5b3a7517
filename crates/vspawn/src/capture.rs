//! Runs a command for its output: input, output and error at the same time, so that no pipe can fill up and block; with
//! limits and a timeout.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::process::{ExitStatus, Output};
use std::time::{Duration, Instant};

use crate::command::Command;
use crate::error::{Error, Stage};
use crate::process::Child;
use crate::stdio::Source;
use crate::sys::{Errno, syscall};

const CHUNK_BYTES: usize = 64 * 1024;

/// A command that is run for its output.
///
/// ```
/// use std::time::Duration;
///
/// let mut command = vspawn::Command::new("sort");
/// let capture = command.capture().input(b"b\na\n").limit(1 << 20).timeout(Duration::from_secs(10));
/// assert_eq!(capture.run()?.stdout, b"a\nb\n");
/// # Ok::<(), vspawn::Error>(())
/// ```
#[derive(Debug)]
pub struct Capture<'a> {
    command: &'a Command,
    input: Option<&'a [u8]>,
    limit: usize,
    timeout: Option<Duration>,
}

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
    /// The exit status. If the child was killed because of time or size, this is the status of its killing.
    pub status: ExitStatus,
    /// What was read, up to the limit.
    pub stdout: Vec<u8>,
    /// What was read, up to the limit.
    pub stderr: Vec<u8>,
    /// [`Stage::Timeout`] or [`Stage::Limit`] if the child was killed for this reason.
    pub cut: Option<Error>,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(command: &'a Command) -> Capture<'a> {
        Capture {
            command,
            input: None,
            limit: usize::MAX,
            timeout: None,
        }
    }

    /// Sets the bytes for its standard input, which is closed after them.
    ///
    /// ```
    /// let counted = vspawn::Command::new("wc").arg("-c").capture().input(&[0; 1_000_000]).run()?;
    /// assert_eq!(counted.stdout, b"1000000\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn input(mut self, bytes: &'a [u8]) -> Capture<'a> {
        self.input = Some(bytes);
        self
    }

    /// Limits output and error, each in bytes. A child that writes more is killed (with its group, if it has its own).
    ///
    /// ```
    /// let error = vspawn::Command::new("yes").capture().limit(100).run().unwrap_err();
    /// assert_eq!((error.stage(), error.raw_os_error()), (vspawn::Stage::Limit, libc::EMSGSIZE));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Capture<'a> {
        self.limit = bytes;
        self
    }

    /// Limits the time until the streams and the child have ended. After this time, the child is killed (with its group, if it has its
    /// own).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let error = vspawn::Command::new("sleep").arg("60").capture().timeout(Duration::from_millis(20)).run().unwrap_err();
    /// assert_eq!(error.stage(), vspawn::Stage::Timeout);
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Capture<'a> {
        self.timeout = Some(timeout);
        self
    }

    /// Runs the command. Too much time or output is an error.
    ///
    /// # Errors
    /// As [`Command::output`]; [`Stage::Timeout`] with `ETIMEDOUT`, [`Stage::Limit`] with `EMSGSIZE`.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("cat").capture().input(b"text").run()?.stdout, b"text");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn run(self) -> Result<Output, Error> {
        let captured = self.run_to_any_end()?;
        match captured.cut {
            Some(error) => Err(error),
            None => Ok(Output {
                status: captured.status,
                stdout: captured.stdout,
                stderr: captured.stderr,
            }),
        }
    }

    /// Runs the command. Returns what was read, even if the command was killed because of time or size.
    ///
    /// # Errors
    /// As [`Command::output`].
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut command = vspawn::Command::new("sh");
    /// command.args(["-c", "echo begun; exec sleep 60"]);
    /// let captured = command.capture().timeout(Duration::from_secs(1)).run_to_any_end()?;
    /// assert_eq!(captured.stdout, b"begun\n");
    /// assert!(captured.timed_out());
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn run_to_any_end(self) -> Result<Captured, Error> {
        let mut command = self.command.clone();
        let unless_said = |command: &mut Command, target, source| {
            command.fds.entry(target).or_insert(source);
        };
        match self.input {
            Some(_) => drop(command.fds.insert(0, Source::Piped)),
            None => unless_said(&mut command, 0, Source::Null),
        }
        unless_said(&mut command, 1, Source::Piped);
        unless_said(&mut command, 2, Source::Piped);
        let child = command.spawn()?;
        Exchange::new(child, &self).finish()
    }
}

impl Child {
    /// Closes the child's standard input, reads its piped standard output and error to their ends at the same time, and waits for it.
    ///
    /// # Errors
    /// As [`Child::wait`], and [`Stage::Communicate`].
    ///
    /// ```
    /// use vspawn::{Command, Stdio};
    ///
    /// let child = Command::new("echo").arg("hello").stdout(Stdio::piped()).spawn()?;
    /// assert_eq!(child.wait_with_output()?.stdout, b"hello\n");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn wait_with_output(mut self) -> Result<Output, Error> {
        drop(self.stdin.take());
        let captured = Exchange::without_limits(self).finish()?;
        Ok(Output {
            status: captured.status,
            stdout: captured.stdout,
            stderr: captured.stderr,
        })
    }
}

/// The streams of one child, until all of them have ended.
struct Exchange<'a> {
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
    fn new(child: Child, capture: &Capture<'a>) -> Exchange<'a> {
        Exchange {
            input: capture.input.unwrap_or_default(),
            limit: capture.limit,
            deadline: capture.timeout.and_then(|timeout| Instant::now().checked_add(timeout)),
            timeout: capture.timeout,
            ..Exchange::without_limits(child)
        }
    }

    fn without_limits(mut child: Child) -> Exchange<'a> {
        let stream = |fd: Option<OwnedFd>| Stream { fd, bytes: Vec::new() };
        let outputs = [
            stream(child.stdout.take().map(OwnedFd::from)),
            stream(child.stderr.take().map(OwnedFd::from)),
        ];
        Exchange {
            stdin: child.stdin.take().map(OwnedFd::from),
            child,
            input: &[],
            outputs,
            limit: usize::MAX,
            deadline: None,
            timeout: None,
        }
    }

    fn finish(mut self) -> Result<Captured, Error> {
        let cut = match self.exchange() {
            Ok(cut) => cut,
            Err(errno) => {
                self.stop()?;
                let _ = self.child.wait();
                return Err(Error::new(Stage::Communicate, errno, "exchange data with the child"));
            }
        };
        let cut = cut.map(Ok).or_else(|| self.wait_in_time().transpose()).transpose()?;
        if cut.is_some() {
            self.stop()?;
        }
        let status = self.child.wait()?;
        let [stdout, stderr] = self.outputs.map(|mut stream| {
            stream.bytes.truncate(self.limit);
            stream.bytes
        });
        Ok(Captured {
            status,
            stdout,
            stderr,
            cut,
        })
    }

    /// Writes and reads the streams that are ready, until all of them have ended.
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
            if self.left() == Some(Duration::ZERO) {
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

    fn left(&self) -> Option<Duration> {
        self.deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    fn wait_for_any(&self) -> Result<(), Errno> {
        let poll = |fd: &OwnedFd, events| libc::pollfd {
            fd: fd.as_raw_fd(),
            events,
            revents: 0,
        };
        let reads = self.outputs.iter().filter_map(|stream| stream.fd.as_ref());
        let mut polls: Vec<_> = reads.map(|fd| poll(fd, libc::POLLIN)).collect();
        polls.extend(self.stdin.as_ref().map(|fd| poll(fd, libc::POLLOUT)));
        crate::handle::poll_any(&mut polls, self.left())
    }

    /// A child that does not read its input (EPIPE) is not an error: its status reports the result.
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

    /// The streams have ended; the child may still be running.
    fn wait_in_time(&mut self) -> Result<Option<Error>, Error> {
        let Some(left) = self.left() else { return Ok(None) };
        let ended = self.child.wait_timeout(left)?;
        Ok(ended.is_none().then(|| self.timed_out()))
    }

    /// A child that may not be killed (it has become another user) is not waited for: that could take for ever.
    fn stop(&mut self) -> Result<(), Error> {
        if self.child.has_own_group() {
            let _ = self.child.signal_group(libc::SIGKILL);
        }
        self.child.kill()
    }

    fn timed_out(&self) -> Error {
        let pid = self.child.id();
        let timeout = self.timeout.unwrap_or_default();
        Error::new(
            Stage::Timeout,
            libc::ETIMEDOUT,
            format!("run process {pid} within {timeout:?}"),
        )
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

/// A write to a pipe without a reader also sends SIGPIPE to the caller, whose disposition must not matter. The
/// signal is blocked during the write and removed, so the caller never sees it.
fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let quiet = crate::guards::PipeSignalHeld::new();
    // SAFETY: the bytes are borrowed, with their length.
    let result = unsafe { syscall!(SYS_write, fd.as_raw_fd(), bytes.as_ptr(), bytes.len()) };
    if result == Err(libc::EPIPE) {
        quiet.take_back();
    }
    result
}

pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    // SAFETY: integers.
    unsafe {
        let flags = syscall!(SYS_fcntl, fd.as_raw_fd(), libc::F_GETFL)?;
        syscall!(
            SYS_fcntl,
            fd.as_raw_fd(),
            libc::F_SETFL,
            flags | libc::O_NONBLOCK as usize
        )
        .map(drop)
    }
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
