//! Finds the command's file as a shell does, so that "not found" and "cannot be executed" are
//! distinguished before a process is created.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::StartError;

/// The search path if PATH is unset: the C library's default, preceded by the usual directory for
/// local programs.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns the file that `command` refers to. If there is none, the error concerns the last file in
/// PATH that exists but cannot be executed, if there is such a file.
pub fn find_program(command: &OsStr) -> Result<PathBuf, StartError> {
    if command.as_bytes().contains(&b'/') {
        let path = Path::new(command);
        return check_access(path).map(|()| path.to_owned()).map_err(|error| start_error(command, error));
    }
    let mut outcome = StartError::NotFound(command.to_string_lossy().into_owned());
    if command.is_empty() {
        return Err(outcome);
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| OsString::from(DEFAULT_PATH));
    for directory in std::env::split_paths(&search) {
        // An empty entry means the working directory.
        let path = Path::new(".").join(directory).join(command);
        match check_access(&path) {
            Ok(()) => return Ok(path.strip_prefix("./").map(Path::to_path_buf).unwrap_or(path)),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::NotFound) => {}
            Err(error) => outcome = start_error(command, error),
        }
    }
    Err(outcome)
}

fn start_error(command: &OsStr, error: io::Error) -> StartError {
    let name = command.to_string_lossy().into_owned();
    match error.kind() {
        io::ErrorKind::NotFound => StartError::NotFound(name),
        _ => StartError::NotExecutable(name, error),
    }
}

fn check_access(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    Ok(access(path, AccessFlags::X_OK)?)
}
