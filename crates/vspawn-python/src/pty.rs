//! Pseudo-terminals, as numbers of descriptors that the Python code owns.

use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd, RawFd};

use pyo3::prelude::*;
use vspawn::pty::{Pty, Size};

use crate::failure::{NamedObjects, exception};

fn to_exception(py: Python<'_>, error: &vspawn::Error) -> PyErr {
    exception(py, error, &NamedObjects::default())
}

/// Wraps a pseudo-terminal that the Python code owns. A negative number is a ValueError.
fn borrow_pty(fd: RawFd) -> PyResult<ManuallyDrop<Pty>> {
    if fd < 0 {
        return Err(pyo3::exceptions::PyValueError::new_err("negative file descriptor"));
    }
    // SAFETY: not negative, and never closed here.
    Ok(ManuallyDrop::new(Pty::from(unsafe { OwnedFd::from_raw_fd(fd) })))
}

/// Creates a pseudo-terminal.
#[pyfunction]
pub(crate) fn open_pty(py: Python<'_>, rows: u16, columns: u16) -> PyResult<RawFd> {
    let pty = Pty::open(Size::new(rows, columns)).map_err(|error| to_exception(py, &error))?;
    Ok(pty.into_raw_fd())
}

/// Opens the terminal of a pseudo-terminal. Returns a new descriptor.
#[pyfunction]
pub(crate) fn open_terminal(py: Python<'_>, pty: RawFd) -> PyResult<RawFd> {
    let terminal = borrow_pty(pty)?.terminal().map_err(|error| to_exception(py, &error))?;
    Ok(terminal.into_raw_fd())
}

/// Returns the number of rows and columns.
#[pyfunction]
pub(crate) fn pty_size(py: Python<'_>, pty: RawFd) -> PyResult<(u16, u16)> {
    let size = borrow_pty(pty)?.size().map_err(|error| to_exception(py, &error))?;
    Ok((size.rows, size.columns))
}

/// Sets the number of rows and columns.
#[pyfunction]
pub(crate) fn resize_pty(py: Python<'_>, pty: RawFd, rows: u16, columns: u16) -> PyResult<()> {
    let resized = borrow_pty(pty)?.resize(Size::new(rows, columns));
    resized.map_err(|error| to_exception(py, &error))
}
