//! Writes a recording with SQL: creates the file, writes each batch of rows in one transaction, and
//! finishes the file. `writer` decides when to write and what to do on failure, `tables` contains
//! the statements, `values` encodes rows, and `sums` maintains checksums.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};

use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Label;

use super::assemble::Batch;
use super::destination::{self, Destination};
use super::error::RecordError;
use super::redact::Redaction;
use super::sums::{self, SummingWriter, Sums};
use super::tables::RecordingRow;
use super::unfinished::UnfinishedLaunch;
use super::values::signed;
use super::{log, trailer};
use crate::ends::{Ending, FinishedFiles, Header, Memory};

/// How long to wait for another program that holds a lock.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the writing of a batch waits for a lock. After that, the batch is kept and written with
/// the next one.
const BATCH_TIMEOUT: Duration = Duration::from_millis(100);

/// How long the end of a recording waits for readers before it gives up merging the log into the
/// file.
const READERS_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
    destination: Arc<Destination>,
    sums: Sums,
}

impl Store {
    /// Creates a new recording. An existing recording is kept as `<path>.old`.
    pub(super) fn create(
        path: &Path,
        header: &Header,
        redaction: Redaction,
        memory: Memory,
    ) -> Result<Store, RecordError> {
        let destination = Arc::new(destination::prepare(path)?);
        let failed = |source| RecordError::sqlite("create", path, source);
        let mut connection = open(&destination.resolved_path(), "NORMAL").map_err(failed)?;
        let sums = create_schema(&mut connection, header, redaction).map_err(failed)?;
        let has_header = destination.has_header().map_err(|source| RecordError::io("read", path, source));
        if !has_header? {
            return Err(RecordError::Moved { path: path.to_owned() });
        }
        let connection = begin_log(connection, &destination.resolved_path()).map_err(failed)?;
        connection.busy_timeout(BATCH_TIMEOUT).map_err(failed)?;
        let cache = -memory.cache_kib();
        connection.pragma_update(None, "cache_size", cache).map_err(failed)?;
        Ok(Store { connection, path: path.to_owned(), destination, sums })
    }

    /// Returns the destination, which is needed to discard the recording after its connection has
    /// been closed.
    pub(super) fn destination(&self) -> Arc<Destination> {
        Arc::clone(&self.destination)
    }

    /// Writes a batch completely or not at all.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), RecordError> {
        self.change("write", |rows| write_rows(rows, batch))
    }

    pub(super) fn store_ending(&mut self, ending: &Ending) -> Result<(), RecordError> {
        self.change("finish", |rows| write_ending(rows, ending))
    }

    /// Tries to store why writing failed. On a full disk, this usually fails as well. The recording
    /// then looks as if the recorder had been killed.
    pub(super) fn store_failure(&mut self, failure: &RecordError) {
        let ended = format!("failed: {failure}");
        let sql = "UPDATE recording SET ended = ?";
        let _ = self.change("finish", |rows| rows.transaction().execute(sql, [&ended]).map(drop));
    }

    /// Changes rows and their checksums in one transaction.
    fn change(
        &mut self,
        action: &'static str,
        change: impl FnOnce(&mut SummingWriter<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), RecordError> {
        let path = &self.path;
        if !self.destination.is_still_there() {
            return Err(RecordError::Moved { path: path.clone() });
        }
        let changed = in_transaction(&mut self.connection, self.sums, change);
        self.sums = changed.map_err(|source| RecordError::sqlite(action, path, source))?;
        Ok(())
    }

    /// Returns the error for a write lock that another program does not release.
    pub(super) fn locked_error(&self) -> RecordError {
        RecordError::Locked { path: self.path.clone() }
    }

    /// Merges the log into the file, unless another program is still reading the recording, and
    /// closes the file.
    pub(super) fn close(self) -> Result<FinishedFiles, RecordError> {
        let Store { connection, path, destination, .. } = self;
        if !destination.is_still_there() {
            let merged = merge_log_without_removing(&connection);
            merged.map_err(|source| RecordError::sqlite("finish", &path, source))?;
            return Err(RecordError::Moved { path });
        }
        let deadline = Instant::now() + READERS_TIMEOUT;
        while let Err(error) = end_log(&connection) {
            if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) {
                return Err(RecordError::sqlite("finish", &path, error));
            }
            if Instant::now() > deadline {
                return Ok(FinishedFiles::WithLog(log::wal_path(&path)));
            }
            thread::sleep(Duration::from_millis(20));
        }
        drop(connection);
        trailer::append(&destination.file).map_err(|source| RecordError::io("finish", &path, source))?;
        Ok(FinishedFiles::Whole)
    }

    /// Limits the file to `pages` pages, as on a full disk.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update(None, "max_page_count", pages).unwrap();
    }
}

/// `synchronous` is off, because fsync would disturb the disk of the measured command. A killed
/// recorder loses nothing without fsync; only a crash of the machine may.
const SETTINGS: &str = "
    PRAGMA synchronous = OFF;
    PRAGMA temp_store = MEMORY;
";

/// Opens for writing the file that `destination` has created, by a path without links. `locking` is
/// SQLite's locking mode: `NORMAL` or `EXCLUSIVE`.
fn open(path: &Path, locking: &str) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(as_file_path(path), flags)?;
    connection.busy_timeout(LOCK_TIMEOUT)?;
    // The locking mode must be set before the first access to the file.
    connection.pragma_update_and_check(None, "locking_mode", locking, |_| Ok(()))?;
    connection.execute_batch(SETTINGS)?;
    Ok(connection)
}

/// Returns the path in a form that SQLite treats as a file name. A relative path gets the prefix
/// `./`, because `:memory:` and `file:x` have a special meaning.
pub(super) fn as_file_path(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// Makes SQLite write batches to a log beside the file, so that readers of the recording cannot
/// delay the recorder. Readers of the log need shared memory. If the file system does not support
/// it, the recorder locks the file exclusively until the end.
fn begin_log(connection: Connection, path: &Path) -> rusqlite::Result<Connection> {
    match use_log(&connection) {
        Ok(()) => return Ok(connection),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => return Err(error),
        Err(_) => drop(connection),
    }
    let connection = open(path, "EXCLUSIVE")?;
    use_log(&connection)?;
    Ok(connection)
}

/// Switches to a log, and reads once, so that SQLite maps the memory that it shares with readers.
fn use_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.query_row(READ_ONCE, [], |_| Ok(()))
}

/// A query that makes SQLite read the file and the log.
const READ_ONCE: &str = "SELECT count(*) FROM recording";

/// Merges the log into the file and removes it. Fails while another program has the recording open.
fn end_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
}

/// Merges the log into the file, wherever the file is now, and prevents SQLite from removing the
/// log by its name, because the log of another recorder may have this name now.
fn merge_log_without_removing(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.query_row("PRAGMA wal_checkpoint", [], |_| Ok(()))
}

fn in_transaction(
    connection: &mut Connection,
    sums: Sums,
    change: impl FnOnce(&mut SummingWriter<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<Sums> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut rows = SummingWriter::new(&transaction, sums);
    change(&mut rows)?;
    let sums = rows.finish()?;
    transaction.commit()?;
    Ok(sums)
}

/// Creates the tables and their first rows in one transaction, so that a recorder that is killed
/// meanwhile leaves an empty file or all tables.
pub(super) fn create_schema(
    connection: &mut Connection,
    header: &Header,
    redaction: Redaction,
) -> rusqlite::Result<Sums> {
    in_transaction(connection, Sums::default(), |rows| {
        rows.transaction().execute_batch(include_str!("schema.sql"))?;
        sums::initialize(rows.transaction())?;
        rows.insert(&[recording_row(header, redaction)])?;
        rows.insert(&header.missing)?;
        rows.insert(&labels(header, redaction))?;
        rows.insert(&header.calibration)
    })
}

/// Returns the labels with secrets masked.
fn labels(header: &Header, redaction: Redaction) -> Vec<Label> {
    let labels = header.labels.iter().take(Label::MAX_COUNT);
    labels
        .map(|label| Label { key: label.key.clone(), value: redaction.apply_to_value(&label.key, &label.value) })
        .collect()
}

fn recording_row(header: &Header, redaction: Redaction) -> RecordingRow {
    let command: Vec<u8> = header.command.iter().flat_map(|argument| [argument.as_slice(), b"\0"].concat()).collect();
    RecordingRow {
        id: 1,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        collector: header.collector.clone(),
        scope: header.scope,
        command: redaction.apply(&command).into_owned(),
        cwd: redaction.apply_to_path(&header.cwd).into_owned(),
        kernel: header.kernel.clone(),
        arch: header.arch.clone(),
        hostname: header.hostname.clone(),
        cpus: header.cpus,
        started_unix_ns: header.started_unix_ns,
        origin: header.origin.0,
        root: None,
        last_event: Nanos(0),
        wall: None,
        ended: None,
        allowed_cpus: header.allowed_cpus,
    }
}

#[cfg(test)]
pub(super) fn write_batch(connection: &mut Connection, sums: Sums, batch: &Batch) -> rusqlite::Result<Sums> {
    in_transaction(connection, sums, |rows| write_rows(rows, batch))
}

fn write_rows(rows: &mut SummingWriter<'_>, batch: &Batch) -> rusqlite::Result<()> {
    rows.insert(&batch.texts)?;
    rows.insert(&batch.stacks.frames)?;
    rows.insert(&batch.stacks.stacks)?;
    rows.upsert(&batch.launches)?;
    let orphans = batch.referenced.iter().map(|launch| UnfinishedLaunch::orphan(*launch).row);
    rows.insert_new(&orphans.collect::<Vec<_>>())?;
    rows.upsert_at(batch.execs.iter().map(|(rowid, row)| (*rowid, row)))?;
    rows.insert(&batch.failed_execs)?;
    rows.insert(&batch.stops)?;
    rows.upsert(&batch.threads)?;
    rows.insert(&batch.objects)?;
    rows.insert(&batch.peers)?;
    rows.insert(&batch.edges)?;
    rows.insert(&batch.slices)?;
    rows.insert(&batch.samples)?;
    let sql = "UPDATE recording SET last_ns = ?, root_launch = coalesce(?, root_launch)";
    let root = batch.root.map(|root| signed(root.0));
    let mut update = rows.transaction().prepare_cached(sql)?;
    update.execute(params![signed(batch.last_event.0), root]).map(drop)
}

fn write_ending(rows: &mut SummingWriter<'_>, ending: &Ending) -> rusqlite::Result<()> {
    rows.transaction().execute(
        "UPDATE recording SET wall_ns = ?, ended = ?, allowed_cpus = coalesce(?, allowed_cpus)",
        params![ending.wall.map(|wall| signed(wall.0)), ending.ended, ending.allowed_cpus],
    )?;
    rows.insert(&ending.losses())?;
    rows.insert(&ending.calibration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_events::header;

    #[test]
    fn a_path_is_never_read_as_a_uri_or_as_an_in_memory_database() {
        for path in [":memory:", "file::memory:", "file:x?mode=memory"] {
            assert!(open(Path::new(path), "NORMAL").is_err(), "{path}");
        }
    }

    #[test]
    fn without_shared_memory_the_recorder_locks_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.db");
        let mut connection = Connection::open(&path).unwrap();
        create_schema(&mut connection, &header(), Redaction::Mask).unwrap();
        let shared = log::with_suffix(&path, "-shm");
        std::os::unix::fs::symlink("nowhere", &shared).unwrap();
        let connection = begin_log(connection, &path).unwrap();
        connection.execute_batch("UPDATE recording SET wall_ns = 5").unwrap();
        assert!(log::wal_path(&path).metadata().unwrap().len() > 0);
        let other = Connection::open(&path).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        let refused = other.query_row(READ_ONCE, [], |_| Ok(())).unwrap_err();
        assert_eq!(refused.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
        end_log(&connection).unwrap();
        assert!(!log::wal_path(&path).exists());
    }
}
