//! What can go wrong with a recording, in kinds that a caller can tell apart. Each message says what failed, on which
//! file, and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a recording could not be written or read. It is `Clone` since the writer's failure is told both to the reading
/// side at once and to whoever finishes the recording.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecordError {
    /// There is no such file.
    #[error("no recording at {}: `spawnscope record -- COMMAND` makes one", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a spawnscope recording: name a file that `spawnscope record` wrote", path.display())]
    NotARecording {
        /// The file.
        path: PathBuf,
    },
    /// Written by a later spawnscope.
    #[error(
        "{} is a recording in format {found}, and this spawnscope reads up to format {known}: update spawnscope",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version of the format.
        found: i32,
        /// The newest version that can be read.
        known: i32,
    },
    /// The file was cut short or overwritten.
    #[error("recording {} is damaged ({detail}): copy it again from where it came, or record again", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// A value that no recorder writes.
    #[error(
        "recording {} is damaged (column {column} of table {table} holds {found}): \
         copy it again from where it came, or record again",
        path.display()
    )]
    BadValue {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        table: &'static str,
        /// Where in the table.
        column: &'static str,
        /// What was found there.
        found: String,
    },
    /// Another program holds the file for longer than is worth waiting.
    #[error("recording {} is locked by another program: end that one, or try again later", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// Another program, such as a recorder before version 8 of the format, was killed while it wrote: taking its changes back
    /// means to write, which reading never does.
    #[error(
        "recording {} was cut off inside a change of another program, which its -journal file can take back: copy both to a \
         folder of your own, and run `sqlite3 COPY 'PRAGMA user_version'`",
        path.display()
    )]
    NeedsRepair {
        /// The file.
        path: PathBuf,
    },
    /// No space is left.
    #[error("no space is left for recording {}: free some, or record elsewhere with -o", path.display())]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// Writing or reading failed below SQLite: not for want of space, which is `Full`.
    #[error(
        "the system refused to {action} recording {} ({detail}): a quota, a size limit (`ulimit -f`) or a failing disk; \
         use another place",
        path.display()
    )]
    DiskRefused {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        detail: String,
    },
    /// A new recording would have replaced something that is not a recording.
    #[error(
        "{} is in the way and is not a spawnscope recording, so it is left alone: move it, or name another file with -o",
        path.display()
    )]
    InTheWay {
        /// That file.
        path: PathBuf,
    },
    /// A new recording would have been written through a symbolic link.
    #[error(
        "{} is a symbolic link, and spawnscope writes through none: remove it, or name the file that it leads to with -o",
        path.display()
    )]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A new recording would have come into a file that others can read.
    #[error("{} is an empty file of another user's, or has another name too: remove it, or name another file with -o", path.display())]
    OfAnother {
        /// That file.
        path: PathBuf,
    },
    /// Another recorder writes the file.
    #[error("{} is being recorded by another spawnscope: name another file with -o", path.display())]
    BeingRecorded {
        /// That file.
        path: PathBuf,
    },
    /// The file was renamed or deleted under the recorder.
    #[error("recording {} was moved or deleted while it was written: give each recorder a file of its own with -o", path.display())]
    Moved {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// SQLite refused for another reason.
    #[error("cannot {action} recording {}", path.display())]
    Sqlite {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What SQLite said.
        source: Arc<rusqlite::Error>,
    },
}

impl RecordError {
    /// An error of the system, with what was tried on what.
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        RecordError::Io {
            action,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// Sorts an error of SQLite into the kinds above.
    pub(super) fn sqlite(action: &'static str, path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let extended = source.sqlite_error().map(|error| error.extended_code);
        match source.sqlite_error_code() {
            _ if extended == Some(ffi::SQLITE_READONLY_DBMOVED) => RecordError::Moved { path },
            _ if needs_rollback(&source) => RecordError::NeedsRepair { path },
            Some(ErrorCode::NotADatabase) => RecordError::NotARecording { path },
            Some(ErrorCode::DatabaseCorrupt) => RecordError::Corrupt {
                path,
                detail: source.to_string(),
            },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RecordError::Locked { path },
            Some(ErrorCode::DiskFull) => RecordError::Full { path },
            Some(ErrorCode::SystemIoFailure) => RecordError::DiskRefused {
                action,
                path,
                detail: source.to_string(),
            },
            _ => RecordError::Sqlite {
                action,
                path,
                source: Arc::new(source),
            },
        }
    }
}

impl RecordError {
    /// An error of SQLite while a recording is read that was opened.
    pub(super) fn unreadable(path: &Path, source: rusqlite::Error) -> Self {
        // SQLite does not understand a statement (a table or a column is not there), or a value is beyond its limits.
        let is_mutilated = matches!(source.sqlite_error_code(), Some(ErrorCode::Unknown | ErrorCode::TooBig))
            || !matches!(source, rusqlite::Error::SqliteFailure(..));
        if is_mutilated {
            RecordError::Corrupt {
                path: path.to_owned(),
                detail: source.to_string(),
            }
        } else {
            RecordError::sqlite("read", path, source)
        }
    }
}

/// Whether a connection that may only read found a batch that a killed recorder left half written.
fn needs_rollback(error: &rusqlite::Error) -> bool {
    error
        .sqlite_error()
        .is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_ROLLBACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_sqlite_become_kinds_a_caller_can_tell_apart() {
        let sorted = |code| {
            let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            RecordError::sqlite("write", Path::new("x.db"), source)
        };
        assert!(matches!(sorted(ffi::SQLITE_FULL), RecordError::Full { .. }));
        assert!(matches!(sorted(ffi::SQLITE_BUSY), RecordError::Locked { .. }));
        assert!(matches!(sorted(ffi::SQLITE_CORRUPT), RecordError::Corrupt { .. }));
        assert!(matches!(sorted(ffi::SQLITE_NOTADB), RecordError::NotARecording { .. }));
        assert!(matches!(
            sorted(ffi::SQLITE_READONLY_DBMOVED),
            RecordError::Moved { .. }
        ));
        assert!(matches!(
            sorted(ffi::SQLITE_READONLY_ROLLBACK),
            RecordError::NeedsRepair { .. }
        ));
        assert!(matches!(sorted(ffi::SQLITE_MISUSE), RecordError::Sqlite { .. }));
        assert!(matches!(
            sorted(ffi::SQLITE_IOERR_WRITE),
            RecordError::DiskRefused { .. }
        ));
    }
}
