//! Finds a command's program in PATH, in the cases in which dash and bash agree (in all others, the
//! shell searches), and recognizes programs by the first bytes of their file.

use libc::c_char;

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
    Ok(status.st_mode & libc::S_IFMT == libc::S_IFREG && unsafe { libc::access(path, libc::X_OK) } == 0)
}

pub fn is_elf(path: *const c_char) -> bool {
    read_head(path).is_some_and(|head| head == *b"\x7fELF")
}

/// Whether a file begins as a program or a script does, so that an exec is expected to succeed.
pub fn is_program(path: *const c_char) -> bool {
    read_head(path).is_some_and(|head| head == *b"\x7fELF" || head.starts_with(b"#!"))
}

fn read_head(path: *const c_char) -> Option<[u8; 4]> {
    let mut head = [0_u8; 4];
    // SAFETY: `path` is a C string, the buffer has four bytes, and the descriptor is this
    // function's own.
    let count = unsafe {
        let descriptor = libc::open(path, libc::O_RDONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return None;
        }
        let count = libc::read(descriptor, head.as_mut_ptr().cast(), head.len());
        libc::close(descriptor);
        count
    };
    (count == 4).then_some(head)
}
