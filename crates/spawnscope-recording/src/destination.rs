//! Prepares the path of a new recording. An existing recording is kept as `<path>.old`, as perf
//! does with `perf.data.old`. A file that is not a recording is neither moved nor overwritten.
//! Nothing is written through a link, because any user with write access to the directory may have
//! created the link.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::claim;
use super::error::RecordError;
use super::header::SqliteHeader;
use super::log::with_suffix;
use super::version::APPLICATION_ID;
use spawnscope_system::owner;

#[derive(Debug)]
enum Occupant {
    Nothing,
    /// An empty file, such as one that `mktemp` has created. Overwriting it loses nothing.
    EmptyFile(File),
    Recording,
}

/// The claimed path of a new recording. No other recorder uses it while this value lives.
#[derive(Debug)]
pub(super) struct Destination {
    directory: Directory,
    /// The path as the user gave it.
    pub(super) path: PathBuf,
    /// Whether the earlier recording at this path was moved to `<path>.old`.
    is_earlier_kept: bool,
    /// The recording, whose open descriptor keeps the claim. It must outlive SQLite's connection,
    /// because closing it releases that connection's locks.
    pub(super) file: File,
}

/// The files that SQLite keeps beside a database: rollback journal, write-ahead log, and its
/// readers' shared memory.
const SQLITE_SUFFIXES: [&str; 3] = ["-journal", "-wal", "-shm"];

/// Creates an empty file at `path`, readable only by its owner because argv can be private. Moves
/// an earlier recording to `<path>.old`. SQLite gives the files that it creates beside the
/// recording the same owner and mode.
pub(super) fn prepare(path: &Path) -> Result<Destination, RecordError> {
    // Drops a `/` or `/.` at the end of the path.
    let normalized = path.file_name().map(|name| path.with_file_name(name));
    let path = normalized.ok_or_else(|| RecordError::InTheWay { path: path.to_owned() })?;
    let directory = Directory::containing(&path).map_err(|source| RecordError::io("create", &path, source))?;
    let occupant = occupant(&directory, &path)?;
    let is_earlier_kept = matches!(occupant, Occupant::Recording);
    if is_earlier_kept {
        let old = old_path(&path);
        self::occupant(&directory, &old)?;
        move_recording(&directory, &path, &old)?;
    }
    // SQLite would treat existing files with these suffixes as part of the new recording. They may
    // remain from a removed recording, or another user may have put them there.
    remove_sqlite_files(&directory, &path)?;
    let file = match occupant {
        Occupant::EmptyFile(file) => file,
        Occupant::Nothing | Occupant::Recording => {
            directory.create(name(&path)).map_err(|source| RecordError::io("create", &path, source))?
        }
    };
    if !claim::claim(&file).map_err(|source| RecordError::io("claim", &path, source))? {
        return Err(RecordError::BeingRecorded { path });
    }
    Ok(Destination { directory, path, is_earlier_kept, file })
}

impl Destination {
    pub(super) fn resolved_path(&self) -> PathBuf {
        self.directory.file_path(name(&self.path))
    }

    pub(super) fn is_still_there(&self) -> bool {
        self.directory.still_contains(name(&self.path), &self.file)
    }

    /// Whether the header that SQLite has written to the path has arrived in the file. If not,
    /// another user has replaced the file between its creation and the moment when SQLite opened
    /// it.
    pub(super) fn has_header(&self) -> io::Result<bool> {
        Ok(SqliteHeader::read(&self.file)?.is_some_and(|header| header.application_id == APPLICATION_ID))
    }

    pub(super) fn restore_earlier(&self) -> Result<(), RecordError> {
        let Destination { directory, path, .. } = self;
        let removed = directory.remove(name(path));
        removed.map_err(|source| RecordError::io("remove", path, source))?;
        remove_sqlite_files(directory, path)?;
        if self.is_earlier_kept { move_recording(directory, &old_path(path), path) } else { Ok(()) }
    }
}

fn old_path(path: &Path) -> PathBuf {
    with_suffix(path, ".old")
}

/// Returns the last component of a path. All paths in this module have one.
fn name(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Renames a recording together with the journal or write-ahead log that a killed recorder left.
/// Otherwise the recording's last batches would be lost, and SQLite would apply them to the next
/// file with the old name.
fn move_recording(directory: &Directory, path: &Path, old: &Path) -> Result<(), RecordError> {
    // The SQLite files of the replaced recording must be removed first, or SQLite would apply them
    // to the wrong recording.
    remove_sqlite_files(directory, old)?;
    directory.rename(name(path), name(old)).map_err(|source| RecordError::io("rename", path, source))?;
    for suffix in SQLITE_SUFFIXES {
        let (from, to) = (with_suffix(path, suffix), with_suffix(old, suffix));
        match directory.rename(name(&from), name(&to)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RecordError::io("rename", &from, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Removes the files that SQLite keeps beside the database at `path`.
fn remove_sqlite_files(directory: &Directory, path: &Path) -> Result<(), RecordError> {
    SQLITE_SUFFIXES.iter().map(|suffix| with_suffix(path, suffix)).try_for_each(|file| {
        let removed = directory.remove(name(&file));
        // Where no file can be removed (a read-only file system), or none can have this name, the
        // error does not say whether one exists.
        let exists = || directory.entry_type(name(&file)).is_ok_and(|found| found != EntryType::Nothing);
        removed.or_else(|source| if exists() { Err(RecordError::io("remove", &file, source)) } else { Ok(()) })
    })
}

/// Determines what exists at `path`. Returns an error if it must not be replaced.
fn occupant(directory: &Directory, path: &Path) -> Result<Occupant, RecordError> {
    let failed = |source| RecordError::io("inspect", path, source);
    match directory.entry_type(name(path)).map_err(failed)? {
        EntryType::Nothing => return Ok(Occupant::Nothing),
        EntryType::Link => return Err(RecordError::Link { path: path.to_owned() }),
        // Opening a pipe or a device could have side effects.
        EntryType::Other => return Err(RecordError::InTheWay { path: path.to_owned() }),
        EntryType::File => {}
    }
    let file = directory.open(name(path), OFlags::RDONLY).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(RecordError::InTheWay { path: path.to_owned() });
    }
    if claim::is_claimed(&file) {
        return Err(RecordError::BeingRecorded { path: path.to_owned() });
    }
    if metadata.len() == 0 {
        return empty_file(directory, path).map(Occupant::EmptyFile);
    }
    match SqliteHeader::read(&file).map_err(failed)? {
        Some(header) if header.application_id == APPLICATION_ID => Ok(Occupant::Recording),
        _ => Err(RecordError::InTheWay { path: path.to_owned() }),
    }
}

/// Opens an empty file for writing. Refuses a file of another user, who could read the recording,
/// and a file with several hard links, which exists in another directory as well.
fn empty_file(directory: &Directory, path: &Path) -> Result<File, RecordError> {
    let file = directory.open(name(path), OFlags::RDWR).map_err(|source| RecordError::io("open", path, source))?;
    let metadata = file.metadata().map_err(|source| RecordError::io("open", path, source))?;
    let is_own = metadata.uid() == owner::file_uid().as_raw() && metadata.nlink() == 1;
    if is_own && metadata.is_file() && metadata.len() == 0 {
        Ok(file)
    } else {
        Err(RecordError::NotPrivate { path: path.to_owned() })
    }
}

/// The directory of a recording, opened as a descriptor. Files are inspected, created, renamed and
/// removed by their names relative to this descriptor, never through a link. This works even if the
/// directory is moved meanwhile.
#[derive(Debug)]
struct Directory {
    fd: OwnedFd,
    path: PathBuf,
}

/// What a name in a directory refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntryType {
    Nothing,
    Link,
    File,
    /// A directory, a pipe, or a device.
    Other,
}

impl Directory {
    /// Opens the directory that contains or will contain the file `path`.
    fn containing(path: &Path) -> io::Result<Directory> {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, parent, flags, Mode::empty())?;
        let path = fs::canonicalize(parent)?;
        Ok(Directory { fd, path })
    }

    /// Returns the path of a file in the directory. It begins with the directory's path at the time
    /// of opening, with links resolved.
    fn file_path(&self, name: &OsStr) -> PathBuf {
        self.path.join(name)
    }

    fn entry_type(&self, name: &OsStr) -> io::Result<EntryType> {
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
    fn open(&self, name: &OsStr, access: OFlags) -> io::Result<File> {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::empty())?.into())
    }

    /// Creates a file that must not exist yet. Only its owner can read it.
    fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Whether the directory's path still leads to the directory, and `name` in it still refers to
    /// `file`.
    fn still_contains(&self, name: &OsStr, file: &File) -> bool {
        let (Ok(directory), Ok(file)) = (fstat(&self.fd), file.metadata()) else { return false };
        is_at(&self.path, (directory.st_dev, directory.st_ino))
            && is_at(&self.file_path(name), (file.dev(), file.ino()))
    }
}

/// Whether a path leads to the file with this device and inode.
fn is_at(path: &Path, identity: (u64, u64)) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == identity)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn recording(content: &str) -> Vec<u8> {
        let mut bytes = b"SQLite format 3\0".to_vec();
        bytes.resize(68, 0);
        bytes.extend(APPLICATION_ID.to_be_bytes());
        bytes.resize(100, 0);
        bytes.extend(content.as_bytes());
        bytes
    }

    #[test]
    fn a_recording_is_kept_as_old_together_with_its_journal() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        for (file, bytes) in [("x.db", recording("b")), ("x.db.old", recording("a"))] {
            fs::write(directory.path().join(file), bytes).unwrap();
        }
        fs::write(directory.path().join("x.db-journal"), "journal of b").unwrap();
        fs::write(directory.path().join("x.db.old-journal"), "journal of a").unwrap();

        prepare(&path).unwrap();

        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read(directory.path().join("x.db.old")).unwrap(), recording("b"));
        assert_eq!(fs::read(directory.path().join("x.db.old-journal")).unwrap(), b"journal of b");
        assert!(!directory.path().join("x.db-journal").exists());
    }

    #[test]
    fn the_journal_of_a_replaced_old_recording_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("x.db"), recording("b")).unwrap();
        fs::write(directory.path().join("x.db.old-journal"), "journal of a").unwrap();
        prepare(&directory.path().join("x.db")).unwrap();
        assert!(!directory.path().join("x.db.old-journal").exists());
    }

    #[test]
    fn a_file_that_is_not_a_recording_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let foreign = directory.path().join("thesis.txt");
        fs::write(&foreign, "years of work").unwrap();
        assert!(matches!(prepare(&foreign), Err(RecordError::InTheWay { .. })));
        assert_eq!(fs::read(&foreign).unwrap(), b"years of work");
        assert!(matches!(prepare(directory.path()), Err(RecordError::InTheWay { .. })), "a directory");
    }

    #[test]
    fn an_old_file_that_is_not_a_recording_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        fs::write(&path, recording("b")).unwrap();
        fs::write(directory.path().join("x.db.old"), "years of work").unwrap();
        assert!(matches!(prepare(&path), Err(RecordError::InTheWay { path }) if path.ends_with("x.db.old")));
        assert_eq!(fs::read(&path).unwrap(), recording("b"));
    }

    #[test]
    fn an_empty_file_is_used_as_it_is() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        fs::write(&path, "").unwrap();
        prepare(&path).unwrap();
        assert!(!directory.path().join("x.db.old").exists());
    }

    #[test]
    fn the_error_names_a_path_in_a_missing_directory() {
        let directory = tempfile::tempdir().unwrap();
        let error = prepare(&directory.path().join("nowhere/x.db")).unwrap_err();
        assert!(matches!(&error, RecordError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
        assert!(error.to_string().contains("nowhere/x.db"), "{error}");
    }

    #[test]
    fn an_error_never_names_a_file_that_does_not_exist() {
        let directory = tempfile::tempdir().unwrap();
        // The longest name of a file; the names of SQLite's files would be longer.
        let path = directory.path().join("x".repeat(255));
        prepare(&path).unwrap();
        // A file system that is read-only, also for root.
        let error = prepare(Path::new("/proc/x.db")).unwrap_err().to_string();
        assert!(error.contains("/proc/x.db") && !error.contains("journal"), "{error}");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let [path, old, other] = ["x.db", "x.db.old", "other"].map(|name| directory.path().join(name));
        for content in [None, Some(Vec::new()), Some(recording("a"))] {
            let _ = content.as_ref().map(|bytes| fs::write(&other, bytes).unwrap());
            let _ = fs::remove_file(&path);
            symlink(&other, &path).unwrap();
            assert!(matches!(prepare(&path), Err(RecordError::Link { path }) if path.ends_with("x.db")));
            assert_eq!(fs::read(&other).ok(), content);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, recording("b")).unwrap();
        symlink(&other, &old).unwrap();
        assert!(matches!(prepare(&path), Err(RecordError::Link { path }) if path.ends_with("x.db.old")));
        assert_eq!((fs::read(&path).unwrap(), fs::read(&other).unwrap()), (recording("b"), recording("a")));
    }

    #[test]
    fn an_empty_file_with_several_hard_links_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let [path, other] = ["x.db", "other"].map(|name| directory.path().join(name));
        fs::write(&other, "").unwrap();
        fs::hard_link(&other, &path).unwrap();
        assert!(matches!(prepare(&path), Err(RecordError::NotPrivate { .. })));
    }

    #[test]
    fn the_recording_is_found_in_its_directory_after_the_directory_was_moved() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        fs::create_dir(&first).unwrap();
        let destination = prepare(&first.join("x.db")).unwrap();
        assert!(destination.is_still_there());
        fs::rename(&first, &second).unwrap();
        symlink(&second, &first).unwrap();
        assert!(!destination.is_still_there());
        destination.restore_earlier().unwrap();
        assert!(!second.join("x.db").exists());
    }
}
