//! Converts the core's errors to Python's exceptions, in the form of `subprocess`.

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use vspawn::{Error, Stage};

/// The objects that an exception may name, as the caller passed them.
#[derive(Default)]
pub(crate) struct NamedObjects {
    pub(crate) program: Option<Py<PyAny>>,
    pub(crate) cwd: Option<Py<PyAny>>,
}

impl NamedObjects {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> NamedObjects {
        let clone = |object: &Option<Py<PyAny>>| object.as_ref().map(|object| object.clone_ref(py));
        NamedObjects { program: clone(&self.program), cwd: clone(&self.cwd) }
    }
}

/// Converts an error. An invalid command is a ValueError. All other errors are an OSError (of the
/// class for its errno: FileNotFoundError, PermissionError, ...) with attributes `stage` and
/// `action`. Its `filename` is the program or the directory if one of these caused the failure;
/// otherwise, its text says which action failed.
pub(crate) fn exception(py: Python<'_>, error: &Error, named: &NamedObjects) -> PyErr {
    if error.stage() == Stage::Prepare {
        return PyValueError::new_err(format!("cannot {}", error.action()));
    }
    build_exception(py, error, named).unwrap_or_else(|failed| failed)
}

fn build_exception(py: Python<'_>, error: &Error, named: &NamedObjects) -> PyResult<PyErr> {
    let errno = error.raw_os_error();
    let text: String = py.import("os")?.call_method1("strerror", (errno,))?.extract()?;
    let filename = match error.stage() {
        Stage::Exec => named.program.as_ref(),
        Stage::Chdir => named.cwd.as_ref(),
        _ => None,
    };
    // OSError itself chooses the class for the errno.
    let class = py.get_type::<PyOSError>();
    let exception = match filename {
        Some(filename) => class.call1((errno, text, filename))?,
        None => class.call1((errno, format!("{text} (failed to {})", error.action())))?,
    };
    exception.setattr("stage", stage_name(error.stage()))?;
    exception.setattr("action", error.action())?;
    Ok(PyErr::from_value(exception))
}

/// Converts `CloseOthers` to `close_others`.
fn stage_name(stage: Stage) -> String {
    let mut name = String::new();
    for letter in format!("{stage:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// Converts the errno of a failed system call of this crate.
pub(crate) fn os_error(errno: i32) -> PyErr {
    std::io::Error::from_raw_os_error(errno).into()
}
