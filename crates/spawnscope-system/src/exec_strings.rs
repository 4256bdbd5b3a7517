//! Arguments and environments in the form that `execve` needs, prepared before a fork so that
//! nothing is allocated after it.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;

/// A list of C strings with a null-terminated array of pointers to them.
#[derive(Debug)]
pub struct ExecStrings {
    pointers: Vec<*const c_char>,
    /// The strings that the pointers refer to. Moving a CString does not move its heap buffer.
    _strings: Vec<CString>,
}

impl ExecStrings {
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

    /// Creates the list for our environment with these variables set; `None` if a string contains a
    /// NUL. All other entries keep their order, duplicates included, even if they are not
    /// variables.
    pub fn own_environment_with<'a>(
        variables: impl IntoIterator<Item = &'a (OsString, OsString)>,
    ) -> Option<ExecStrings> {
        let mut entries = own_environment();
        for (name, value) in variables {
            let start = [name.as_bytes(), b"="].concat();
            entries.retain(|entry| !entry.as_bytes().starts_with(&start));
            entries.push(CString::new([&start, value.as_bytes()].concat()).ok()?);
        }
        Some(ExecStrings::new(entries))
    }

    /// Returns the address of the array, which is valid as long as `self`.
    pub fn as_ptr(&self) -> *const *const c_char {
        self.pointers.as_ptr()
    }
}

/// Returns all entries of our environment. `std::env::vars_os` omits those without `=` and those
/// with an empty name.
fn own_environment() -> Vec<CString> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    let mut entries = Vec::new();
    // SAFETY: the array ends with NULL, and its strings end with NUL. Nothing changes the
    // environment, because the standard library requires this of every thread.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            entries.push(CStr::from_ptr(*entry).to_owned());
            entry = entry.add(1);
        }
    }
    entries
}
