//! The search for a command in PATH, for the cases in which dash and bash agree. In all others, the
//! shell searches.

use libc::{S_IFMT, S_IFREG, X_OK, c_char};

use crate::strings::{PathBuffer, status_of};

/// Finds a command's program. Returns whether it was found and may be executed.
pub fn find(command: &[u8], path: Option<&[u8]>, found: &mut PathBuffer) -> bool {
    if command.contains(&b'/') {
        return found.set(&[command]) && is_executable(found.as_ptr()) == Ok(true);
    }
    let Some(path) = path.filter(|path| !path.contains(&b'%')) else { return false };
    for directory in path.split(|byte| *byte == b':') {
        // dash and bash treat empty and relative directories and `~` differently. After a trailing
        // slash, the path that bash stores in `_` differs.
        if directory.first() != Some(&b'/')
            || directory.last() == Some(&b'/')
            || !found.set(&[directory, b"/", command])
        {
            return false;
        }
        match is_executable(found.as_ptr()) {
            Ok(true) => return true,
            Err(libc::ENOENT | libc::ENOTDIR) => {}
            // The file exists but cannot be executed. Depending on the shell, it continues the
            // search or reports the file.
            Ok(false) | Err(_) => return false,
        }
    }
    false
}

fn is_executable(path: *const c_char) -> Result<bool, i32> {
    let status = status_of(path)?;
    // SAFETY: `path` is a C string.
    Ok(status.st_mode & S_IFMT == S_IFREG && unsafe { libc::access(path, X_OK) } == 0)
}
