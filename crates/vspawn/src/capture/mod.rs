//! Runs a command and captures its output. Input, output and error are transferred at the same time, so that no full pipe can
//! block the child. A limit on the size and a timeout are optional.

pub(crate) mod exchange;

use std::io::ErrorKind;
use std::process::{ExitStatus, Output};
use std::time::Duration;

use self::exchange::Exchange;
use crate::command::Command;
use crate::error::Error;
use crate::process::Child;
use crate::stdio::Source;

const CHUNK_BYTES: usize = 64 * 1024;

/// A command whose output is captured.
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
    /// The exit status: that of a killed process if the child exceeded the timeout or the limit.
    pub status: ExitStatus,
    /// What was read from standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// What was read from standard error, up to the limit.
    pub stderr: Vec<u8>,
    /// Why the child was killed: an error with [`Stage::Timeout`] or [`Stage::Limit`]. `None` if it was not.
    pub cut: Option<Error>,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(command: &'a Command) -> Capture<'a> {
        Capture { command, input: None, limit: usize::MAX, timeout: None }
    }

    /// Sets the bytes that are written to the child's standard input, which is closed afterwards.
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

    /// Limits standard output and standard error to this number of bytes each. A child that writes more is killed (with its group, if it
    /// has its own).
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

    /// Runs the command. It is an error if the child exceeds the timeout or the limit.
    ///
    /// # Errors
    /// The same as [`Command::output`]; [`Stage::Timeout`] with `ETIMEDOUT`, [`Stage::Limit`] with `EMSGSIZE`.
    ///
    /// ```
    /// assert_eq!(vspawn::Command::new("cat").capture().input(b"text").run()?.stdout, b"text");
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn run(self) -> Result<Output, Error> {
        let captured = self.run_to_any_end()?;
        match captured.cut {
            Some(error) => Err(error),
            None => Ok(Output { status: captured.status, stdout: captured.stdout, stderr: captured.stderr }),
        }
    }

    /// Runs the command. Returns what was read, even if the child was killed because it exceeded the timeout or the limit.
    ///
    /// # Errors
    /// The same as [`Command::output`].
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
        if self.input.is_some() {
            command.fds.insert(0, Source::Piped);
        }
        for (target, default) in [(0, Source::Null), (1, Source::Piped), (2, Source::Piped)] {
            command.fds.entry(target).or_insert(default);
        }
        let child = command.spawn()?;
        Exchange::new(child, &self).finish()
    }
}

impl Child {
    /// Closes the child's standard input, reads its piped standard output and error to their ends at the same time, and waits for it.
    ///
    /// # Errors
    /// The same as [`Child::wait`], and [`Stage::Communicate`].
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
        Ok(Output { status: captured.status, stdout: captured.stdout, stderr: captured.stderr })
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
