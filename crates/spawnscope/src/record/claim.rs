//! Marks a recording as being written, so that a second recorder does not take it and a report can tell a recording that
//! goes on from one that was cut off. The kernel lifts the mark when the recorder dies.
//!
//! The mark is an open-file-description lock on a byte behind those that SQLite locks (its locking page begins at 1 GiB):
//! unlike flock it cannot meet SQLite's own locks, on any file system.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

const MARKED_BYTE: i64 = 0x4000_0400;

/// Marks the file as long as `file` is open; `false` when another recorder has.
pub(super) fn claim(file: &File) -> io::Result<bool> {
    match fcntl(file, FcntlArg::F_OFD_SETLK(&lock())) {
        Ok(_) => Ok(true),
        Err(Errno::EAGAIN | Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a recorder is writing the file. A file system without locks says no.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_claimed_by_one_until_that_one_closes_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::options().read(true).write(true).open(file.path()).unwrap();
        let first = open();
        assert!(!is_claimed(&open()));
        assert!(claim(&first).unwrap());
        assert!(is_claimed(&open()));
        assert!(!claim(&open()).unwrap());
        drop(first);
        assert!(!is_claimed(&open()));
        assert!(claim(&open()).unwrap());
    }
}
