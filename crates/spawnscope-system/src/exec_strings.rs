//! Arguments and environments as `execve` takes them, prepared before a fork so that nothing is allocated after it.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// A list of strings: pointers, terminated by NULL.
#[derive(Debug)]
pub struct ExecStrings {
    pointers: Vec<*const c_char>,
    /// The strings that the pointers refer to. The heap buffer of a CString does not move with it.
    _strings: Vec<CString>,
}

impl ExecStrings {
    /// Takes the strings in this order.
    #[must_use]
    pub fn new(strings: Vec<CString>) -> ExecStrings {
        let pointers = strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect();
        ExecStrings {
            pointers,
            _strings: strings,
        }
    }

    /// An environment of these variables; `None` if a string contains a NUL.
    pub fn environment<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Option<ExecStrings> {
        let entry = |(name, value): (N, V)| [name.as_ref().as_bytes(), b"=", value.as_ref().as_bytes()].concat();
        let strings: Result<Vec<CString>, _> = variables
            .into_iter()
            .map(|variable| CString::new(entry(variable)))
            .collect();
        strings.ok().map(ExecStrings::new)
    }

    /// The address of the list, valid as long as `self`.
    #[must_use]
    pub fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}
