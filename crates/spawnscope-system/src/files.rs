//! Examines and opens files whose names come from other programs, such as a recorded one.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Followed,
    Refused,
}

/// Opens a regular file for reading. A file of another type is not opened, not even for a moment:
/// opening a device may have side effects (it starts a watchdog), and opening a pipe may block
/// forever. Fails with `InvalidInput` if it is not a regular file.
pub fn open_regular(path: &Path, links: Links) -> io::Result<File> {
    let no_follow = if links == Links::Refused { libc::O_NOFOLLOW } else { 0 };
    // O_PATH refers to a file without opening it.
    let found = OpenOptions::new().read(true).custom_flags(libc::O_PATH | no_follow).open(path)?;
    if !found.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    match File::open(format!("/proc/self/fd/{}", found.as_raw_fd())) {
        // There is no /proc, or it belongs to another pid namespace.
        Err(error) if error.kind() == io::ErrorKind::NotFound => open_same(path, &found, no_follow),
        opened => opened,
    }
}

pub fn is_set_id(file: &Metadata) -> bool {
    let by_group = libc::S_ISGID | libc::S_IXGRP;
    file.is_file() && (file.mode() & libc::S_ISUID != 0 || file.mode() & by_group == by_group)
}

/// Whether a file gives privilege to the process that executes it: set-user-ID, set-group-ID, or
/// file capabilities.
pub fn gives_privilege(path: &Path) -> bool {
    let has_capabilities = || rustix::fs::getxattr_query(path, c"security.capability").is_ok_and(|bytes| bytes > 0);
    path.metadata().is_ok_and(|file| is_set_id(&file) || file.is_file() && has_capabilities())
}

/// Opens a path that led to the regular file `expected` a moment ago, and fails if it leads to
/// another file now. The flags prevent the opening of another file from blocking or changing the
/// controlling terminal.
fn open_same(path: &Path, expected: &File, flags: i32) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let (found, expected) = (file.metadata()?, expected.metadata()?);
    let is_same = (found.dev(), found.ino()) == (expected.dev(), expected.ino());
    if is_same { Ok(file) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_regular_file_is_opened_through_a_link_only_if_links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        std::fs::write(&file, "text").unwrap();
        symlink(&file, &link).unwrap();
        for (path, links) in [(&file, Links::Followed), (&file, Links::Refused), (&link, Links::Followed)] {
            let mut text = String::new();
            open_regular(path, links).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "text");
        }
        assert!(open_regular(&link, Links::Refused).is_err());
    }

    #[test]
    fn without_proc_only_the_expected_file_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let (file, other) = (directory.path().join("file"), directory.path().join("other"));
        std::fs::write(&file, "text").unwrap();
        std::fs::write(&other, "text").unwrap();
        let found = File::open(&file).unwrap();
        assert!(open_same(&file, &found, 0).is_ok());
        assert_eq!(open_same(&other, &found, 0).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn pipes_devices_and_directories_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        for path in [&pipe, Path::new("/dev/null"), directory.path()] {
            let error = open_regular(path, Links::Followed).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}", path.display());
        }
        let missing = open_regular(&directory.path().join("missing"), Links::Followed);
        assert_eq!(missing.unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
