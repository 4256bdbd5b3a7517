//! Opens or creates the file given with -o. A new file belongs to the user who called sudo, if any, and only its owner can read it. Nothing
//! is ever written through a link.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};

use super::identity::{self, Caller};
use crate::owner::{OwnerGuard, act_as};
use crate::record::is_recording;

/// A destination for output.
pub enum OutputFile {
    /// A regular file, with its previous content.
    Named {
        /// The open file.
        file: File,
        /// Whether the file did not exist before.
        is_new: bool,
    },
    /// A pipe, a device, or a descriptor that our caller opened. Output is written at its current position.
    Stream(File),
}

impl OutputFile {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// When the path is a recording, which writing would destroy, when it is a link, or when it cannot be written to.
    pub fn open(path: &Path) -> Result<OutputFile> {
        let caller = identity::caller()?;
        let _owner_guard = act_as_caller(path, caller.as_ref())?;
        if is_recording(path) {
            bail!("{} is a recording, and writing to it would destroy it: name another file with -o", path.display());
        }
        let opened = match named_descriptor(path) {
            Some(fd) => duplicate(fd).map(OutputFile::Stream),
            None => open(path),
        };
        opened.map_err(|error| open_error(path, error, caller.as_ref()))
    }

    /// Opens the file, or creates it, and empties it.
    ///
    /// # Errors
    /// As for `open`.
    pub fn create(path: &Path) -> Result<File> {
        match OutputFile::open(path)? {
            OutputFile::Stream(file) => Ok(file),
            OutputFile::Named { file, .. } => {
                let emptied = file.set_len(0);
                emptied.with_context(|| format!("failed to empty {}", path.display()))?;
                Ok(file)
            }
        }
    }
}

/// Replaces the content of the file.
///
/// # Errors
/// As for `OutputFile::open`, or when the file cannot be written.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let written = OutputFile::create(path)?.write_all(content);
    written.with_context(|| format!("failed to write {}", path.display()))
}

/// Removes a file that `open` created.
///
/// # Errors
/// When the file cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    let caller = identity::caller()?;
    let _owner_guard = act_as_caller(path, caller.as_ref())?;
    fs::remove_file(path).with_context(|| format!("failed to remove {}", path.display()))
}

/// Makes this thread act as the user who called sudo, if any, until the guard is dropped. The path is for the error message.
///
/// # Errors
/// When the ids of the thread cannot be changed.
pub fn act_as_caller(path: &Path, caller: Option<&Caller>) -> Result<Option<OwnerGuard>> {
    let guard = act_as(caller.map(Caller::owner).as_ref());
    guard.with_context(|| format!("failed to switch to the ids of the user who called sudo, for {}", path.display()))
}

fn open(path: &Path) -> io::Result<OutputFile> {
    let flags = libc::O_NOFOLLOW | libc::O_NOCTTY;
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags).mode(0o600);
    match options.clone().create_new(true).open(path) {
        Ok(file) => return Ok(OutputFile::Named { file, is_new: true }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(OutputFile::Named { file, is_new: false })
    } else {
        Ok(OutputFile::Stream(file))
    }
}

/// Returns the descriptor that a path such as /dev/stdout names. /proc presents these paths as links.
fn named_descriptor(path: &Path) -> Option<RawFd> {
    let named = path.to_str()?;
    let number = match named {
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ => ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|directory| named.strip_prefix(directory))?,
    };
    number.parse().ok().filter(|fd| *fd >= 0)
}

/// Duplicates a descriptor that our caller passed to us. Our own descriptors are close-on-exec and are rejected.
fn duplicate(fd: RawFd) -> io::Result<File> {
    // SAFETY: reads flags and touches no memory; an invalid descriptor number returns an error.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
    if flags == -1 || flags & libc::FD_CLOEXEC != 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: as above.
    let copy = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) };
    if copy == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(copy) })
}

/// Describes why the file cannot be opened and what to do.
fn open_error(path: &Path, error: io::Error, caller: Option<&Caller>) -> Error {
    let path = path.display();
    if error.raw_os_error() == Some(libc::ELOOP) {
        return anyhow!(
            "{path} is a symbolic link, and spawnscope does not write through links: name the link's target with -o"
        );
    }
    let failed = match caller {
        Some(Caller { name, .. }) if error.kind() == io::ErrorKind::PermissionDenied => format!(
            "failed to create {path} as {name}, who called sudo: with -o, name a file that {name} may write to, or redirect standard output"
        ),
        _ => format!("failed to create {path}"),
    };
    Error::new(error).context(failed)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_new_file_is_private_and_an_existing_file_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| directory.path().join(name));
        fs::write(&old, "something long").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o664)).unwrap();
        for (path, mode) in [(&new, 0o600), (&old, 0o664)] {
            OutputFile::create(path).unwrap().write_all(b"short").unwrap();
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, mode);
            assert_eq!(fs::read(path).unwrap(), b"short");
        }
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let [link, other] = ["link", "other"].map(|name| directory.path().join(name));
        symlink(&other, &link).unwrap();
        for exists in [false, true] {
            let error = OutputFile::create(&link).unwrap_err().to_string();
            assert!(error.contains("is a symbolic link"), "{error}");
            assert_eq!(other.exists(), exists);
            fs::write(&other, "its own").unwrap();
        }
        assert_eq!(fs::read(&other).unwrap(), b"its own");
    }

    #[test]
    fn inherited_descriptors_are_written_to_and_our_own_are_refused() {
        let (mut end, other) = io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&other);
        for directory in ["/dev/fd", "/proc/self/fd"] {
            let path = format!("{directory}/{fd}");
            let error = OutputFile::create(Path::new(&path)).unwrap_err();
            assert!(format!("{error:#}").contains("Bad file descriptor"), "{error:#}");
            // SAFETY: this changes only a flag of a descriptor that this test owns.
            assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, 0);
            OutputFile::create(Path::new(&path)).unwrap().write_all(b"text").unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }, 0);
            let mut text = [0; 4];
            end.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"text");
        }
        OutputFile::create(Path::new("/dev/null")).unwrap().write_all(b"text").unwrap();
        assert!(OutputFile::create(Path::new("/dev/fd/999999")).is_err());
    }
}
