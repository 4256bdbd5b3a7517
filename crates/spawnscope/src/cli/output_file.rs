//! The files that are named with -o and similar options. A file is written beside its place and
//! renamed, so that a full disk or a killed spawnscope leaves the previous file whole, and a reader
//! sees one or the other. Pipes, devices and descriptors of our caller are written to directly. A
//! new file belongs to the user who called sudo, if any, and only its owner can read it. Nothing is
//! ever written through a link.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, lgetxattr, statx};
use tempfile::NamedTempFile;

use super::identity::{self, Caller};
use super::output::{self, escape_line, print_message};
use crate::owner::{OwnerGuard, act_as};
use crate::record::is_recording;

pub const PRIVATE: u32 = 0o600;
const PERMISSIONS: u32 = 0o777;
/// The extended attribute with a file's access control list, which is not part of its mode.
const ACCESS_CONTROL_LIST: &str = "system.posix_acl_access";

/// A destination for output, which was checked.
pub struct OutputFile {
    path: PathBuf,
    caller: Option<Caller>,
    new_mode: u32,
    /// A pipe, a device, or a descriptor that our caller opened. Output is written at its current
    /// position.
    stream: Option<File>,
}

impl OutputFile {
    /// Checks that the file can be written. A file that exists is unchanged.
    pub fn claim(path: &Path) -> Result<OutputFile> {
        OutputFile::claim_with_mode(path, PRIVATE)
    }

    /// Does the same as `claim`, but a new file has another mode, less the umask.
    pub fn claim_with_mode(path: &Path, new_mode: u32) -> Result<OutputFile> {
        let caller = identity::caller()?;
        let mut output = OutputFile { path: path.to_owned(), caller, new_mode, stream: None };
        let _owner_guard = output.act_as_caller()?;
        if let Opened::Stream(file) = output.open()? {
            output.stream = Some(file);
        }
        Ok(output)
    }

    pub fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Replaces the content of the file by what `write` writes. If this fails, the file is
    /// unchanged.
    pub fn replace(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let failed = || format!("failed to write {}", self.path.display());
        if let Some(stream) = &self.stream {
            return write_all(stream, write).with_context(failed);
        }
        let owner_guard = self.act_as_caller()?;
        let opened = self.open()?;
        // What is written may come from files that only our own ids may read.
        drop(owner_guard);
        let written = match &opened {
            Opened::Stream(file) => write_all(file, write),
            Opened::InPlace(file) => file.set_len(0).and_then(|()| write_all(file, write)),
            Opened::Beside(file) => write_all(file.as_file(), write),
        };
        // The file beside is renamed or removed as it was created.
        let _owner_guard = self.act_as_caller()?;
        let renamed = written.and_then(|()| opened.finish(&self.path));
        renamed.with_context(failed)
    }

    fn act_as_caller(&self) -> Result<Option<OwnerGuard>> {
        act_as_caller(&self.path, self.caller.as_ref())
    }

    fn open(&self) -> Result<Opened> {
        let path = &self.path;
        if is_recording(path) {
            bail!("{} is a recording, and writing to it would destroy it: name another file with -o", path.display());
        }
        let opened = match named_descriptor(path) {
            Some(fd) => duplicate(fd).map(Opened::Stream),
            None => open(path, self.new_mode),
        };
        opened.map_err(|error| open_error(path, error, self.caller.as_ref()))
    }
}

pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    OutputFile::claim(path)?.replace(|out| out.write_all(content))
}

/// Writes a file that the user did not name, and says where it is.
pub fn write_page(path: &Path, content: &[u8]) -> Result<()> {
    write(path, content)?;
    print_message(&format!("wrote {}: open it in a browser", escape_line(path.display())));
    Ok(())
}

/// Writes to the file given with -o, or else to standard output.
pub fn write_or_print(named: Option<&Path>, content: &[u8], what: &str) -> Result<()> {
    match output::file(named) {
        Some(path) => write(path, content),
        None => io::stdout().lock().write_all(content).with_context(|| format!("failed to write the {what}")),
    }
}

fn write_all(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out).and_then(|()| out.flush())
}

/// Makes this thread act as the user who called sudo, if any, until the guard is dropped. The path
/// is for the error message.
pub fn act_as_caller(path: &Path, caller: Option<&Caller>) -> Result<Option<OwnerGuard>> {
    let guard = act_as(caller.map(Caller::owner).as_ref());
    guard.with_context(|| format!("failed to switch to the ids of the user who called sudo, for {}", path.display()))
}

enum Opened {
    Stream(File),
    /// A regular file that cannot be replaced by another one.
    InPlace(File),
    /// A new file in the same directory, which is removed when it is dropped.
    Beside(NamedTempFile),
}

impl Opened {
    fn finish(self, path: &Path) -> io::Result<()> {
        match self {
            Opened::Beside(file) => Ok(file.persist(path).map(drop)?),
            Opened::Stream(_) | Opened::InPlace(_) => Ok(()),
        }
    }
}

fn open(path: &Path, new_mode: u32) -> io::Result<Opened> {
    let found = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return create_beside(path, new_mode).map(Opened::Beside);
        }
        found => found?,
    };
    let mut options = OpenOptions::new();
    // Also checks that the file may be written: the permission to rename is that of the directory.
    let file = options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NOCTTY).open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(Opened::Stream(file));
    }
    let beside = match create_beside(path, PRIVATE) {
        // The user may write the file but not its directory.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(Opened::InPlace(file)),
        beside => beside?,
    };
    if !is_replaceable(path, &found, &beside.as_file().metadata()?) {
        return Ok(Opened::InPlace(file));
    }
    beside.as_file().set_permissions(Permissions::from_mode(found.mode() & PERMISSIONS))?;
    Ok(Opened::Beside(beside))
}

/// Whether a new file in place of the one that was found is the same to its users: it belongs to
/// the same user and group, and the one that was found has no other name and no access control
/// list, and is not mounted by itself, as files in containers are.
fn is_replaceable(path: &Path, found: &Metadata, new: &Metadata) -> bool {
    let has_same_owner = (found.uid(), found.gid()) == (new.uid(), new.gid());
    let has_list = lgetxattr(path, ACCESS_CONTROL_LIST, &mut [] as &mut [u8]).is_ok();
    let attributes = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()).map(|found| found.stx_attributes);
    let is_mounted = attributes.is_ok_and(|attributes| attributes.contains(StatxAttributes::MOUNT_ROOT));
    has_same_owner && found.nlink() == 1 && !has_list && !is_mounted
}

/// Creates a file in the same directory, which is removed when it is dropped. Programs that read
/// all files of the directory ignore its name.
pub fn create_beside(path: &Path, mode: u32) -> io::Result<NamedTempFile> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(".spawnscope-").suffix(".tmp").permissions(Permissions::from_mode(mode));
    // The message of this error ends with the temporary name, which means nothing to the user.
    builder.tempfile_in(directory).map_err(|error| {
        let text = error.to_string();
        io::Error::new(error.kind(), text.split_once(" at path ").map_or(text.as_str(), |(why, _)| why))
    })
}

/// Returns the descriptor that a path such as /dev/stdout names. /proc presents these paths as
/// links.
fn named_descriptor(path: &Path) -> Option<RawFd> {
    let named = path.to_str()?;
    let number = match named {
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ => ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|directory| named.strip_prefix(directory))?,
    };
    number.parse().ok().filter(|fd| *fd >= 0)
}

/// Duplicates a descriptor that our caller passed to us. Our own descriptors are close-on-exec and
/// are rejected.
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
        _ => format!("failed to create {path} (name another file with -o)"),
    };
    Error::new(error).context(failed)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_new_file_is_private_and_an_existing_file_keeps_its_mode() {
        let directory = tempfile::tempdir().unwrap();
        let [new, old] = ["new", "old"].map(|name| directory.path().join(name));
        fs::write(&old, "something long").unwrap();
        fs::set_permissions(&old, fs::Permissions::from_mode(0o664)).unwrap();
        for (path, mode) in [(&new, 0o600), (&old, 0o664)] {
            write(path, b"short").unwrap();
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
            let error = write(&link, b"text").unwrap_err().to_string();
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
            let error = write(Path::new(&path), b"text").unwrap_err();
            assert!(format!("{error:#}").contains("Bad file descriptor"), "{error:#}");
            // SAFETY: this changes only a flag of a descriptor that this test owns.
            assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) }, 0);
            write(Path::new(&path), b"text").unwrap();
            // SAFETY: as above.
            assert_eq!(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }, 0);
            let mut text = [0; 4];
            end.read_exact(&mut text).unwrap();
            assert_eq!(&text, b"text");
        }
        write(Path::new("/dev/null"), b"text").unwrap();
        assert!(write(Path::new("/dev/fd/999999"), b"text").is_err());
    }

    #[test]
    fn a_failure_leaves_the_previous_file_and_nothing_beside_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        for previous in [None, Some(b"the old page".to_vec())] {
            let _ = previous.as_ref().map(|bytes| fs::write(&path, bytes).unwrap());
            let output = OutputFile::claim(&path).unwrap();
            let failed = output.replace(|out| {
                out.write_all(&[b'x'; 100_000])?;
                Err(io::ErrorKind::StorageFull.into())
            });
            assert!(format!("{:#}", failed.unwrap_err()).contains("failed to write"));
            assert_eq!(fs::read(&path).ok(), previous);
            let names = fs::read_dir(directory.path()).unwrap().count();
            assert_eq!(names, usize::from(previous.is_some()));
        }
    }

    #[test]
    fn a_reader_sees_the_old_content_or_the_new_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("page.html");
        fs::write(&path, "old").unwrap();
        let mut open = File::open(&path).unwrap();
        write(&path, b"newer").unwrap();
        let mut old = String::new();
        open.read_to_string(&mut old).unwrap();
        assert_eq!((old.as_str(), fs::read(&path).unwrap().as_slice()), ("old", b"newer".as_slice()));
    }

    #[test]
    fn a_file_with_another_name_is_written_in_place() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["x", "other"].map(|name| directory.path().join(name));
        fs::write(&path, "something long").unwrap();
        fs::hard_link(&path, &other).unwrap();
        write(&path, b"short").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"short");
    }
}
