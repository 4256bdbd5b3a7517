//! Takes rows out of a recording, as plain data. It trusts nothing in the file: what no recorder writes is an error that
//! names table and column. The row types are in `rows`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::event::{
    Calibration, Constant, Language, LeftCpu, Loss, Mechanism, Missing, ObjectKind, Pid, TaskId, syscalls,
};

use super::claim;
use super::error::{self, RecordError};
use super::fields::{BadValue, Fields, FromColumn, Ids, Index, ObjectIndex};
use super::store::{self, LOCK_PATIENCE};
use super::tables::{
    CALIBRATION, EXEC, FAILED_EXEC, FRAME, LAUNCH, LOST, MISSING, OBJECT, RECORDING, SAMPLE, SLICE, STACK, TEXT,
    THREAD, Table,
};
use super::version::{self, Identity};

pub use super::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, LaunchRow, ObjectRef, ObjectRow, Origin, Recording, SampleRow,
    Scope, SliceRow, StackId, StackRow, TextId, Texts, ThreadRow, WakerRow,
};

/// A recording that is open for reading. It may still be growing: each read gives what is complete by then.
pub struct RecordingFile {
    connection: Connection,
    path: PathBuf,
    /// Of the format.
    version: i32,
    is_live: bool,
}

impl RecordingFile {
    /// Opens a recording. One whose recorder was killed inside a batch is first taken back to the batch before.
    ///
    /// # Errors
    /// `Missing`, `NotARecording`, `NewerVersion`, `Corrupt`, `Locked`, `NeedsRepair` and others.
    pub fn open(path: &Path) -> Result<RecordingFile, RecordError> {
        RecordingFile::open_within(path, LOCK_PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<RecordingFile, RecordError> {
        match fs::metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(RecordError::Missing { path: path.to_owned() });
            }
            Err(source) => return Err(RecordError::io("open", path, source)),
            Ok(metadata) if !metadata.is_file() => return Err(RecordError::NotARecording { path: path.to_owned() }),
            Ok(_) => {}
        }
        // Looked at before SQLite opens the file: closing any descriptor of it would lift SQLite's own locks.
        let is_live = fs::File::open(path).is_ok_and(|file| claim::is_claimed(&file));
        let failed = |source| not_opened(path, source);
        let mut connection = store::open(path, OpenFlags::SQLITE_OPEN_READ_ONLY, patience).map_err(failed)?;
        let mut numbers = identity(&connection);
        if numbers.as_ref().is_err_and(error::needs_rollback) {
            connection = store::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE, patience).map_err(failed)?;
            numbers = identity(&connection);
        }
        let (application_id, user_version) = numbers.map_err(failed)?;
        let path = path.to_owned();
        match version::identify(application_id, user_version) {
            Identity::Readable => Ok(RecordingFile {
                connection,
                path,
                version: user_version,
                is_live,
            }),
            Identity::Newer(found) => Err(RecordError::NewerVersion {
                path,
                found,
                known: version::CURRENT,
            }),
            Identity::Foreign => Err(RecordError::NotARecording { path }),
        }
    }

    /// Everything but slices, samples and threads, as of one instant.
    ///
    /// # Errors
    /// `Corrupt` or `BadValue` when the file is damaged, `Locked` when another program holds it.
    pub fn read(&self) -> Result<Recording, RecordError> {
        // One transaction, so that a recording that grows meanwhile is not read half old and half new.
        let _snapshot = self
            .connection
            .unchecked_transaction()
            .map_err(|source| self.failed(source))?;
        let (texts, mut index) = self.texts()?;
        let (objects, _) = self.objects(&index)?;
        let (frames, stacks) = self.stacks(&mut index)?;
        Ok(Recording {
            info: self.info()?,
            launches: self.rows(&LAUNCH, &index, launch)?,
            execs: self.rows(&EXEC, &index, exec)?,
            failed_execs: self.rows(&FAILED_EXEC, &index, failed_exec)?,
            objects,
            frames,
            stacks,
            texts,
            calibration: self.rows(&CALIBRATION, &Index::default(), calibration)?,
        })
    }

    /// Threads other than the first of their process, in order of creation.
    ///
    /// # Errors
    /// As `read`.
    pub fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        self.rows(&THREAD, &Index::default(), thread)
    }

    /// Calls `take` with each slice in the order they were recorded, which is nearly that of time. Their texts and
    /// objects are those of `read`.
    ///
    /// # Errors
    /// As `read`.
    pub fn slices(&self, take: &mut dyn FnMut(SliceRow)) -> Result<(), RecordError> {
        let _snapshot = self
            .connection
            .unchecked_transaction()
            .map_err(|source| self.failed(source))?;
        let (_, mut index) = self.texts()?;
        (_, index.objects) = self.objects(&index)?;
        let numbers = syscalls::Numbers::of(&self.info()?.arch);
        self.each(&SLICE, &index, |fields| slice(fields, &numbers).map(&mut *take))
    }

    /// Calls `take` with each sample, in no order. Their stacks are those of `read`.
    ///
    /// # Errors
    /// As `read`.
    pub fn samples(&self, take: &mut dyn FnMut(SampleRow)) -> Result<(), RecordError> {
        let _snapshot = self
            .connection
            .unchecked_transaction()
            .map_err(|source| self.failed(source))?;
        let (_, mut index) = self.texts()?;
        self.stacks(&mut index)?;
        self.each(&SAMPLE, &index, |fields| sample(fields).map(&mut *take))
    }

    fn info(&self) -> Result<Info, RecordError> {
        let no_texts = Index::default();
        let mut rows = self.rows(&RECORDING, &no_texts, info)?;
        let only = rows.pop().filter(|_| rows.is_empty());
        let info = only.ok_or_else(|| self.corrupt("table recording does not hold exactly one row"))?;
        Ok(Info {
            missing: self.rows(&MISSING, &no_texts, missing)?,
            lost: self.rows(&LOST, &no_texts, loss)?,
            is_live: self.is_live,
            ..info
        })
    }

    fn texts(&self) -> Result<(Texts, Index), RecordError> {
        let mut texts = Texts::default();
        let mut ids = Vec::new();
        self.each(&TEXT, &Index::default(), |fields| {
            ids.push(fields.required()?);
            texts.push(fields.bytes()?);
            Ok(())
        })?;
        let texts_index = Index {
            texts: Ids::new(ids),
            ..Index::default()
        };
        Ok((texts, texts_index))
    }

    /// Objects, whose texts `index` knows, with their own index.
    fn objects(&self, index: &Index) -> Result<(Vec<ObjectRow>, ObjectIndex), RecordError> {
        let (mut ids, mut rows, mut references) = (Vec::new(), Vec::new(), Vec::new());
        self.each(&OBJECT, index, |fields| {
            ids.push(fields.required()?);
            let row = object(fields)?;
            references.extend(ObjectRef::new(row.kind, rows.len()));
            rows.push(row);
            Ok(())
        })?;
        Ok((rows, (Ids::new(ids), references)))
    }

    /// Frames and call chains, which `index` knows from then on.
    fn stacks(&self, index: &mut Index) -> Result<(Vec<FrameRow>, Vec<StackRow>), RecordError> {
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        self.each(&FRAME, index, |fields| {
            ids.push(fields.required()?);
            frames.push(frame(fields)?);
            Ok(())
        })?;
        index.frames = Ids::new(ids);
        let mut ids = Vec::new();
        self.each(&STACK, &Index::default(), |fields| {
            ids.push(fields.required()?);
            Ok(())
        })?;
        index.stacks = Ids::new(ids);
        Ok((frames, self.rows(&STACK, index, stack)?))
    }

    fn rows<T>(
        &self,
        table: &'static Table,
        index: &Index,
        row: impl Fn(&mut Fields) -> Result<T, BadValue>,
    ) -> Result<Vec<T>, RecordError> {
        let mut rows = Vec::new();
        self.each(table, index, |fields| row(fields).map(|row| rows.push(row)))?;
        Ok(rows)
    }

    fn each(
        &self,
        table: &'static Table,
        index: &Index,
        mut take: impl FnMut(&mut Fields) -> Result<(), BadValue>,
    ) -> Result<(), RecordError> {
        if table.since > self.version {
            return Ok(());
        }
        let mut statement = self
            .connection
            .prepare(&table.select(self.version))
            .map_err(|source| self.failed(source))?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(|source| self.failed(source))? {
            take(&mut Fields::new(row, table, index)).map_err(|bad| self.bad_value(bad))?;
        }
        Ok(())
    }

    fn failed(&self, source: rusqlite::Error) -> RecordError {
        // SQLite does not understand a statement: a table or a column is not there.
        let is_mutilated = source.sqlite_error_code() == Some(ErrorCode::Unknown)
            || matches!(source, rusqlite::Error::SqlInputError { .. });
        if is_mutilated {
            self.corrupt(&source.to_string())
        } else {
            RecordError::sqlite("read", &self.path, source)
        }
    }

    fn corrupt(&self, detail: &str) -> RecordError {
        RecordError::Corrupt {
            path: self.path.clone(),
            detail: detail.to_owned(),
        }
    }

    fn bad_value(&self, bad: BadValue) -> RecordError {
        let BadValue { table, column, found } = bad;
        RecordError::BadValue {
            path: self.path.clone(),
            table,
            column,
            found,
        }
    }
}

/// Why a file that is there was not opened. SQLite keeps the system's reason, such as a lack of permission, to itself.
fn not_opened(path: &Path, source: rusqlite::Error) -> RecordError {
    if source.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        && let Err(refusal) = fs::File::open(path)
    {
        return RecordError::io("open", path, refusal);
    }
    RecordError::sqlite("open", path, source)
}

/// The two numbers that say what a file is. The first access to the file: here locks and damage show.
fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

// Each of these takes the columns in the order that `tables` lists them.

fn info(fields: &mut Fields) -> Result<Info, BadValue> {
    Ok(Info {
        version: fields.word()?,
        collector: fields.word()?,
        scope: fields.word_of(&Scope::ALL, Scope::name)?,
        command: arguments(fields.bytes()?),
        cpus: fields.required()?,
        arch: fields.word()?,
        started_unix_ns: fields.required()?,
        root: fields.optional()?,
        last: fields.required()?,
        wall: fields.optional()?,
        is_live: false,
        ended: fields.optional_word()?,
        missing: Vec::new(),
        lost: Vec::new(),
    })
}

fn missing(fields: &mut Fields) -> Result<Missing, BadValue> {
    Ok(Missing {
        what: fields.word()?,
        effect: fields.word()?,
    })
}

fn calibration(fields: &mut Fields) -> Result<Calibration, BadValue> {
    Ok(Calibration {
        what: fields.word_of(&Constant::ALL, Constant::name)?,
        ns: fields.real()?,
        low_ns: fields.optional_real()?,
        high_ns: fields.optional_real()?,
    })
}

fn loss(fields: &mut Fields) -> Result<Loss, BadValue> {
    Ok(Loss {
        kind: fields.word()?,
        events: fields.required()?,
    })
}

fn launch(fields: &mut Fields) -> Result<LaunchRow, BadValue> {
    Ok(LaunchRow {
        id: fields.required()?,
        parent: fields.optional()?,
        parent_task: fields.optional()?,
        pid: fields.optional()?,
        origin: fields.one_of(&Origin::ALL)?,
        mechanism: fields.optional_one_of(&Mechanism::ALL)?,
        create: fields.optional()?,
        created: fields.optional()?,
        first_run: fields.optional()?,
        exit: fields.optional()?,
        zombie: fields.optional()?,
        reaped: fields.optional()?,
        wait_status: fields.optional()?,
        parent_rss_bytes: fields.optional()?,
        parent_table_bytes: fields.optional()?,
        exit_cpu: fields.optional()?,
        cpu: fields.optional()?,
        name: fields.optional()?,
        setup_closes: fields.optional()?,
        setup_close_span: fields.optional()?,
        prepare: fields.optional()?,
        parent_tidied: fields.optional()?,
        parent_faults: fields.optional()?,
        script_stack: fields.optional()?,
        native_stack: fields.optional()?,
    })
}

fn exec(fields: &mut Fields) -> Result<ExecRow, BadValue> {
    Ok(ExecRow {
        launch: fields.required()?,
        enter: fields.optional()?,
        returned: fields.optional()?,
        load_end: fields.optional()?,
        has_loader: fields.optional()?,
        enter_cpu: fields.optional()?,
        return_cpu: fields.optional()?,
        load_cpu: fields.optional()?,
        path: fields.required()?,
        interpreter: fields.optional()?,
        argv: fields.required()?,
        argv_bytes: fields.required()?,
        cwd: fields.optional()?,
        load_opens: fields.optional()?,
        load_failed_opens: fields.optional()?,
        load_cache: fields.optional()?,
    })
}

fn failed_exec(fields: &mut Fields) -> Result<FailedExecRow, BadValue> {
    Ok(FailedExecRow {
        launch: fields.required()?,
        enter: fields.required()?,
        returned: fields.required()?,
        path: fields.required()?,
        errno: fields.required()?,
    })
}

fn thread(fields: &mut Fields) -> Result<ThreadRow, BadValue> {
    Ok(ThreadRow {
        task: fields.required()?,
        launch: fields.required()?,
        creator: fields.optional()?,
        tid: fields.required()?,
        created: fields.required()?,
        ended: fields.optional()?,
        cpu: fields.optional()?,
    })
}

fn object(fields: &mut Fields) -> Result<ObjectRow, BadValue> {
    Ok(ObjectRow {
        kind: fields.one_of(&ObjectKind::ALL)?,
        device: fields.required()?,
        inode: fields.required::<i64>()?.cast_unsigned(),
        path: fields.optional()?,
    })
}

fn frame(fields: &mut Fields) -> Result<FrameRow, BadValue> {
    Ok(FrameRow {
        language: fields.one_of(&Language::ALL)?,
        function: fields.optional()?,
        file: fields.optional()?,
        line: fields.optional()?,
        module: fields.optional()?,
        address: fields.optional::<i64>()?.map(i64::cast_unsigned),
        is_inlined: fields.required()?,
    })
}

fn stack(fields: &mut Fields) -> Result<StackRow, BadValue> {
    let id: StackId = fields.required()?;
    Ok(StackRow {
        frame: fields.required()?,
        caller: fields.earlier(id)?,
        is_truncated: fields.required()?,
    })
}

fn slice(fields: &mut Fields, numbers: &syscalls::Numbers) -> Result<SliceRow, BadValue> {
    Ok(SliceRow {
        task: fields.required()?,
        off: fields.required()?,
        on_span: fields.optional()?,
        off_span: fields.optional()?,
        wake_span: fields.optional()?,
        reason: fields.one_of(&LeftCpu::ALL)?,
        syscall: fields.optional()?.and_then(|number| numbers.x86_64(number)),
        argument: fields.optional::<i64>()?.map(i64::cast_unsigned),
        waker: waker(fields)?,
        object: fields.optional()?,
        calls: fields.optional()?.unwrap_or(0),
        is_waker_certain: fields.optional()?.unwrap_or(true),
    })
}

fn sample(fields: &mut Fields) -> Result<SampleRow, BadValue> {
    Ok(SampleRow {
        task: fields.required()?,
        at: fields.required()?,
        span: fields.required()?,
        is_waiting: fields.required()?,
        stack: fields.required()?,
    })
}

fn waker(fields: &mut Fields) -> Result<Option<WakerRow>, BadValue> {
    let by: Option<Waking> = fields.optional()?;
    let name: Option<TextId> = fields.optional()?;
    Ok(match by {
        Some(Waking::Interrupt) => Some(WakerRow::Interrupt),
        Some(Waking::Task(task)) => Some(WakerRow::Task(task)),
        Some(Waking::Other(pid)) => Some(WakerRow::Other(pid, name)),
        None => name.map(|name| WakerRow::Other(Pid(0), Some(name))),
    })
}

/// What the column `waker` holds, without the name that the next column has.
enum Waking {
    Interrupt,
    Task(TaskId),
    Other(Pid),
}

impl FromColumn for Waking {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        match value {
            0 => Some(Waking::Interrupt),
            1.. => TaskId::from_column(value, index).map(Waking::Task),
            _ => Pid::from_column(value.checked_neg()?, index).map(Waking::Other),
        }
    }
}

/// Takes an argv apart, of which each argument ends with NUL.
fn arguments(argv: &[u8]) -> Vec<Vec<u8>> {
    match argv.strip_suffix(b"\0") {
        Some(argv) => argv.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
