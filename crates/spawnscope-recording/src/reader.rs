//! Reads the rows of a recording as plain data: whole tables within one transaction, because a
//! recorder may be writing to the recording. The reader does not trust the file: a value that no
//! recorder writes is an error that names the table and the column, and checksums reveal changed
//! rows. The row types are in `spawnscope_data::rows`.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use rusqlite::Transaction;
use rusqlite::types::ValueRef;

use spawnscope_data::event::{Nanos, ObjectKind, syscalls};
use spawnscope_data::ids::Ids;
use spawnscope_data::table::{Row, Table};

use super::contradictions::{self, Limits, SpanChecker};
use super::error::RecordError;
use super::sums::{RowHasher, TableSum};
use super::tables::{self, ChecksumRow, RecordingRow, TABLES, TextRow};
use super::values::{BadValue, Fields, Index, ObjectIndex, Sqlite};

pub use super::open::RecordingFile;
pub use spawnscope_data::contradictions::{Contradiction, Contradictions};
pub use spawnscope_data::rows::{
    ExecRow, FailedExecRow, FrameId, FrameRow, Info, Label, LaunchRow, ObjectRef, ObjectRow, Origin, Recording,
    SampleRow, Scope, SliceRow, StackId, StackRow, TextId, Texts, ThreadRow, WakerRow,
};

const MAX_COLUMNS: usize = 32;

/// The first format version in which a socket is the object of a polling call only if the call did
/// not time out. The sockets of polling calls in earlier versions are ignored.
const RELIABLE_POLLED_SOCKETS_SINCE: i32 = 12;
const POLLS: [u16; 4] = syscalls::numbers(["poll", "select", "pselect6", "ppoll"]);

const TOO_LONG: &str = "the lives of its processes add up to more than 292 years";

impl RecordingFile {
    /// Reads what was recorded and how the recording ended, without launches and other rows.
    pub fn info(&self) -> Result<Info, RecordError> {
        Snapshot::begin(self)?.info()
    }

    /// Returns the name of each table, its number of rows and its checksum. The checksums are
    /// computed if the recording has none. Equal contents have equal checksums, wherever SQLite
    /// stores the rows in the file.
    pub fn sums(&self) -> Result<Vec<(String, u64, u64)>, RecordError> {
        Snapshot::begin(self)?.table_sums()
    }

    /// Reads everything except slices, samples and threads, as of one instant.
    ///
    /// # Errors
    /// `Corrupt` or `BadValue` if the file is damaged, `Locked` if another program holds it.
    pub fn read(&self) -> Result<Recording, RecordError> {
        Snapshot::begin(self)?.recording()
    }

    /// Reads the threads other than the first of each process, in order of creation.
    pub fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        Snapshot::begin(self)?.threads()
    }

    /// Calls `handle` with each slice in recorded order, which is nearly chronological. Slices
    /// refer to the texts and objects that `read` returns. Returns contradictions between slices
    /// and the rest of the recording.
    pub fn slices(&self, handle: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        Snapshot::begin(self)?.slices(handle)
    }

    /// Calls `handle` with each sample, in no particular order. Samples refer to the stacks that
    /// `read` returns. Returns contradictions between samples and the rest of the recording.
    pub fn samples(&self, handle: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        Snapshot::begin(self)?.samples(handle)
    }
}

/// The recording within one transaction. Each table that is read is compared with its checksum.
struct Snapshot<'f> {
    file: &'f RecordingFile,
    transaction: Transaction<'f>,
    /// The checksums of the tables in the file. Empty before version 8, and if another program has
    /// written to the recording.
    sums: HashMap<String, TableSum>,
    /// What follows from the recording's duration. Values are checked against it once it is known.
    limits: OnceCell<Limits>,
    /// Values that exceed these limits.
    exceeded: RefCell<Contradictions>,
}

impl<'f> Snapshot<'f> {
    fn begin(file: &'f RecordingFile) -> Result<Snapshot<'f>, RecordError> {
        let transaction = file.connection.unchecked_transaction();
        let mut snapshot = Snapshot {
            file,
            transaction: transaction.map_err(|source| RecordError::unreadable(&file.path, source))?,
            sums: HashMap::new(),
            limits: OnceCell::new(),
            exceeded: RefCell::default(),
        };
        let sums: Vec<ChecksumRow> = snapshot.rows(&Index::default())?;
        let known_tables = TABLES.iter().filter(|table| table.since() <= file.version);
        // The table `checksum` has no checksum of itself.
        let is_complete = sums.len() + 1 == known_tables.count();
        snapshot.sums =
            sums.into_iter().map(|ChecksumRow { name, rows, sum }| (name, TableSum { rows, sum })).collect();
        if is_complete || snapshot.sums.is_empty() {
            Ok(snapshot)
        } else {
            Err(snapshot.corrupt("table checksum does not have one row for each other table"))
        }
    }

    fn recording(&self) -> Result<Recording, RecordError> {
        let (texts, mut index) = self.texts()?;
        self.begin_checks()?;
        let (objects, _) = self.objects(&index)?;
        let (frames, stacks) = self.stacks(&mut index)?;
        let mut recording = Recording {
            info: self.info()?,
            launches: self.rows(&index)?,
            execs: self.rows(&index)?,
            failed_execs: self.rows(&index)?,
            stops: self.rows(&index)?,
            objects,
            peers: self.rows(&index)?,
            edges: self.rows(&index)?,
            frames,
            stacks,
            texts,
            calibration: self.rows(&index)?,
        };
        if !contradictions::can_be_summed(&recording) {
            return Err(self.corrupt(TOO_LONG));
        }
        recording.info.contradictions = contradictions::find(&recording, &self.threads()?);
        recording.info.contradictions.extend(self.exceeded.take());
        Ok(recording)
    }

    fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        self.rows(&Index::default())
    }

    fn slices(&self, handle: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        // Only the ids of texts are needed: `recording` reads the texts and compares them with
        // their checksum.
        let mut index = Index { texts: self.ids::<TextRow>()?, ..Index::default() };
        (_, index.objects) = self.objects(&index)?;
        let info = self.info()?;
        self.begin_checks()?;
        let mut checker = self.span_checker(info.last_event)?;
        let numbers = syscalls::Numbers::for_machine(&info.arch);
        let version = self.file.version;
        self.each(&index, |mut row: SliceRow| {
            row.syscall = row.syscall.and_then(|number| numbers.x86_64(number));
            if version < RELIABLE_POLLED_SOCKETS_SINCE && row.syscall.is_some_and(|call| POLLS.contains(&call)) {
                row.object = row.object.filter(|object| object.kind() != ObjectKind::Socket);
            }
            checker.check_slice(&row);
            handle(row);
        })?;
        self.finish_checks(checker)
    }

    fn samples(&self, handle: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        let index = Index { stacks: self.ids::<StackRow>()?, ..Index::default() };
        let mut checker = self.span_checker(self.info()?.last_event)?;
        self.begin_checks()?;
        self.each(&index, |row| {
            checker.check_sample(&row);
            handle(row);
        })?;
        self.finish_checks(checker)
    }

    /// Checks the values that are read from now on against the limits that follow from the
    /// recording's duration.
    fn begin_checks(&self) -> Result<(), RecordError> {
        let limits = Limits::of(&self.recording_row()?);
        self.limits.get_or_init(|| limits);
        Ok(())
    }

    fn finish_checks(&self, checker: SpanChecker) -> Result<Contradictions, RecordError> {
        let mut found = checker.finish().ok_or_else(|| self.corrupt(TOO_LONG))?;
        found.extend(self.exceeded.take());
        Ok(found)
    }

    fn span_checker(&self, end: Nanos) -> Result<SpanChecker, RecordError> {
        Ok(SpanChecker::new(self.ids::<LaunchRow>()?, self.ids::<ThreadRow>()?, end))
    }

    /// Reads the labels, which are few and short, and adds labels for the machine from the table
    /// `recording`.
    fn labels(&self, recording: &RecordingRow) -> Result<Vec<Label>, RecordError> {
        let mut labels: Vec<Label> = Vec::new();
        self.each_undecoded::<Label>(&Index::default(), |fields| {
            let label: Label = fields.row()?;
            if labels.len() == Label::MAX_COUNT {
                return Err(fields.bad(format!("more than {} labels", Label::MAX_COUNT)));
            }
            labels.push(
                Label::new(&label.key, &label.value).map_err(|why| fields.bad(format!("an invalid label: {why}")))?,
            );
            Ok(())
        })?;
        let machine = [("host", &recording.hostname), ("kernel", &recording.kernel), ("arch", &recording.arch)];
        for (key, value) in machine {
            let is_given = labels.iter().any(|label| label.key == key);
            labels.extend(Label::new(key, value).ok().filter(|label| !is_given && !label.value.is_empty()));
        }
        labels.sort_unstable();
        Ok(labels)
    }

    /// Returns the name, the number of rows and the checksum of each table, sorted by name.
    fn table_sums(&self) -> Result<Vec<(String, u64, u64)>, RecordError> {
        let known_tables = TABLES.iter().filter(|table| table.since() <= self.file.version);
        let mut sums = Vec::new();
        for table in known_tables.filter(|table| table.name != tables::table_of::<ChecksumRow>().name) {
            let sum = match self.sums.get(table.name) {
                Some(sum) => *sum,
                None => self.compute_sum(table)?,
            };
            sums.push((table.name.to_owned(), sum.rows, sum.sum));
        }
        sums.sort_unstable();
        Ok(sums)
    }

    fn compute_sum(&self, table: &Table) -> Result<TableSum, RecordError> {
        let version = self.file.version;
        let known = table.columns.iter().filter(|column| column.since <= version).count();
        let (mut sum, mut hasher) = (TableSum::default(), RowHasher::default());
        self.each_stored(table, &tables::select(table, version), |rowid, row| {
            let values: Vec<ValueRef<'_>> = (1..=known).map(|column| row.get_ref_unwrap(column)).collect();
            sum.add(hasher.hash(rowid, &values));
            Ok(())
        })?;
        Ok(sum)
    }

    fn info(&self) -> Result<Info, RecordError> {
        let no_texts = Index::default();
        let row = self.recording_row()?;
        Ok(Info {
            labels: self.labels(&row)?,
            version: row.version,
            collector: row.collector,
            scope: row.scope,
            command: arguments(&row.command),
            cpus: row.cpus,
            allowed_cpus: row.allowed_cpus,
            arch: row.arch,
            started_unix_ns: row.started_unix_ns,
            root: row.root,
            last_event: row.last_event,
            wall: row.wall,
            is_live: self.file.is_live,
            ended: row.ended,
            missing: self.rows(&no_texts)?,
            lost: self.rows(&no_texts)?,
            contradictions: Contradictions::default(),
        })
    }

    fn recording_row(&self) -> Result<RecordingRow, RecordError> {
        let mut rows: Vec<RecordingRow> = self.rows(&Index::default())?;
        let only = rows.pop().filter(|_| rows.is_empty());
        only.ok_or_else(|| self.corrupt("table recording does not have exactly one row"))
    }

    fn texts(&self) -> Result<(Texts, Index), RecordError> {
        let mut texts = Texts::default();
        let mut ids = Vec::new();
        let mut bytes = 0;
        let max_bytes = self.file.bytes;
        self.each_undecoded::<TextRow>(&Index::default(), |fields| {
            ids.push(fields.decode()?);
            let text = fields.bytes()?;
            // In a hostile file, several texts may share pages, so that a small file could exhaust
            // memory.
            bytes += text.len() as u64;
            if bytes > max_bytes {
                return Err(fields.bad("more bytes than the file has".to_owned()));
            }
            texts.push(text);
            Ok(())
        })?;
        let texts_index = Index { texts: Ids::new(ids), ..Index::default() };
        Ok((texts, texts_index))
    }

    /// Reads the objects and indexes them. `index` must already contain the texts.
    fn objects(&self, index: &Index) -> Result<(Vec<ObjectRow>, ObjectIndex), RecordError> {
        let (mut ids, mut rows, mut references) = (Vec::new(), Vec::new(), Vec::new());
        self.each(index, |(id, row): (i64, ObjectRow)| {
            ids.push(id);
            references.extend(ObjectRef::new(row.kind, rows.len()));
            rows.push(row);
        })?;
        Ok((rows, (Ids::new(ids), references)))
    }

    fn stacks(&self, index: &mut Index) -> Result<(Vec<FrameRow>, Vec<StackRow>), RecordError> {
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        self.each(index, |(id, row)| {
            ids.push(id);
            frames.push(row);
        })?;
        index.frames = Ids::new(ids);
        index.stacks = self.ids::<StackRow>()?;
        let mut stacks = Vec::new();
        self.each_undecoded::<StackRow>(index, |fields| {
            let (id, row): (StackId, StackRow) = fields.row()?;
            stacks.push(row);
            check_caller(id, row.caller)
        })?;
        Ok((frames, stacks))
    }

    /// Reads only the rowids of a table. The other columns and the checksum are checked when the
    /// rows are read.
    fn ids<R: Row<Sqlite>>(&self) -> Result<Ids, RecordError> {
        let table = R::TABLE;
        let mut ids = Vec::new();
        if table.since() > self.file.version {
            return Ok(Ids::new(ids));
        }
        self.each_stored(table, &tables::select_ids(table), |rowid, _| {
            ids.push(rowid);
            Ok(())
        })?;
        Ok(Ids::new(ids))
    }

    /// Calls `handle` with each row of a statement, and with its rowid, which is the first value.
    /// Checks that rowids ascend, because reading pages that refer to each other in a cycle would
    /// never end.
    fn each_stored(
        &self,
        table: &Table,
        select: &str,
        mut handle: impl FnMut(i64, &rusqlite::Row<'_>) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        let unreadable = |source| self.unreadable(source);
        let mut statement = self.transaction.prepare(select).map_err(unreadable)?;
        let mut rows = statement.raw_query();
        let mut before = None;
        while let Some(row) = rows.next().map_err(unreadable)? {
            let rowid: i64 = row.get(0).map_err(unreadable)?;
            if before.is_some_and(|before| rowid <= before) {
                return Err(self.corrupt(&format!("the rows of table {} are not in order", table.name)));
            }
            before = Some(rowid);
            handle(rowid, row)?;
        }
        Ok(())
    }

    fn rows<R: Row<Sqlite>>(&self, index: &Index) -> Result<Vec<R>, RecordError> {
        let mut rows = Vec::new();
        self.each(index, |row| rows.push(row))?;
        Ok(rows)
    }

    fn each<R: Row<Sqlite>>(&self, index: &Index, mut handle: impl FnMut(R)) -> Result<(), RecordError> {
        self.each_undecoded::<R>(index, |fields| fields.row().map(&mut handle))
    }

    /// Calls `handle` with the undecoded values of each row of a table, and finally compares the
    /// table with its checksum.
    fn each_undecoded<R: Row<Sqlite>>(
        &self,
        index: &Index,
        mut handle: impl FnMut(&mut Fields) -> Result<(), BadValue>,
    ) -> Result<(), RecordError> {
        let (table, version) = (R::TABLE, self.file.version);
        if table.since() > version {
            return Ok(());
        }
        let mut sum = TableSum::default();
        let mut hasher = self.sums.contains_key(table.name).then(RowHasher::default);
        let known = table.columns.iter().filter(|column| column.since <= version).count();
        let limits = self.limits.get().map(|limits| limits.of_columns(table)).unwrap_or_default();
        self.each_stored(table, &tables::select(table, version), |rowid, row| {
            let mut values = [ValueRef::Null; MAX_COLUMNS];
            let values = &mut values[..table.columns.len()];
            for (column, value) in values.iter_mut().enumerate() {
                *value = row.get_ref_unwrap(column + 1);
            }
            if let Some(hasher) = &mut hasher {
                // The columns of later versions, which come last, are not part of the checksum.
                sum.add(hasher.hash(rowid, &values[..known]));
            }
            handle(&mut Fields::new(values, table, index)).map_err(|bad| self.bad_value(bad))?;
            contradictions::check_limits(&limits, values, &mut self.exceeded.borrow_mut());
            Ok(())
        })?;
        match self.sums.get(table.name) {
            Some(recorded) if *recorded != sum => Err(self.corrupt(&format!(
                "the rows of table {} do not match their checksum; if another program changed them on purpose, it must also run \
                 `DELETE FROM checksum`",
                table.name
            ))),
            _ => Ok(()),
        }
    }

    fn unreadable(&self, source: rusqlite::Error) -> RecordError {
        RecordError::unreadable(&self.file.path, source)
    }

    fn corrupt(&self, detail: &str) -> RecordError {
        RecordError::Corrupt { path: self.file.path.clone(), detail: detail.to_owned() }
    }

    fn bad_value(&self, bad: BadValue) -> RecordError {
        let BadValue { table, column, found } = bad;
        RecordError::BadValue { path: self.file.path.clone(), table, column, found }
    }
}

/// Checks that the caller of a chain is stored before the chain, which excludes cycles.
fn check_caller(id: StackId, caller: Option<StackId>) -> Result<(), BadValue> {
    match caller {
        Some(caller) if caller >= id => {
            Err(BadValue { table: "stack", column: "caller", found: "a reference to itself or a later row".to_owned() })
        }
        _ => Ok(()),
    }
}

fn arguments(argv: &[u8]) -> Vec<Vec<u8>> {
    match argv.strip_suffix(b"\0") {
        Some(argv) => argv.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect(),
        None => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
