//! A recording as of one instant, because a recorder may be writing to it. Reads whole tables and compares each with its checksum.

use std::collections::HashMap;

use rusqlite::Transaction;
use rusqlite::types::ValueRef;

use spawnscope_data::event::{Nanos, syscalls};

use super::super::checksum::{RowHasher, TableSum};
use super::super::contradictions::{self, Stretches, Tasks};
use super::super::error::RecordError;
use super::super::fields::{BadValue, Fields, Ids, Index, ObjectIndex};
use super::super::tables::{
    CALIBRATION, CHECKSUM, EXEC, FAILED_EXEC, FRAME, LAUNCH, LOST, MISSING, OBJECT, RECORDING, SAMPLE, SLICE, STACK,
    TABLES, TEXT, THREAD, Table,
};
use super::{RecordingFile, take};
use spawnscope_data::contradictions::Contradictions;
use spawnscope_data::rows::{
    FrameRow, Info, ObjectRef, ObjectRow, Recording, SampleRow, SliceRow, StackRow, Texts, ThreadRow,
};

const TOO_LONG: &str = "the lives of its processes add up to more than 292 years";

/// A recording within one transaction.
pub(super) struct Snapshot<'f> {
    file: &'f RecordingFile,
    transaction: Transaction<'f>,
    /// Empty before version 8, and if another program wrote the recording.
    sums: HashMap<String, TableSum>,
}

impl<'f> Snapshot<'f> {
    pub(super) fn of(file: &'f RecordingFile) -> Result<Snapshot<'f>, RecordError> {
        let transaction = file.opened.connection.unchecked_transaction();
        let mut snapshot = Snapshot {
            file,
            transaction: transaction.map_err(|source| RecordError::unreadable(&file.path, source))?,
            sums: HashMap::new(),
        };
        let sums = snapshot.rows(&CHECKSUM, &Index::default(), take::checksum)?;
        let is_complete = sums.len() == TABLES.len() - 1;
        snapshot.sums = sums.into_iter().collect();
        if is_complete || snapshot.sums.is_empty() {
            Ok(snapshot)
        } else {
            Err(snapshot.corrupt("table checksum does not have one row for each other table"))
        }
    }

    pub(super) fn recording(&self) -> Result<Recording, RecordError> {
        let (texts, mut index) = self.texts()?;
        let (objects, _) = self.objects(&index)?;
        let (frames, stacks) = self.stacks(&mut index)?;
        let mut recording = Recording {
            info: self.info()?,
            launches: self.rows(&LAUNCH, &index, take::launch)?,
            execs: self.rows(&EXEC, &index, take::exec)?,
            failed_execs: self.rows(&FAILED_EXEC, &index, take::failed_exec)?,
            objects,
            frames,
            stacks,
            texts,
            calibration: self.rows(&CALIBRATION, &Index::default(), take::calibration)?,
        };
        if !contradictions::can_be_summed(&recording) {
            return Err(self.corrupt(TOO_LONG));
        }
        recording.info.contradictions = contradictions::between(&recording, &self.threads()?);
        Ok(recording)
    }

    pub(super) fn threads(&self) -> Result<Vec<ThreadRow>, RecordError> {
        self.rows(&THREAD, &Index::default(), take::thread)
    }

    pub(super) fn slices(&self, take: &mut dyn FnMut(SliceRow)) -> Result<Contradictions, RecordError> {
        let (_, mut index) = self.texts()?;
        (_, index.objects) = self.objects(&index)?;
        let info = self.info()?;
        let mut stretches = self.stretches(info.last)?;
        let numbers = syscalls::Numbers::of(&info.arch);
        self.each(&SLICE, &index, |fields| {
            let row = take::slice(fields, &numbers)?;
            stretches.check_slice(&row);
            take(row);
            Ok(())
        })?;
        stretches.finish().ok_or_else(|| self.corrupt(TOO_LONG))
    }

    pub(super) fn samples(&self, take: &mut dyn FnMut(SampleRow)) -> Result<Contradictions, RecordError> {
        let (_, mut index) = self.texts()?;
        self.stacks(&mut index)?;
        let mut stretches = self.stretches(self.info()?.last)?;
        self.each(&SAMPLE, &index, |fields| {
            let row = take::sample(fields)?;
            stretches.check_sample(&row);
            take(row);
            Ok(())
        })?;
        stretches.finish().ok_or_else(|| self.corrupt(TOO_LONG))
    }

    /// Returns the checker for slices and samples.
    fn stretches(&self, end: Nanos) -> Result<Stretches, RecordError> {
        Ok(Stretches::new(Tasks::new(self.ids(&LAUNCH)?, self.ids(&THREAD)?), end))
    }

    fn info(&self) -> Result<Info, RecordError> {
        let no_texts = Index::default();
        let mut rows = self.rows(&RECORDING, &no_texts, take::info)?;
        let only = rows.pop().filter(|_| rows.is_empty());
        let info = only.ok_or_else(|| self.corrupt("table recording does not have exactly one row"))?;
        Ok(Info {
            missing: self.rows(&MISSING, &no_texts, take::missing)?,
            lost: self.rows(&LOST, &no_texts, take::loss)?,
            is_live: self.file.opened.is_live,
            ..info
        })
    }

    fn texts(&self) -> Result<(Texts, Index), RecordError> {
        let mut texts = Texts::default();
        let mut ids = Vec::new();
        let mut bytes = 0;
        let most_bytes = self.file.opened.bytes;
        self.each(&TEXT, &Index::default(), |fields| {
            ids.push(fields.required()?);
            let text = fields.bytes()?;
            // Several texts may share a page, so a small file could fill any memory.
            bytes += text.len() as u64;
            if bytes > most_bytes {
                return Err(fields.bad_last("more bytes than the file has".to_owned()));
            }
            texts.push(text);
            Ok(())
        })?;
        let texts_index = Index {
            texts: Ids::new(ids),
            ..Index::default()
        };
        Ok((texts, texts_index))
    }

    /// Reads the objects and indexes them. `index` already knows their texts.
    fn objects(&self, index: &Index) -> Result<(Vec<ObjectRow>, ObjectIndex), RecordError> {
        let (mut ids, mut rows, mut references) = (Vec::new(), Vec::new(), Vec::new());
        self.each(&OBJECT, index, |fields| {
            ids.push(fields.required()?);
            let row = take::object(fields)?;
            references.extend(ObjectRef::new(row.kind, rows.len()));
            rows.push(row);
            Ok(())
        })?;
        Ok((rows, (Ids::new(ids), references)))
    }

    /// Reads frames and call chains, and adds them to `index`.
    fn stacks(&self, index: &mut Index) -> Result<(Vec<FrameRow>, Vec<StackRow>), RecordError> {
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        self.each(&FRAME, index, |fields| {
            ids.push(fields.required()?);
            frames.push(take::frame(fields)?);
            Ok(())
        })?;
        index.frames = Ids::new(ids);
        let mut ids = Vec::new();
        self.each(&STACK, &Index::default(), |fields| {
            ids.push(fields.required()?);
            Ok(())
        })?;
        index.stacks = Ids::new(ids);
        Ok((frames, self.rows(&STACK, index, take::stack)?))
    }

    /// Reads only the rowids of a table. The reader of its rows checks the other columns and the checksum.
    fn ids(&self, table: &'static Table) -> Result<Vec<i64>, RecordError> {
        if table.since > self.file.opened.version {
            return Ok(Vec::new());
        }
        let failed = |source| RecordError::unreadable(&self.file.path, source);
        let mut statement = self.transaction.prepare(&table.select_ids()).map_err(failed)?;
        let mut rows = statement.raw_query();
        let mut ids = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            self.check_order(table, ids.last().copied(), row.get(0).map_err(failed)?)
                .map(|id| ids.push(id))?;
        }
        Ok(ids)
    }

    /// Pages that refer to each other in a cycle would never end.
    fn check_order(&self, table: &Table, before: Option<i64>, id: i64) -> Result<i64, RecordError> {
        match before {
            Some(before) if id <= before => {
                Err(self.corrupt(&format!("the rows of table {} are not in order", table.name)))
            }
            _ => Ok(id),
        }
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

    /// Calls `take` with each row of a table, and finally compares the table with its checksum.
    fn each(
        &self,
        table: &'static Table,
        index: &Index,
        mut take: impl FnMut(&mut Fields) -> Result<(), BadValue>,
    ) -> Result<(), RecordError> {
        let version = self.file.opened.version;
        if table.since > version {
            return Ok(());
        }
        let failed = |source| RecordError::unreadable(&self.file.path, source);
        let mut statement = self.transaction.prepare(&table.select(version)).map_err(failed)?;
        let mut rows = statement.raw_query();
        let mut sum = TableSum::default();
        let mut hasher = self.sums.contains_key(table.name).then(RowHasher::default);
        let known = table
            .columns
            .iter()
            .filter(|column| !table.is_absent(column, version))
            .count();
        let mut before = None;
        while let Some(row) = rows.next().map_err(failed)? {
            let rowid = self.check_order(table, before, row.get(0).map_err(failed)?)?;
            before = Some(rowid);
            let mut values = [ValueRef::Null; Table::MOST_COLUMNS];
            for (column, value) in values.iter_mut().enumerate().take(table.columns.len()) {
                *value = row.get_ref(column + 1).map_err(failed)?;
            }
            let values = &values[..table.columns.len()];
            if let Some(hasher) = &mut hasher {
                // Columns added in later versions come last.
                sum.add(hasher.hash(rowid, &values[..known]));
            }
            take(&mut Fields::new(values, table, index)).map_err(|bad| self.bad_value(bad))?;
        }
        match self.sums.get(table.name) {
            Some(recorded) if *recorded != sum => Err(self.corrupt(&format!(
                "the rows of table {} do not match their checksum; where another program changed them on purpose, \
                 `DELETE FROM checksum` says so",
                table.name
            ))),
            _ => Ok(()),
        }
    }

    fn corrupt(&self, detail: &str) -> RecordError {
        RecordError::Corrupt {
            path: self.file.path.clone(),
            detail: detail.to_owned(),
        }
    }

    fn bad_value(&self, bad: BadValue) -> RecordError {
        let BadValue { table, column, found } = bad;
        RecordError::BadValue {
            path: self.file.path.clone(),
            table,
            column,
            found,
        }
    }
}
