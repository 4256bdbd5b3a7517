//! Arguments and environments in the form that `execve` needs, prepared before a fork so that nothing is allocated after it.

use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;

/// A list of C strings with a null-terminated array of pointers to them.
#[derive(Debug)]
pub struct ExecStrings {
    pointers: Vec<*const c_char>,
    /// The strings that the pointers refer to. Moving a CString does not move its heap buffer.
    _strings: Vec<CString>,
}

impl ExecStrings {
    /// Creates the list, in the order of `strings`.
    #[must_use]
    pub fn new(strings: Vec<CString>) -> ExecStrings {
        let pointers = strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
        ExecStrings { pointers, _strings: strings }
    }

    /// Creates the list for an environment of these variables; `None` if a string contains a NUL.
    pub fn environment<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Option<ExecStrings> {
        let strings = variables
            .into_iter()
            .map(|(name, value)| CString::new([name.as_ref().as_bytes(), b"=", value.as_ref().as_bytes()].concat()));
        strings.collect::<Result<_, _>>().ok().map(ExecStrings::new)
    }

    /// Returns the address of the array, which is valid as long as `self`.
    #[must_use]
    pub fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}
