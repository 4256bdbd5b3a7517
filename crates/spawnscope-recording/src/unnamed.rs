//! Connects to a recording in a file without a name, such as a copy of standard input that is
//! opened as /dev/stdin. SQLite opens files only by their resolved names, so the file is mapped
//! into memory, and SQLite reads it there as a deserialized database.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::slice;

use rusqlite::{Connection, OpenFlags};

use super::header::SqliteHeader;

/// Connects to a file that no other program writes to.
pub(super) fn connect(file: &File) -> rusqlite::Result<Connection> {
    let bytes = map(file).map_err(to_sqlite_error)?;
    SqliteHeader::clear_log(bytes);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_in_memory_with_flags(flags)?;
    connection.deserialize_bytes("main", bytes)?;
    Ok(connection)
}

/// Wraps an error of the operating system as an error of SQLite.
pub(super) fn to_sqlite_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Maps a file into memory until the process ends. Changes to the memory do not reach the file.
fn map(file: &File) -> io::Result<&'static mut [u8]> {
    let length = file.metadata()?.len();
    let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    // SAFETY: a new private mapping at an address that the kernel chooses overlaps nothing that
    // Rust knows.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has `length` bytes and is never unmapped. The file has no name, and this
    // process does not write to it, so its length and its contents do not change.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), length) })
}
