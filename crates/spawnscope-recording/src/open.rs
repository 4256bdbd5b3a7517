//! Opens a recording for reading. Any user may have written the file, and root may be reading it.
//! Therefore no code in the file is executed, no file beside it is created, changed or removed, and
//! the file is identified as a recording before any row is read. This follows the advice in
//! <https://sqlite.org/security.html>.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{ptr, slice};

use nix::unistd::geteuid;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::RecordError;
use super::header::SqliteHeader;
use super::limits::{MAX_COLUMNS, MAX_STATEMENT_BYTES, MAX_TABLES, MAX_VALUE_BYTES};
use super::numbered::first_numbered;
use super::store::LOCK_TIMEOUT;
use super::trailer;
use super::version::{self, APPLICATION_ID};
use super::{claim, log, schema, store};

/// A recording that is open for reading. It may still be growing: each read returns what is
/// complete at that time. `reader` has the reads.
pub struct RecordingFile {
    /// Must be dropped before the file, because closing any descriptor of a file releases SQLite's
    /// locks on the file.
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) version: i32,
    pub(super) is_live: bool,
    /// The size of the file and of the log beside it, in bytes.
    pub(super) bytes: u64,
    mode: Mode,
    _file: Option<File>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// With locks, and, while the file is being recorded, with the write-ahead log and its shared
    /// memory.
    Shared,
    /// Together with a log that a killed recorder left. No other program writes to the two files,
    /// so neither locks nor shared memory are needed. In `Shared` mode, SQLite would create the
    /// shared memory, and merge the log into the file when the connection closes.
    WithLog,
    /// As an immutable file. Its header says that there is a log, but the log is missing or empty.
    /// SQLite would otherwise create one.
    Immutable,
    /// From memory, because the file has no name. No other file is beside it, and no other program
    /// writes to it.
    Unnamed,
}

impl RecordingFile {
    /// Opens a recording. A recording whose recorder was killed is readable up to its last batch.
    /// This does not write to the file, and creates no file beside it.
    ///
    /// # Errors
    /// `Missing`, `NotARecording`, `NewerVersion`, `Corrupt`, `Locked`, `NeedsRepair` and others.
    pub fn open(path: &Path) -> Result<RecordingFile, RecordError> {
        RecordingFile::open_within(path, LOCK_TIMEOUT)
    }

    pub(super) fn open_within(path: &Path, timeout: Duration) -> Result<RecordingFile, RecordError> {
        let file = regular_file(path)?;
        let header = SqliteHeader::read(&file).map_err(|source| RecordError::io("read", path, source))?;
        let header = header
            .filter(|header| header.application_id == APPLICATION_ID)
            .ok_or_else(|| RecordError::NotARecording { path: path.to_owned() })?;
        let is_live = claim::is_claimed(&file);
        let log = open_log(path)?;
        if !is_live {
            let damage = find_damage(&file, &header, log.as_ref());
            if let Some(detail) = damage.map_err(|source| RecordError::io("read", path, source))? {
                return Err(RecordError::Corrupt { path: path.to_owned(), detail });
            }
        }
        let log_bytes = log.as_ref().map(length);
        let mode = match log_bytes {
            _ if is_unnamed(&file) => Mode::Unnamed,
            _ if is_live => Mode::Shared,
            None if !header.has_log() => Mode::Shared,
            None | Some(0) => Mode::Immutable,
            Some(_) => Mode::WithLog,
        };
        let bytes = length(&file) + log_bytes.unwrap_or_default();
        let (connection, version) = connect(path, mode, timeout)?;
        Ok(RecordingFile { connection, path: path.to_owned(), version, is_live, bytes, mode, _file: Some(file) })
    }

    /// Opens another connection to the same recording, for another thread. It keeps no second
    /// descriptor of the file, because closing that one would release SQLite's locks.
    pub fn reopen(&self) -> Result<RecordingFile, RecordError> {
        let RecordingFile { is_live, bytes, mode, .. } = *self;
        let (connection, version) = connect(&self.path, mode, LOCK_TIMEOUT)?;
        Ok(RecordingFile { connection, path: self.path.clone(), version, is_live, bytes, mode, _file: None })
    }
}

/// Whether a file claims to be a recording, even if it is damaged or has an unknown version.
pub fn is_recording(path: &Path) -> bool {
    let header = regular_file(path).ok().and_then(|file| SqliteHeader::read(&file).ok().flatten());
    header.is_some_and(|header| header.application_id == APPLICATION_ID)
}

fn regular_file(path: &Path) -> Result<File, RecordError> {
    // Without O_NONBLOCK, opening a pipe at this path would wait forever.
    let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    let file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RecordError::Missing { path: path.to_owned(), numbered: first_numbered(path) },
        _ => RecordError::io("open", path, source),
    })?;
    let metadata = file.metadata().map_err(|source| RecordError::io("read", path, source))?;
    if metadata.is_file() { Ok(file) } else { Err(RecordError::NotARecording { path: path.to_owned() }) }
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |metadata| metadata.len())
}

/// Whether a file has no name, and only this user can open it, so that no other user can change it.
fn is_unnamed(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| {
        let is_ours = metadata.uid() == geteuid().as_raw() && metadata.mode().trailing_zeros() >= 6;
        metadata.nlink() == 0 && is_ours
    })
}

/// Opens the write-ahead log beside a recording. It matters even if the recording's header does not
/// mention it, because SQLite reads it anyway.
fn open_log(path: &Path) -> Result<Option<File>, RecordError> {
    let log = log::wal_path(path);
    match regular_file(&log) {
        Ok(file) => Ok(Some(file)),
        Err(RecordError::Missing { .. }) => Ok(None),
        Err(_) => Err(RecordError::Corrupt {
            path: path.to_owned(),
            detail: format!("its log {} cannot be read", log.display()),
        }),
    }
}

/// Detects flipped bits in the file and in the log, as far as this is possible without SQLite.
fn find_damage(file: &File, header: &SqliteHeader, log: Option<&File>) -> io::Result<Option<String>> {
    if let Some(damage) = log.map(log::find_damage).transpose()?.flatten() {
        return Ok(Some(damage));
    }
    let is_newer = header.user_version > version::CURRENT;
    let is_broken = trailer::is_broken(file, header)? && !is_newer;
    Ok(is_broken.then(|| "the file does not match its checksum".to_owned()))
}

/// Connects to a file that was identified as a recording. Returns the connection and the format
/// version.
fn connect(path: &Path, mode: Mode, timeout: Duration) -> Result<(Connection, i32), RecordError> {
    let connection = connection(path, mode, timeout).map_err(|source| open_error(path, source))?;
    let (application_id, user_version) = identity(&connection).map_err(|source| open_error(path, source))?;
    let path = path.to_owned();
    if application_id != APPLICATION_ID || user_version < version::OLDEST_READABLE {
        return Err(RecordError::NotARecording { path });
    }
    if user_version > version::CURRENT {
        return Err(RecordError::NewerVersion { path, found: user_version, known: version::CURRENT });
    }
    match schema::difference(&connection, user_version).map_err(|source| RecordError::unreadable(&path, source))? {
        Some(detail) => Err(RecordError::Corrupt { path, detail }),
        None => Ok((connection, user_version)),
    }
}

fn connection(path: &Path, mode: Mode, timeout: Duration) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match mode {
        Mode::Shared => Connection::open_with_flags(store::as_file_path(path), flags)?,
        Mode::WithLog => Connection::open_with_flags_and_vfs(store::as_file_path(path), flags, c"unix-none")?,
        Mode::Immutable => Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
        Mode::Unnamed => {
            File::open(path).and_then(|file| map(&file)).map_err(to_sqlite_error).and_then(connect_in_memory)?
        }
    };
    connection.busy_timeout(timeout)?;
    restrict(&connection)?;
    if mode == Mode::WithLog {
        // SQLite then keeps in our own memory what it would otherwise keep in shared memory.
        connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    }
    Ok(connection)
}

/// Connects to a recording in memory, such as a copy of standard input that is opened as
/// /dev/stdin. SQLite opens files only by their resolved names, so a file without a name is mapped,
/// and SQLite reads it as a deserialized database.
fn connect_in_memory(recording: &'static mut [u8]) -> rusqlite::Result<Connection> {
    SqliteHeader::clear_log(recording);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_in_memory_with_flags(flags)?;
    connection.deserialize_bytes("main", recording)?;
    Ok(connection)
}

/// Wraps an error of the operating system as an error of SQLite.
fn to_sqlite_error(error: io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

/// Maps a file without a name, which no other program writes to, into memory until the process
/// ends. Changes to the memory do not reach the file.
fn map(file: &File) -> io::Result<&'static mut [u8]> {
    let length = file.metadata()?.len();
    let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
    // SAFETY: a new private mapping at an address that the kernel chooses overlaps nothing that
    // Rust knows.
    let start = unsafe {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_NORESERVE);
        libc::mmap(ptr::null_mut(), length, rights, flags, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping has `length` bytes and is never unmapped. The file has no name, and this
    // process does not write to it, so its length and its contents do not change.
    Ok(unsafe { slice::from_raw_parts_mut(start.cast(), length) })
}

/// Disables everything in a connection that a hostile file could abuse.
fn restrict(connection: &Connection) -> rusqlite::Result<()> {
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, false),
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, false),
        // Leaves both the log and the file unchanged.
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true),
    ] {
        connection.set_db_config(setting, value)?;
    }
    for (limit, maximum) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, MAX_STATEMENT_BYTES),
        (Limit::SQLITE_LIMIT_SCHEMA, MAX_TABLES),
        (Limit::SQLITE_LIMIT_COLUMN, MAX_COLUMNS),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 10),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 2),
        (Limit::SQLITE_LIMIT_VDBE_OP, 10_000),
        (Limit::SQLITE_LIMIT_FUNCTION_ARG, 8),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, maximum)?;
    }
    connection.execute_batch("PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
}

fn immutable_uri(path: &Path) -> PathBuf {
    let file = store::as_file_path(path);
    let escaped: String = file.as_os_str().as_bytes().iter().map(|byte| format!("%{byte:02x}")).collect();
    PathBuf::from(format!("file:{escaped}?immutable=1"))
}

/// Reads the two numbers that identify a file. This is the first access by SQLite, so it fails if
/// the file is locked or damaged.
fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let application_id = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let user_version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok((application_id, user_version))
}

/// Returns the error for an existing file that could not be opened, with the operating system's
/// reason (such as a missing permission), which SQLite does not report.
fn open_error(path: &Path, source: rusqlite::Error) -> RecordError {
    if source.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        && let Err(refusal) = fs::File::open(path)
    {
        return RecordError::io("open", path, refusal);
    }
    RecordError::sqlite("open", path, source)
}
