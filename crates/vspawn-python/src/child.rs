//! A prepared command, and a child that it has started: its pidfd, its status, and signals to it.

use std::os::fd::{IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyDict;

use crate::failure::{NamedObjects, exception, os_error};
use crate::request::Request;
use crate::run::{Completed, Ends, run};
use crate::values::deadline;
use crate::waiting::{WaitResult, pidfd, returncode, wait_for_end};

/// A command that is ready to be started any number of times, by any number of threads.
#[pyclass(frozen, module = "vspawn._core")]
pub(crate) struct Prepared {
    pub(crate) command: vspawn::Prepared,
    pub(crate) named: NamedObjects,
}

impl Prepared {
    pub(crate) fn new(py: Python<'_>, Request { command, named }: Request) -> PyResult<Prepared> {
        let command = command.prepare().map_err(|error| exception(py, &error, &named))?;
        Ok(Prepared { command, named })
    }
}

#[pymethods]
impl Prepared {
    #[new]
    #[pyo3(signature = (args, stdin, stdout, stderr, **options))]
    fn from_arguments(
        args: &Bound<'_, PyAny>,
        stdin: &Bound<'_, PyAny>,
        stdout: &Bound<'_, PyAny>,
        stderr: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Prepared> {
        Prepared::new(args.py(), Request::new(args, [stdin, stdout, stderr], options)?)
    }

    /// Starts a process. Returns after the exec, or raises an exception if the exec or a step
    /// before it failed. With `nowait`, returns at once, and the first poll or wait raises the
    /// exception.
    #[pyo3(signature = (nowait = false))]
    fn spawn(&self, py: Python<'_>, nowait: bool) -> PyResult<Child> {
        let child = py.detach(|| if nowait { self.command.spawn_nowait() } else { self.command.spawn() });
        let child = child.map_err(|error| exception(py, &error, &self.named))?;
        let named = self.named.clone_ref(py);
        Ok(Child { pid: child.id(), pidfd: pidfd(&child), named, child: Mutex::new(child) })
    }

    /// Runs a process to its end: see `run`.
    #[pyo3(signature = (input, timeout, limit = None, kill_tree = false))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        input: Option<PyBackedBytes>,
        timeout: Option<f64>,
        limit: Option<usize>,
        kill_tree: bool,
    ) -> PyResult<Completed<'py>> {
        run(py, self, input, timeout, Ends::new(limit, kill_tree))
    }
}

/// A started child. The lock is never held during a wait.
#[pyclass(frozen, module = "vspawn._core")]
pub(crate) struct Child {
    #[pyo3(get)]
    pid: u32,
    pidfd: Option<RawFd>,
    named: NamedObjects,
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
        ended.map_err(|error| exception(py, &error, &self.named))
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

    /// Kills the child and all its descendants, and returns the number of descendants.
    fn kill_tree(&self, py: Python<'_>) -> PyResult<usize> {
        let killed = py.detach(|| self.lock().kill_tree());
        killed.map_err(|error| exception(py, &error, &NamedObjects::default()))
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
