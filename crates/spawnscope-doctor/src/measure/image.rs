//! Programs to launch, prepared before the fork so that nothing is allocated after it.

use std::ffi::{CStr, CString, OsStr};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::c_path;
use spawnscope_system::ExecStrings;

/// A program with its arguments and environment, as execve takes them.
pub(super) struct Image {
    path: CString,
    arguments: ExecStrings,
    environment: ExecStrings,
}

impl Image {
    /// Prepares a program without arguments; returns `None` if any string contains a NUL.
    pub(super) fn new<'e>(path: &Path, variables: impl Iterator<Item = (&'e OsStr, &'e OsStr)>) -> Option<Image> {
        let path = c_path(path)?;
        Some(Image {
            arguments: ExecStrings::new(vec![path.clone()]),
            environment: ExecStrings::environment(variables)?,
            path,
        })
    }

    pub(super) fn path(&self) -> &CStr {
        &self.path
    }

    /// Executes the program, or exits with status 127.
    pub(super) fn execute(&self) -> ! {
        // SAFETY: all pointers point to strings owned by `self`, and both lists end with NULL.
        unsafe {
            libc::execve(self.path.as_ptr(), self.arguments.as_ptr(), self.environment.as_ptr());
            libc::_exit(127)
        }
    }
}

/// Creates an executable file; returns `false` on failure. Makes system calls only.
pub(super) fn write(path: &CStr, content: &[u8]) -> bool {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o755));
    file.is_ok_and(|file| rustix::io::write(&file, content) == Ok(content.len()))
}
