//! `run` in one call: starts a process, exchanges data with it and waits for it, without the GIL.

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use vspawn::Prepared;

use crate::exchange::{Progress, Streams};
use crate::failure::{exception, os_error};
use crate::request::Request;
use crate::values::deadline;
use crate::waiting::{WaitResult, pidfd, returncode, returncode_when_ended, wait_for_end};

/// Ctrl-C at a terminal reaches the child, too. The child then has this time to end by itself, as
/// with `subprocess`.
const GRACE: Duration = Duration::from_millis(250);

/// Return code, standard output, standard error, and whether the child was killed because of the
/// timeout.
type Completed<'py> = (i32, Option<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>, bool);

/// Runs a process to its end. The process is killed at the timeout, and if a signal handler raises
/// an exception.
#[pyfunction]
#[pyo3(signature = (args, input, timeout, stdin, stdout, stderr, **options))]
pub(crate) fn run<'py>(
    args: &Bound<'py, PyAny>,
    input: Option<PyBackedBytes>,
    timeout: Option<f64>,
    stdin: &Bound<'py, PyAny>,
    stdout: &Bound<'py, PyAny>,
    stderr: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Completed<'py>> {
    let Request { command, named } = Request::new(args, [stdin, stdout, stderr], options)?;
    let py = args.py();
    let prepared = command.prepare().map_err(|error| exception(py, &error, &named))?;
    // An invalid timeout is reported before anything is started.
    deadline(timeout)?;
    let started = py.detach(|| RunningChild::start(&prepared, input));
    let mut running = started.map_err(|error| exception(py, &error, &named))?;
    let deadline = deadline(timeout)?;
    // A signal may have arrived while the child was started.
    let mut pause = Ok(Pause::Interrupted);
    loop {
        match pause {
            Ok(Pause::Ended(code)) => return Ok(running.completed(py, code, false)),
            Ok(Pause::TimedOut) => {
                let code = py.detach(|| running.kill()).map_err(os_error)?;
                return Ok(running.completed(py, code, true));
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
    TimedOut,
    Interrupted,
}

struct RunningChild {
    child: vspawn::Child,
    streams: Streams,
}

impl RunningChild {
    fn start(command: &Prepared, input: Option<PyBackedBytes>) -> Result<RunningChild, vspawn::Error> {
        let mut child = command.spawn()?;
        if input.as_ref().is_none_or(|input| input.is_empty()) {
            child.stdin = None;
        }
        let streams = Streams::new(
            child.stdin.as_ref().map(AsRawFd::as_raw_fd),
            input,
            child.stdout.as_ref().map(AsRawFd::as_raw_fd),
            child.stderr.as_ref().map(AsRawFd::as_raw_fd),
        );
        Ok(RunningChild { child, streams })
    }

    fn advance(&mut self, deadline: Option<Instant>) -> Result<Pause, i32> {
        loop {
            match self.streams.advance(deadline)? {
                Progress::Done => break,
                Progress::InputDone => self.child.stdin = None,
                Progress::TimedOut => return Ok(Pause::TimedOut),
                Progress::Interrupted => return Ok(Pause::Interrupted),
            }
        }
        if deadline.is_none() {
            let code = returncode_when_ended(&mut self.child).map_err(|error| error.raw_os_error())?;
            return Ok(code.map_or(Pause::Interrupted, Pause::Ended));
        }
        match wait_for_end(pidfd(&self.child), deadline)? {
            WaitResult::TimedOut => return Ok(Pause::TimedOut),
            WaitResult::Interrupted => return Ok(Pause::Interrupted),
            WaitResult::Ready => {}
        }
        let code = returncode(&mut self.child).map_err(|error| error.raw_os_error())?;
        Ok(code.map_or(Pause::Interrupted, Pause::Ended))
    }

    fn abort(&mut self, grace: bool) {
        if grace {
            let _ = wait_for_end(pidfd(&self.child), Instant::now().checked_add(GRACE));
        }
        let _ = self.kill();
    }

    /// Kills the child and waits for it. Does not wait for a child that may not be killed (because
    /// it now runs as another user).
    fn kill(&mut self) -> Result<i32, i32> {
        self.child.kill().map_err(|error| error.raw_os_error())?;
        let _ = self.child.wait();
        Ok(returncode(&mut self.child).ok().flatten().unwrap_or_default())
    }

    fn completed<'py>(&self, py: Python<'py>, code: i32, timed_out: bool) -> Completed<'py> {
        let [stdout, stderr] = self.streams.outputs().map(|output| {
            let bytes = output.bytes.as_ref();
            bytes.map(|bytes| PyBytes::new(py, bytes))
        });
        (code, stdout, stderr, timed_out)
    }
}
