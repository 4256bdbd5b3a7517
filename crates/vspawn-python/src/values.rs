//! Converts Python objects: paths and words, descriptors, users, times.

use std::ffi::OsString;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use vspawn::Stdio;

/// `subprocess.PIPE`.
const PIPE: RawFd = -1;
/// `subprocess.STDOUT`.
const STDOUT: RawFd = -2;
/// `subprocess.DEVNULL`.
const DEVNULL: RawFd = -3;

/// Accepts what `os.fsencode` accepts, and returns the same bytes.
pub(crate) fn fs_string(object: &Bound<'_, PyAny>) -> PyResult<OsString> {
    if object.is_instance_of::<PyString>() {
        return object.extract();
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(OsString::from_vec(bytes.as_bytes().to_vec()));
    }
    let bytes = object.py().import("os")?.call_method1("fsencode", (object,))?;
    Ok(OsString::from_vec(bytes.extract()?))
}

/// Returns the words of a command line. A single string is one word, because no shell splits it.
pub(crate) fn words<'py>(args: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if !args.is_instance_of::<PyList>() && !args.is_instance_of::<PyTuple>() {
        let is_one = args.is_instance_of::<PyString>() || args.is_instance_of::<PyBytes>();
        if is_one || args.hasattr("__fspath__")? {
            return Ok(vec![args.clone()]);
        }
    }
    let words: Vec<_> = args.try_iter()?.collect::<PyResult<_>>()?;
    if words.is_empty() {
        return Err(PyValueError::new_err("args is empty: it must begin with a program"));
    }
    Ok(words)
}

/// One of the three standard streams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Input,
    Output,
    Error,
}

/// Converts the value of `stdin`, `stdout` or `stderr`: a constant of `subprocess`, a number, or an
/// object with a `fileno()`. Returns `None` for None, the default: the child inherits the stream.
pub(crate) fn stdio(object: &Bound<'_, PyAny>, stream: Stream) -> PyResult<Option<Stdio>> {
    if object.is_none() {
        return Ok(None);
    }
    let Ok(number) = object.extract::<RawFd>() else {
        return file_number(object).map(Stdio::number).map(Some);
    };
    match number {
        PIPE => Ok(Some(Stdio::piped())),
        DEVNULL => Ok(Some(Stdio::null())),
        STDOUT if stream == Stream::Error => Ok(Some(Stdio::stdout())),
        STDOUT => Err(PyValueError::new_err("STDOUT can only be used for stderr")),
        _ => Ok(Some(Stdio::number(descriptor_number(object)?))),
    }
}

/// Returns the number of a descriptor, given as a number or an object with a `fileno()`.
pub(crate) fn file_number(object: &Bound<'_, PyAny>) -> PyResult<RawFd> {
    match object.extract::<RawFd>() {
        Ok(_) => descriptor_number(object),
        Err(_) => descriptor_number(&object.call_method0("fileno")?),
    }
}

/// Opens a directory, given as a path or an open descriptor.
pub(crate) fn directory(object: &Bound<'_, PyAny>) -> PyResult<OwnedFd> {
    if object.extract::<RawFd>().is_ok() || object.hasattr("fileno")? {
        // SAFETY: not negative; the caller keeps it open during the call.
        return Ok(unsafe { BorrowedFd::borrow_raw(file_number(object)?) }.try_clone_to_owned()?);
    }
    Ok(std::fs::File::open(fs_string(object)?)?.into())
}

/// Returns the number of a descriptor, which must not be negative.
pub(crate) fn descriptor_number(object: &Bound<'_, PyAny>) -> PyResult<RawFd> {
    let number: RawFd = object.extract()?;
    if number < 0 {
        let text = format!("a file descriptor cannot be negative ({number})");
        return Err(PyValueError::new_err(text));
    }
    Ok(number)
}

/// The Python function that looks up the name of a user or group.
pub(crate) struct NameLookup {
    pub(crate) module: &'static str,
    pub(crate) function: &'static str,
    pub(crate) field: &'static str,
}

pub(crate) const USERS: NameLookup = NameLookup { module: "pwd", function: "getpwnam", field: "pw_uid" };
pub(crate) const GROUPS: NameLookup = NameLookup { module: "grp", function: "getgrnam", field: "gr_gid" };

/// Returns the id of a user or group, given as a number or by name. An unknown name is a KeyError;
/// as with `subprocess`, a negative number is a ValueError, and one that is too large an
/// OverflowError.
pub(crate) fn id(object: &Bound<'_, PyAny>, names: &NameLookup) -> PyResult<u32> {
    let number: i64 = if object.is_instance_of::<PyString>() {
        let module = object.py().import(names.module)?;
        module.call_method1(names.function, (object,))?.getattr(names.field)?.extract()?
    } else {
        object.extract()?
    };
    let text = format!("{number} is not an id of a user or group");
    match u32::try_from(number) {
        // The kernel interprets the highest id as "no change".
        Ok(id) if id != u32::MAX => Ok(id),
        Err(_) if number > 0 => Err(PyOverflowError::new_err(text)),
        _ => Err(PyValueError::new_err(text)),
    }
}

/// Returns the id of a supplementary group. Like `id`, but a number that is too large is a
/// ValueError, as with `subprocess`.
pub(crate) fn supplementary_group(object: &Bound<'_, PyAny>) -> PyResult<u32> {
    id(object, &GROUPS).map_err(|error| match error.is_instance_of::<PyOverflowError>(object.py()) {
        true => PyValueError::new_err(format!("{object} is not an id of a group")),
        false => error,
    })
}

/// Returns the end of a timeout that starts now, or None for no timeout. A timeout that is too
/// large for the clock never ends.
pub(crate) fn deadline(seconds: Option<f64>) -> PyResult<Option<Instant>> {
    match seconds {
        None => Ok(None),
        Some(seconds) if seconds.is_nan() => Err(PyValueError::new_err("timeout is not a number")),
        Some(seconds) => {
            let timeout = Duration::try_from_secs_f64(seconds.max(0.0)).ok();
            Ok(timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
        }
    }
}
