//! Marks a recording as being written. A second recorder then refuses the file, and a report can
//! distinguish a live recording from one that was cut off. The kernel removes the mark when the
//! recorder dies.
//!
//! The mark is an open-file-description lock on a byte after those that SQLite locks (its locking
//! page begins at 1 GiB). Unlike flock, it never conflicts with SQLite's own locks, whatever the
//! file system.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

/// The offset of the byte that is locked.
const MARKED_BYTE: i64 = 0x4000_0400;

/// Marks the file for as long as `file` is open. Returns `false` if another recorder has marked it.
pub(super) fn claim(file: &File) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock())) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a recorder is writing the file. Returns `false` on file systems without locks.
pub(super) fn is_claimed(file: &File) -> bool {
    let mut lock = lock();
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok() && i32::from(lock.l_type) != libc::F_UNLCK
}

fn lock() -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: MARKED_BYTE,
        l_len: 1,
        l_pid: 0,
    }
}
