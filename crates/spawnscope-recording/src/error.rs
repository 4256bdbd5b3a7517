//! Errors of recordings, in kinds that callers can distinguish. Each message says what failed, on
//! which file, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a recording could not be written or read. This type is `Clone`, because a failure of the
/// writer is reported immediately to the collecting thread and later to the caller of `finish`.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecordError {
    #[error("no recording at {}: {}", path.display(), match numbered {
        Some(numbered) => format!("did you mean {}?", numbered.display()),
        None => "create one with `spawnscope record -- CMD`".to_owned(),
    })]
    Missing {
        path: PathBuf,
        /// The first file beside it that `--runs` or `--keep` numbered.
        numbered: Option<PathBuf>,
    },
    #[error("{} is not a spawnscope recording: name a file that `spawnscope record` wrote", path.display())]
    NotARecording { path: PathBuf },
    #[error(
        "{} has format {found}, but this spawnscope reads only up to format {known}: update spawnscope",
        path.display()
    )]
    NewerVersion { path: PathBuf, found: i32, known: i32 },
    /// The file was truncated or overwritten.
    #[error("recording {} is damaged ({detail}): copy it again from its source, or record again", path.display())]
    Corrupt { path: PathBuf, detail: String },
    /// The file contains a value that no recorder writes.
    #[error(
        "recording {} is damaged (column {column} of table {table} holds {found}): \
         copy it again from its source, or record again",
        path.display()
    )]
    BadValue { path: PathBuf, table: &'static str, column: &'static str, found: String },
    /// Another program held the lock for longer than spawnscope waits.
    #[error("recording {} is locked by another program: close that program, or try again later", path.display())]
    Locked { path: PathBuf },
    /// Another program, such as a recorder before format version 8, was killed while it wrote to
    /// the file. Its change would have to be rolled back, but the reader never writes to a file.
    #[error(
        "recording {} has a partial change by another program, which its -journal file can roll back: copy both files to a \
         directory that you own, and run `sqlite3 COPY 'PRAGMA user_version'`",
        path.display()
    )]
    NeedsRepair { path: PathBuf },
    #[error("no space is left for recording {}: free some, or record to another path with -o", path.display())]
    Full { path: PathBuf },
    /// The system refused a read or write, but not because the disk is full.
    #[error(
        "the system refused to {action} recording {} ({detail}), possibly because of a quota, a size limit (`ulimit -f`) or a failing disk: \
         use another path",
        path.display()
    )]
    DiskRefused { action: &'static str, path: PathBuf, detail: String },
    #[error(
        "{} exists and is not a spawnscope recording: move it, or name another file with -o",
        path.display()
    )]
    InTheWay { path: PathBuf },
    #[error(
        "{} is a symbolic link, and spawnscope does not write through links: remove it, or name the link's target with -o",
        path.display()
    )]
    Link { path: PathBuf },
    /// A new recording would have been written to a file that another user owns or can reach by
    /// another path.
    #[error("{} is empty, but belongs to another user or has several hard links: remove it, or name another file with -o", path.display())]
    NotPrivate { path: PathBuf },
    #[error("{} is being recorded by another spawnscope: name another file with -o", path.display())]
    BeingRecorded { path: PathBuf },
    /// The file was renamed or deleted while the recorder wrote it.
    #[error("recording {} was moved or deleted while being written: give each recorder its own file with -o", path.display())]
    Moved { path: PathBuf },
    #[error("cannot {action} {}{}", path.display(), match *action {
        "create" => " (name another file with -o)",
        _ => "",
    })]
    Io { action: &'static str, path: PathBuf, source: Arc<io::Error> },
    /// SQLite failed for another reason.
    #[error("cannot {action} recording {}", path.display())]
    Sqlite { action: &'static str, path: PathBuf, source: Arc<rusqlite::Error> },
}

impl RecordError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        RecordError::Io { action, path: path.to_owned(), source: Arc::new(source) }
    }

    /// Maps an SQLite error to one of the kinds above.
    pub(super) fn sqlite(action: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let extended = source.sqlite_error().map(|error| error.extended_code);
        match source.sqlite_error_code() {
            _ if extended == Some(ffi::SQLITE_READONLY_DBMOVED) => RecordError::Moved { path },
            _ if extended == Some(ffi::SQLITE_READONLY_ROLLBACK) => RecordError::NeedsRepair { path },
            Some(ErrorCode::NotADatabase) => RecordError::NotARecording { path },
            Some(ErrorCode::DatabaseCorrupt) => RecordError::Corrupt { path, detail: source.to_string() },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordError::Locked { path },
            Some(ErrorCode::DiskFull) => RecordError::Full { path },
            Some(ErrorCode::SystemIoFailure) => RecordError::DiskRefused { action, path, detail: source.to_string() },
            _ => RecordError::Sqlite { action, path, source: Arc::new(source) },
        }
    }

    /// Maps an SQLite error that occurs while an open recording is read.
    pub(super) fn unreadable(path: &Path, source: rusqlite::Error) -> Self {
        // SQLite reports a missing table or column as an unknown statement, and a value that
        // exceeds its limits as too big.
        let is_corrupt = matches!(source.sqlite_error_code(), Some(ErrorCode::Unknown | ErrorCode::TooBig))
            || !matches!(source, rusqlite::Error::SqliteFailure(..));
        if is_corrupt {
            RecordError::Corrupt { path: path.to_owned(), detail: source.to_string() }
        } else {
            RecordError::sqlite("read", path, source)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(code: i32) -> RecordError {
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        RecordError::sqlite("write", Path::new("x.db"), source)
    }

    #[test]
    fn errors_of_sqlite_become_kinds_that_callers_can_distinguish() {
        assert!(matches!(mapped(ffi::SQLITE_FULL), RecordError::Full { .. }));
        assert!(matches!(mapped(ffi::SQLITE_BUSY), RecordError::Locked { .. }));
        assert!(matches!(mapped(ffi::SQLITE_CORRUPT), RecordError::Corrupt { .. }));
        assert!(matches!(mapped(ffi::SQLITE_NOTADB), RecordError::NotARecording { .. }));
        assert!(matches!(mapped(ffi::SQLITE_READONLY_DBMOVED), RecordError::Moved { .. }));
        assert!(matches!(mapped(ffi::SQLITE_READONLY_ROLLBACK), RecordError::NeedsRepair { .. }));
        assert!(matches!(mapped(ffi::SQLITE_MISUSE), RecordError::Sqlite { .. }));
        assert!(matches!(mapped(ffi::SQLITE_IOERR_WRITE), RecordError::DiskRefused { .. }));
    }
}
