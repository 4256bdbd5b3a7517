//! A started child, for `Popen` and asyncio: its pidfd, its status, and signals to it.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{NamedObjects, exception, os_error};
use crate::request::Request;
use crate::values::deadline;
use crate::waiting::{WaitResult, pidfd, returncode, wait_for_end};

/// Starts a process. Returns after the exec, or raises an exception if the exec or a step before it
/// failed.
#[pyfunction]
#[pyo3(signature = (args, stdin, stdout, stderr, **options))]
pub(crate) fn spawn(
    args: &Bound<'_, PyAny>,
    stdin: &Bound<'_, PyAny>,
    stdout: &Bound<'_, PyAny>,
    stderr: &Bound<'_, PyAny>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Child> {
    let Request { command, named } = Request::new(args, [stdin, stdout, stderr], options)?;
    let py = args.py();
    let prepared = command.prepare().map_err(|error| exception(py, &error, &named))?;
    let child = py.detach(|| prepared.spawn());
    let child = child.map_err(|error| exception(py, &error, &named))?;
    Ok(Child { pid: child.id(), pidfd: pidfd(&child), child: Mutex::new(child) })
}

/// A started child. The lock is never held during a wait.
#[pyclass(frozen, module = "vspawn._core")]
pub(crate) struct Child {
    #[pyo3(get)]
    pid: u32,
    pidfd: Option<RawFd>,
    child: Mutex<vspawn::Child>,
}

impl Child {
    fn lock(&self) -> MutexGuard<'_, vspawn::Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Child {
    /// Returns the number of the pidfd, or -1 if the kernel gave none. The pidfd stays open during
    /// the lifetime of this object.
    fn fileno(&self) -> RawFd {
        self.pidfd.unwrap_or(-1)
    }

    /// Returns the parent's ends of the pipes for stdin, stdout and stderr. The caller owns them
    /// from now on.
    fn take_pipes(&self) -> [Option<RawFd>; 3] {
        let mut child = self.lock();
        let ends = [
            child.stdin.take().map(OwnedFd::from),
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ];
        ends.map(|end| end.map(IntoRawFd::into_raw_fd))
    }

    /// Returns the return code if the child has ended.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        let ended = returncode(&mut self.lock());
        ended.map_err(|error| exception(py, &error, &NamedObjects::default()))
    }

    /// Waits until the child has ended, and returns its return code. Returns None if it has not
    /// ended within `timeout` seconds.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<i32>> {
        let deadline = deadline(timeout)?;
        loop {
            if let Some(code) = self.poll(py)? {
                return Ok(Some(code));
            }
            match py.detach(|| wait_for_end(self.pidfd, deadline)).map_err(os_error)? {
                WaitResult::Ready => {}
                WaitResult::TimedOut => return self.poll(py),
                WaitResult::Interrupted => py.check_signals()?,
            }
        }
    }

    /// Sends a signal. Does nothing if the child has ended and was waited for.
    fn send_signal(&self, py: Python<'_>, signal: i32) -> PyResult<()> {
        let sent = self.lock().signal(signal);
        match sent {
            Err(error) if error.raw_os_error() != libc::ESRCH => Err(exception(py, &error, &NamedObjects::default())),
            _ => Ok(()),
        }
    }
}
