//! A started child, for `Popen` and asyncio: its pidfd, its status, signals to it.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::{Named, exception, os_error};
use crate::request::Request;
use crate::values::deadline;
use crate::waiting::{Waited, pidfd, returncode, wait_for_end};

/// Starts a process. Returns after its exec, or raises the reason of its failure.
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
    Ok(Child {
        pid: child.id(),
        pidfd: pidfd(&child),
        child: Mutex::new(child),
    })
}

/// The lock is never held during a wait.
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
    /// The pidfd's number. It stays open during the lifetime of this object. -1: the kernel gave none.
    fn fileno(&self) -> RawFd {
        self.pidfd.unwrap_or(-1)
    }

    /// The parent's ends of the pipes for stdin, stdout, stderr. The caller owns them from now on.
    fn take_pipes(&self) -> [Option<RawFd>; 3] {
        let mut child = self.lock();
        let number = |fd: OwnedFd| fd.into_raw_fd();
        [
            child.stdin.take().map(OwnedFd::from).map(number),
            child.stdout.take().map(OwnedFd::from).map(number),
            child.stderr.take().map(OwnedFd::from).map(number),
        ]
    }

    /// The return code if it has ended.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        let ended = returncode(&mut self.lock());
        ended.map_err(|error| exception(py, &error, &Named::default()))
    }

    /// The return code when the child has ended; None if it has not ended within this time.
    #[pyo3(signature = (timeout = None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<i32>> {
        let deadline = deadline(timeout)?;
        loop {
            if let Some(code) = self.poll(py)? {
                return Ok(Some(code));
            }
            match py.detach(|| wait_for_end(self.pidfd, deadline)).map_err(os_error)? {
                Waited::Ready => {}
                Waited::TimedOut => return self.poll(py),
                Waited::Interrupted => py.check_signals()?,
            }
        }
    }

    /// Does nothing if the child has ended and was waited for.
    fn send_signal(&self, py: Python<'_>, signal: i32) -> PyResult<()> {
        let sent = self.lock().signal(signal);
        match sent {
            Err(error) if error.raw_os_error() != libc::ESRCH => Err(exception(py, &error, &Named::default())),
            _ => Ok(()),
        }
    }
}
