//! The directory of a recording, opened as a descriptor. Files are inspected, created, renamed and
//! removed by their names relative to this descriptor, never through a link. This works even if the
//! directory is moved meanwhile.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

#[derive(Debug)]
pub(super) struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a name in a directory refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryType {
    Nothing,
    Link,
    File,
    /// A directory, a pipe, or a device.
    Other,
}

impl Directory {
    /// Opens the directory that contains or will contain the file `path`.
    pub(super) fn containing(path: &Path) -> io::Result<Directory> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, parent, flags, Mode::empty())?;
        let path = fs::canonicalize(parent)?;
        Ok(Directory { fd, path })
    }

    /// Returns the path of a file in the directory. It begins with the directory's path at the time
    /// of opening, with links resolved.
    pub(super) fn file_path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn entry_type(&self, name: &OsStr) -> io::Result<EntryType> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(EntryType::Nothing),
            Err(error) => Err(error.into()),
            Ok(found) => Ok(match FileType::from_raw_mode(found.st_mode as RawMode) {
                FileType::Symlink => EntryType::Link,
                FileType::RegularFile => EntryType::File,
                _ => EntryType::Other,
            }),
        }
    }

    /// Opens a file, which must not be a link. If it has become a pipe, opening does not wait for
    /// the other end.
    pub(super) fn open(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Creates a file that must not exist yet. Only its owner can read it.
    pub(super) fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    pub(super) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    pub(super) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Whether the directory's path still leads to the directory, and `name` in it still refers to
    /// `file`.
    pub(super) fn still_contains(&self, name: &OsStr, file: &File) -> bool {
        let (Ok(directory), Ok(file)) = (fstat(&self.fd), file.metadata()) else { return false };
        is_at(&self.path, (directory.st_dev, directory.st_ino))
            && is_at(&self.file_path(name), (file.dev(), file.ino()))
    }
}

/// Whether a path leads to the file with this device and inode.
fn is_at(path: &Path, identity: (u64, u64)) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == identity)
}
