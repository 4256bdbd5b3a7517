//! `run` in one call: starts a process, exchanges data with it and waits for it, without the GIL.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::child::Prepared;
use crate::exchange::{Progress, Streams};
use crate::failure::{exception, os_error};
use crate::request::Request;
use crate::values::deadline;
use crate::waiting::{WaitResult, pidfd, returncode, returncode_when_ended, wait_for_end};

/// Ctrl-C at a terminal reaches the child, too. The child then has this time to end by itself, as
/// with `subprocess`.
const GRACE: Duration = Duration::from_millis(250);

/// Why a child was killed at its deadline.
const TIMEOUT: &str = "timeout";

/// Return code, standard output, standard error, and why the child was killed: `"timeout"` or
/// `"limit"`.
pub(crate) type Completed<'py> = (i32, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, Option<&'static str>);

/// When and how a child is killed, besides the timeout.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    /// The number of bytes that each output may have.
    pub(crate) limit: usize,
    /// Whether its descendants are killed, too.
    pub(crate) kill_tree: bool,
}

impl Ends {
    pub(crate) fn new(limit: Option<usize>, kill_tree: bool) -> Ends {
        Ends { limit: limit.unwrap_or(usize::MAX), kill_tree }
    }
}

/// Runs a command to its end: in one call, because the conversions of a second one take longer than
/// those of all arguments.
#[pyfunction]
#[pyo3(name = "run", signature = (args, stdin, stdout, stderr, input, timeout, limit, kill_tree, options, /))]
#[expect(clippy::too_many_arguments, reason = "those of subprocess.run")]
pub(crate) fn run_once<'py>(
    args: &Bound<'py, PyAny>,
    stdin: &Bound<'py, PyAny>,
    stdout: &Bound<'py, PyAny>,
    stderr: &Bound<'py, PyAny>,
    input: Option<PyBackedBytes>,
    timeout: Option<f64>,
    limit: Option<usize>,
    kill_tree: bool,
    options: &Bound<'py, PyDict>,
) -> PyResult<Completed<'py>> {
    let mut request = Request::new(args, [stdin, stdout, stderr], Some(options))?;
    // Only a wait with a timeout needs the pidfd. As in subprocess, the pid identifies the child.
    request.command.with_pidfd(timeout.is_some());
    let prepared = Prepared::new(args.py(), request)?;
    run(args.py(), &prepared, input, timeout, Ends::new(limit, kill_tree))
}

/// Runs a process to its end. The process is killed at the timeout, at the limit, and if a signal
/// handler raises an exception.
pub(crate) fn run<'py>(
    py: Python<'py>,
    prepared: &Prepared,
    input: Option<PyBackedBytes>,
    timeout: Option<f64>,
    ends: Ends,
) -> PyResult<Completed<'py>> {
    // An invalid timeout is reported before anything is started.
    deadline(timeout)?;
    let started = py.detach(|| RunningChild::start(&prepared.command, input, ends));
    let mut running = started.map_err(|error| exception(py, &error, &prepared.named))?;
    let deadline = deadline(timeout)?;
    // A signal may have arrived while the child was started.
    let mut pause = Ok(Pause::Interrupted);
    loop {
        match pause {
            Ok(Pause::Ended(code)) => return Ok(running.completed(py, code, None)),
            Ok(Pause::Cut(reason)) => {
                let code = py.detach(|| running.kill()).map_err(os_error)?;
                return Ok(running.completed(py, code, Some(reason)));
            }
            Ok(Pause::Interrupted) => {
                if let Err(raised) = py.check_signals() {
                    let grace = raised.is_instance_of::<PyKeyboardInterrupt>(py);
                    py.detach(|| running.abort(grace));
                    return Err(raised);
                }
                pause = py.detach(|| running.advance(deadline));
            }
            Err(errno) => {
                let _ = py.detach(|| running.kill());
                return Err(os_error(errno));
            }
        }
    }
}

/// Why the wait for a child paused.
enum Pause {
    Ended(i32),
    /// The child has to be killed, for this reason.
    Cut(&'static str),
    Interrupted,
}

struct RunningChild {
    child: vspawn::Child,
    streams: Streams,
    kill_tree: bool,
}

impl RunningChild {
    fn start(
        command: &vspawn::Prepared,
        input: Option<PyBackedBytes>,
        ends: Ends,
    ) -> Result<RunningChild, vspawn::Error> {
        let mut child = command.spawn()?;
        if input.as_ref().is_none_or(|input| input.is_empty()) {
            child.stdin = None;
        }
        let streams = Streams::new(
            child.stdin.as_ref().map(AsRawFd::as_raw_fd),
            input,
            child.stdout.as_ref().map(AsRawFd::as_raw_fd),
            child.stderr.as_ref().map(AsRawFd::as_raw_fd),
            ends.limit,
        );
        Ok(RunningChild { child, streams, kill_tree: ends.kill_tree })
    }

    fn advance(&mut self, deadline: Option<Instant>) -> Result<Pause, i32> {
        loop {
            match self.streams.advance(deadline)? {
                Progress::Done => break,
                Progress::InputDone => self.child.stdin = None,
                Progress::TimedOut => return Ok(Pause::Cut(TIMEOUT)),
                Progress::TooLarge => return Ok(Pause::Cut("limit")),
                Progress::Interrupted => return Ok(Pause::Interrupted),
            }
        }
        if deadline.is_none() {
            let code = returncode_when_ended(&mut self.child).map_err(|error| error.raw_os_error())?;
            return Ok(code.map_or(Pause::Interrupted, Pause::Ended));
        }
        match wait_for_end(pidfd(&self.child), deadline)? {
            WaitResult::TimedOut => return Ok(Pause::Cut(TIMEOUT)),
            WaitResult::Interrupted => return Ok(Pause::Interrupted),
            WaitResult::Ready => {}
        }
        let code = returncode(&mut self.child).map_err(|error| error.raw_os_error())?;
        Ok(code.map_or(Pause::Interrupted, Pause::Ended))
    }

    fn abort(&mut self, grace: bool) {
        if grace {
            let _ = self.child.wait_timeout(GRACE);
        }
        let _ = self.kill();
    }

    /// Kills the child and waits for it. Does not wait for a child that may not be killed (because
    /// it now runs as another user).
    fn kill(&mut self) -> Result<i32, i32> {
        let killed = if self.kill_tree { self.child.kill_tree().map(drop) } else { self.child.kill() };
        killed.map_err(|error| error.raw_os_error())?;
        let _ = self.child.wait();
        Ok(returncode(&mut self.child).ok().flatten().unwrap_or_default())
    }

    fn completed<'py>(&self, py: Python<'py>, code: i32, cut: Option<&'static str>) -> Completed<'py> {
        let [stdout, stderr] = self.streams.outputs.each_ref().map(|output| {
            let bytes = output.bytes.as_ref();
            bytes.map(|bytes| PyBytes::new(py, &bytes[..bytes.len().min(self.streams.limit)]))
        });
        (code, stdout, stderr, cut)
    }
}
