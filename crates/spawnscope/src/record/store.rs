//! The SQL that writes a recording: the new file, a batch of rows in one transaction, the end. When to write and what to
//! do on failure is `writer`'s.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};

use crate::event::{Language, LaunchId, LeftCpu, Mechanism, Nanos, ObjectKind};

use super::aside::{self, Place};
use super::assemble::Batch;
use super::error::RecordError;
use super::intern::{NewObject, NewText};
use super::redact::Redaction;
use super::rows::{
    Ending, FailedExecRow, FrameId, Header, LaunchRow, ObjectRef, Origin, SampleRow, SliceRow, StackId, TextId,
    ThreadRow, WakerRow,
};
use super::stacks::NewStacks;
use super::tables::{CALIBRATION, EXEC, FAILED_EXEC, FRAME, LAUNCH, OBJECT, SAMPLE, SLICE, STACK, TEXT, THREAD};
use super::unfinished::OrderedExec;

/// How long to wait for another program that holds a lock, such as a report on the recording while it grows.
pub(super) const LOCK_PATIENCE: Duration = Duration::from_secs(5);

/// A recording that is open for writing.
pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
    place: Arc<Place>,
}

impl Store {
    /// Makes a new recording, keeping the one that stands there as `<path>.old`.
    pub(super) fn create(path: &Path, header: &Header, redaction: Redaction) -> Result<Store, RecordError> {
        let place = Arc::new(aside::make_room(path)?);
        let failed = |source| RecordError::sqlite("create", path, source);
        let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, LOCK_PATIENCE).map_err(failed)?;
        connection.execute_batch(SETTINGS).map_err(failed)?;
        create_schema(&mut connection, header, redaction).map_err(failed)?;
        Ok(Store {
            connection,
            path: path.to_owned(),
            place,
        })
    }

    /// Where it stands, to take it back when its connection is closed.
    pub(super) fn place(&self) -> Arc<Place> {
        Arc::clone(&self.place)
    }

    /// Writes a batch, all of it or nothing.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<(), RecordError> {
        write_batch(&mut self.connection, batch).map_err(|source| RecordError::sqlite("write", &self.path, source))
    }

    /// Notes which process is the command itself.
    pub(super) fn note_root(&self, root: LaunchId) -> Result<(), RecordError> {
        self.connection
            .execute("UPDATE recording SET root_launch = ?", [integer(root.0)])
            .map(drop)
            .map_err(|source| RecordError::sqlite("write", &self.path, source))
    }

    /// Notes how it ended.
    pub(super) fn finish(&mut self, ending: &Ending) -> Result<(), RecordError> {
        write_ending(&mut self.connection, ending).map_err(|source| RecordError::sqlite("finish", &self.path, source))
    }

    /// Tries to note why writing failed. On a disk that is full this mostly fails as well; then the recording ends as
    /// if it was cut off, and nothing is left to be done about it.
    pub(super) fn note_failure(&self, failure: &RecordError) {
        let ended = format!("failed: {failure}");
        let _ = self.connection.execute("UPDATE recording SET ended = ?", [ended]);
    }

    /// Gives up on locks sooner than a user would want.
    #[cfg(test)]
    pub(super) fn wait_no_longer_than(&self, patience: Duration) {
        self.connection.busy_timeout(patience).unwrap();
    }

    /// Leaves room for no more than this, as on a full disk.
    #[cfg(test)]
    pub(super) fn limit_pages(&self, pages: u32) {
        self.connection.pragma_update(None, "max_page_count", pages).unwrap();
    }
}

/// The rollback journal is what makes a batch all or nothing: a recorder killed inside a batch leaves the journal, and
/// the next reader takes the half-written batch back with it. The journal needs no fsync for that (only a crash of the
/// whole machine does), so synchronous is off: an fsync would disturb the disk of the command that is measured.
/// WAL would leave side files next to the recording and keep it from being read where one may not write.
const SETTINGS: &str = "
    PRAGMA journal_mode = DELETE;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -16384; -- KiB: a batch never spills to the file before it is complete
    PRAGMA temp_store = MEMORY;
";

/// Opens the file at `path`. URIs are off, and a relative path is marked as one, since SQLite takes `:memory:` for
/// something else than a file.
pub(super) fn open(path: &Path, mode: OpenFlags, patience: Duration) -> rusqlite::Result<Connection> {
    let file = if path.is_absolute() {
        path.to_owned()
    } else {
        Path::new(".").join(path)
    };
    let connection = Connection::open_with_flags(file, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(patience)?;
    Ok(connection)
}

/// In one transaction, so that a recorder killed here leaves an empty file or a whole one.
fn create_schema(connection: &mut Connection, header: &Header, redaction: Redaction) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(include_str!("schema.sql"))?;
    let command: Vec<u8> = header
        .command
        .iter()
        .flat_map(|argument| [argument.as_slice(), b"\0"].concat())
        .collect();
    transaction.execute(
        "INSERT INTO recording (id, version, collector, scope, command, cwd, kernel, arch, hostname, cpus, \
         started_unix_ns, origin_ns, last_ns) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
        params![
            env!("CARGO_PKG_VERSION"),
            header.collector,
            header.scope.name(),
            redaction.apply(&command),
            redaction.apply_to_path(&header.cwd),
            header.kernel,
            header.arch,
            header.hostname,
            header.cpus,
            header.started_unix_ns,
            integer(header.origin.0),
        ],
    )?;
    for missing in &header.missing {
        transaction.execute(
            "INSERT INTO missing (what, effect) VALUES (?, ?)",
            [&missing.what, &missing.effect],
        )?;
    }
    let mut insert = transaction.prepare(&CALIBRATION.insert())?;
    for constant in &header.calibration {
        insert.execute(params![
            constant.what.name(),
            constant.ns,
            constant.low_ns,
            constant.high_ns
        ])?;
    }
    drop(insert);
    transaction.commit()
}

/// Writes the rows of a batch in one transaction.
pub(super) fn write_batch(connection: &mut Connection, batch: &Batch) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    write_texts(&transaction, &batch.texts)?;
    write_stacks(&transaction, &batch.stacks)?;
    write_launches(&transaction, &batch.launches)?;
    let mut mention = transaction.prepare_cached("INSERT OR IGNORE INTO launch (id, origin) VALUES (?, ?)")?;
    for launch in &batch.mentioned {
        mention.execute(params![integer(launch.0), number(&Origin::ALL, Origin::Orphan)])?;
    }
    drop(mention);
    write_execs(&transaction, &batch.execs)?;
    write_failed_execs(&transaction, &batch.failed_execs)?;
    write_threads(&transaction, &batch.threads)?;
    write_objects(&transaction, &batch.objects)?;
    write_slices(&transaction, &batch.slices)?;
    write_samples(&transaction, &batch.samples)?;
    transaction
        .prepare_cached("UPDATE recording SET last_ns = ?")?
        .execute([integer(batch.last.0)])?;
    transaction.commit()
}

fn write_texts(transaction: &Transaction, texts: &[NewText]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&TEXT.insert())?;
    for new in texts {
        insert.execute(params![text(new.id), &*new.bytes])?;
    }
    Ok(())
}

fn write_launches(transaction: &Transaction, launches: &[LaunchRow]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&merge_launch())?;
    for row in launches {
        insert.execute(params![
            integer(row.id.0),
            row.parent.map(|parent| integer(parent.0)),
            row.parent_task.map(|task| integer(task.0)),
            row.pid.map(|pid| pid.0),
            number(&Origin::ALL, row.origin),
            row.mechanism.map(|mechanism| number(&Mechanism::ALL, mechanism)),
            nanos(row.create),
            nanos(row.created),
            nanos(row.first_run),
            nanos(row.exit),
            nanos(row.zombie),
            nanos(row.reaped),
            row.wait_status,
            row.parent_rss_bytes.map(integer),
            row.parent_table_bytes.map(integer),
            nanos(row.exit_cpu),
            nanos(row.cpu),
            row.name.map(text),
            row.setup_closes,
            nanos(row.setup_close_span),
            nanos(row.prepare),
            nanos(row.parent_tidied),
            row.parent_faults,
            row.script_stack.map(stack),
            row.native_stack.map(stack),
        ])?;
    }
    Ok(())
}

/// Adds a launch, or adds to its row what is known now. A late event about a launch that is no longer in memory makes a
/// row that knows little: it must not wipe out what the file knows, and an orphan (the largest number) that turns out
/// to have been created is none.
fn merge_launch() -> String {
    let merged: Vec<String> = LAUNCH.columns[1..]
        .iter()
        .map(|&column| match column {
            "origin" => "origin = min(excluded.origin, origin)".to_owned(),
            column => format!("{column} = coalesce(excluded.{column}, {column})"),
        })
        .collect();
    format!(
        "{} ON CONFLICT (id) DO UPDATE SET {}",
        LAUNCH.insert(),
        merged.join(", ")
    )
}

fn write_execs(transaction: &Transaction, execs: &[OrderedExec]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&EXEC.replace_at_rowid())?;
    for OrderedExec { ordinal, row } in execs {
        insert.execute(params![
            ordinal,
            integer(row.launch.0),
            nanos(row.enter),
            nanos(row.returned),
            nanos(row.load_end),
            row.has_loader,
            nanos(row.enter_cpu),
            nanos(row.return_cpu),
            nanos(row.load_cpu),
            text(row.path),
            row.interpreter.map(text),
            text(row.argv),
            integer(row.argv_bytes),
            row.cwd.map(text),
            row.load_opens,
            row.load_failed_opens,
            row.load_cache,
        ])?;
    }
    Ok(())
}

fn write_failed_execs(transaction: &Transaction, failed: &[FailedExecRow]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&FAILED_EXEC.insert())?;
    for row in failed {
        let (enter, returned) = (integer(row.enter.0), integer(row.returned.0));
        insert.execute(params![
            integer(row.launch.0),
            enter,
            returned,
            text(row.path),
            row.errno
        ])?;
    }
    Ok(())
}

fn write_threads(transaction: &Transaction, threads: &[ThreadRow]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&THREAD.replace())?;
    for row in threads {
        insert.execute(params![
            integer(row.task.0),
            integer(row.launch.0),
            row.creator.map(|creator| integer(creator.0)),
            row.tid.0,
            integer(row.created.0),
            nanos(row.ended),
            nanos(row.cpu),
        ])?;
    }
    Ok(())
}

fn write_objects(transaction: &Transaction, objects: &[NewObject]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&OBJECT.insert())?;
    for NewObject { reference, row } in objects {
        insert.execute(params![
            object(*reference),
            number(&ObjectKind::ALL, row.kind),
            row.device,
            row.inode.cast_signed(),
            row.path.map(text),
        ])?;
    }
    Ok(())
}

fn write_stacks(transaction: &Transaction, new: &NewStacks) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&FRAME.insert())?;
    for (id, row) in &new.frames {
        insert.execute(params![
            frame(*id),
            number(&Language::ALL, row.language),
            row.function.map(text),
            row.file.map(text),
            row.line,
            row.module.map(text),
            row.address.map(u64::cast_signed),
            row.is_inlined,
        ])?;
    }
    let mut insert = transaction.prepare_cached(&STACK.insert())?;
    for (id, row) in &new.stacks {
        insert.execute(params![
            stack(*id),
            frame(row.frame),
            row.caller.map(stack),
            row.is_truncated
        ])?;
    }
    Ok(())
}

fn write_slices(transaction: &Transaction, slices: &[SliceRow]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&SLICE.insert())?;
    for row in slices {
        let (waker, waker_text) = match row.waker {
            None => (None, None),
            Some(WakerRow::Task(task)) => (Some(integer(task.0)), None),
            Some(WakerRow::Interrupt) => (Some(0), None),
            Some(WakerRow::Other(pid, name)) => ((pid.0 != 0).then_some(-i64::from(pid.0)), name.map(text)),
        };
        insert.execute(params![
            integer(row.task.0),
            integer(row.off.0),
            nanos(row.on_span),
            nanos(row.off_span),
            nanos(row.wake_span),
            number(&LeftCpu::ALL, row.reason),
            row.syscall,
            row.argument.map(u64::cast_signed),
            waker,
            waker_text,
            row.object.map(object),
            row.calls,
            row.waker.map(|_| row.is_waker_certain),
        ])?;
    }
    Ok(())
}

fn write_samples(transaction: &Transaction, samples: &[SampleRow]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(&SAMPLE.insert())?;
    for row in samples {
        insert.execute(params![
            integer(row.task.0),
            integer(row.at.0),
            integer(row.span.0),
            row.is_waiting,
            stack(row.stack),
        ])?;
    }
    Ok(())
}

fn write_ending(connection: &mut Connection, ending: &Ending) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "UPDATE recording SET wall_ns = ?, ended = ?",
        params![nanos(ending.wall), ending.ended],
    )?;
    for loss in &ending.lost {
        // A collector may report one kind in several parts.
        transaction.execute(
            "INSERT INTO lost (kind, events) VALUES (?, ?) ON CONFLICT (kind) DO UPDATE SET events = events + excluded.events",
            params![loss.kind, integer(loss.events)],
        )?;
    }
    transaction.commit()
}

/// The number that stands for a value of an enum: its place among all of them.
fn number<T: Copy + PartialEq>(all: &[T], value: T) -> Option<i64> {
    all.iter()
        .position(|other| *other == value)
        .and_then(|place| i64::try_from(place).ok())
}

/// SQLite's integers are signed; nothing that is recorded comes near their end (292 years, 8 EiB).
fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn nanos(instant: Option<Nanos>) -> Option<i64> {
    instant.map(|instant| integer(instant.0))
}

/// `text.id` counts from 1.
fn text(id: TextId) -> i64 {
    i64::from(id.0) + 1
}

/// `frame.id` counts from 1.
fn frame(id: FrameId) -> i64 {
    i64::from(id.0) + 1
}

/// `stack.id` counts from 1.
fn stack(id: StackId) -> i64 {
    i64::from(id.0) + 1
}

/// `object.id` counts from 1.
fn object(reference: ObjectRef) -> i64 {
    reference.place() as i64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_always_that_of_a_file() {
        for path in [":memory:", "file::memory:", "file:x?mode=memory"] {
            assert!(
                open(Path::new(path), OpenFlags::SQLITE_OPEN_READ_WRITE, LOCK_PATIENCE).is_err(),
                "{path}"
            );
        }
    }
}
