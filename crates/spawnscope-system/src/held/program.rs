//! Finds the command's file as a shell does, so that "not found" and "cannot be executed" are distinguished before a process is created.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::StartError;

/// The search path if PATH is unset: the C library's default, preceded by the usual directory for local programs.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the file that `command` refers to. If there is none, the error concerns the last file in PATH that exists but cannot be executed, if
/// there is such a file.
pub(super) fn find(command: &OsStr) -> Result<PathBuf, StartError> {
    if command.as_bytes().contains(&b'/') {
        return check(Path::new(command), command).map(|()| PathBuf::from(command));
    }
    let mut outcome = StartError::NotFound(command.to_string_lossy().into_owned());
    if command.is_empty() {
        return Err(outcome);
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    for directory in std::env::split_paths(&search) {
        // An empty entry means the working directory.
        let path = Path::new(".").join(directory).join(command);
        match check(&path, command) {
            Ok(()) => return Ok(path.strip_prefix("./").map(Path::to_path_buf).unwrap_or(path)),
            Err(StartError::NotFound(_)) => {}
            Err(error) => outcome = error,
        }
    }
    Err(outcome)
}

/// Checks that the file can be executed. Errors contain the name `command`.
fn check(path: &Path, command: &OsStr) -> Result<(), StartError> {
    check_access(path).map_err(|error| {
        let name = command.to_string_lossy().into_owned();
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => StartError::NotFound(name),
            _ => StartError::NotExecutable(name, error),
        }
    })
}

fn check_access(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(access(path, AccessFlags::X_OK)?)
}
