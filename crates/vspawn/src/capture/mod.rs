//! Runs a command and captures its output. Input, output and error are transferred at the same
//! time, so that no full pipe can block the child. A limit on the size and a timeout are optional.

pub(crate) mod exchange;

use std::process::Output;
use std::time::Duration;

use self::exchange::{Captured, Exchange};
use crate::command::Command;
use crate::error::Error;
use crate::process::Child;
use crate::stdio::Source;

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

    /// Limits standard output and standard error to this number of bytes each. A child that writes
    /// more is killed (with its group, if it has its own).
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

    /// Limits the time until the streams and the child have ended. After this time, the child is
    /// killed (with its group, if it has its own).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut command = vspawn::Command::new("sleep");
    /// let error = command.arg("60").capture().timeout(Duration::from_millis(20)).run().unwrap_err();
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
    /// The same as [`Command::output`]; [`Stage::Timeout`](crate::Stage::Timeout) with `ETIMEDOUT`,
    /// [`Stage::Limit`](crate::Stage::Limit) with `EMSGSIZE`.
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

    /// Runs the command. Returns what was read, even if the child was killed because it exceeded
    /// the timeout or the limit.
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
        let mut command = self.command.with_captured_streams();
        if self.input.is_some() {
            command.fds.insert(0, Source::Piped);
        }
        let child = command.spawn()?;
        Exchange::new(child, self.input.unwrap_or_default(), self.limit, self.timeout).finish()
    }
}

impl Command {
    /// Starts the process, reads its standard output and error to their ends, and waits for it. As
    /// with std, these are piped and its standard input is empty, unless the command says
    /// otherwise. For input, limits or a timeout, see [`Command::capture`].
    ///
    /// # Errors
    /// The same as [`Command::spawn`] and [`Child::wait`], and
    /// [`Stage::Communicate`](crate::Stage::Communicate).
    ///
    /// ```
    /// let output = vspawn::Command::new("sh").args(["-c", "echo out; echo error >&2"]).output()?;
    /// assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"error\n"[..]));
    /// # Ok::<(), vspawn::Error>(())
    /// ```
    pub fn output(&mut self) -> Result<Output, Error> {
        self.capture().run()
    }

    /// Prepares to run the command like [`Command::output`], but with input, a limit on the output,
    /// or a timeout. See [`Capture`].
    pub fn capture(&self) -> Capture<'_> {
        Capture::new(self)
    }

    /// Returns the command with the streams of [`Command::output`].
    pub(crate) fn with_captured_streams(&self) -> Command {
        let mut command = self.clone();
        for (target, default) in [(0, Source::Null), (1, Source::Piped), (2, Source::Piped)] {
            command.fds.entry(target).or_insert(default);
        }
        command
    }
}

impl Child {
    /// Closes the child's standard input, reads its piped standard output and error to their ends
    /// at the same time, and waits for it.
    ///
    /// # Errors
    /// The same as [`Child::wait`], and [`Stage::Communicate`](crate::Stage::Communicate).
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
        let captured = Exchange::new(self, &[], usize::MAX, None).finish()?;
        Ok(Output { status: captured.status, stdout: captured.stdout, stderr: captured.stderr })
    }
}
