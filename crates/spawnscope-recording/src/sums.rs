//! The checksums of a recording's rows, which the reader compares; `schema.sql` documents them for
//! other programs. Every row is written through this code, so that the table `checksum` contains
//! the sums of all rows after each batch.
//!
//! A row's checksum is the XXH3-64 of its rowid and its values in column order, each with one byte
//! for its type. A table's checksum is the sum of its rows' checksums modulo 2^64. The order of
//! rows does not matter, so for a changed row, the old checksum is subtracted and the new one
//! added.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Transaction, params, params_from_iter};
use twox_hash::XxHash3_64;

use spawnscope_data::rows::LaunchRow;
use spawnscope_data::table::{Row, Table};

use super::tables::{self, ChecksumRow, RecordingRow, TABLES};
use super::values::Sqlite;

/// Hashes rows with a reused buffer.
#[derive(Debug, Default)]
pub(super) struct RowHasher {
    bytes: Vec<u8>,
}

impl RowHasher {
    pub(super) fn hash(&mut self, rowid: i64, values: &[ValueRef<'_>]) -> u64 {
        self.bytes.clear();
        self.bytes.extend_from_slice(&rowid.to_le_bytes());
        for value in values {
            self.append(*value);
        }
        XxHash3_64::oneshot(&self.bytes)
    }

    fn append(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.bytes.push(0),
            ValueRef::Integer(value) => self.append_fixed(1, value.cast_unsigned()),
            ValueRef::Real(value) => self.append_fixed(2, value.to_bits()),
            ValueRef::Text(text) => self.append_bytes(3, text),
            ValueRef::Blob(blob) => self.append_bytes(4, blob),
        }
    }

    fn append_fixed(&mut self, kind: u8, bits: u64) {
        let mut value = [kind; 9];
        value[1..].copy_from_slice(&bits.to_le_bytes());
        self.bytes.extend_from_slice(&value);
    }

    fn append_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.append_fixed(kind, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSum {
    pub(super) rows: u64,
    pub(super) sum: u64,
}

impl TableSum {
    pub(super) fn add(&mut self, row: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.sum = self.sum.wrapping_add(row);
    }

    pub(super) fn replace(&mut self, old: u64, new: u64) {
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }
}

/// The sums of all tables, in the order of `TABLES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums([TableSum; TABLES.len()]);

impl Sums {
    fn get_mut(&mut self, table: &Table) -> &mut TableSum {
        let index = TABLES.iter().position(|other| other.name == table.name);
        &mut self.0[index.unwrap_or_default()]
    }
}

/// Writes rows within one transaction.
pub(super) struct SummingWriter<'t> {
    transaction: &'t Transaction<'t>,
    /// The sums after the last transaction.
    before: Sums,
    sums: Sums,
    hasher: RowHasher,
}

impl<'t> SummingWriter<'t> {
    /// Creates a writer. `sums` are the sums after the last transaction.
    pub(super) fn new(transaction: &'t Transaction<'t>, sums: Sums) -> Self {
        SummingWriter { transaction, before: sums, sums, hasher: RowHasher::default() }
    }

    /// Returns the transaction, for statements that change only the table `recording`.
    pub(super) fn transaction(&self) -> &'t Transaction<'t> {
        self.transaction
    }

    /// Adds rows to their table.
    pub(super) fn insert<R: Row<Sqlite>>(&mut self, rows: &[R]) -> rusqlite::Result<()> {
        self.insert_by(tables::INSERT, rows)
    }

    /// Adds each row to its table, unless the table has a row with the same key.
    pub(super) fn insert_new<R: Row<Sqlite>>(&mut self, rows: &[R]) -> rusqlite::Result<()> {
        self.insert_by(tables::INSERT_NEW, rows)
    }

    fn insert_by<R: Row<Sqlite>>(&mut self, verb: &str, rows: &[R]) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare_cached(&tables::write(verb, R::TABLE, false))?;
        let mut values = Vec::new();
        for row in rows {
            encode(row, &mut values);
            if execute(&mut insert, &values, None)? == 1 {
                self.add(R::TABLE, &values);
            }
        }
        Ok(())
    }

    /// Adds rows to their table. If a row with the same key (the first value) exists, it is
    /// replaced; the row of a launch is merged instead.
    pub(super) fn upsert<R: Row<Sqlite>>(&mut self, rows: &[R]) -> rusqlite::Result<()> {
        let statements = [tables::write(tables::INSERT_NEW, R::TABLE, false), update_statement(R::TABLE)];
        self.upsert_by(statements, rows.iter().map(|row| (None, row)))
    }

    /// Like `upsert`, for a table whose rows are identified by a rowid that is not a column.
    pub(super) fn upsert_at<'r, R: Row<Sqlite> + 'r>(
        &mut self,
        rows: impl Iterator<Item = (i64, &'r R)>,
    ) -> rusqlite::Result<()> {
        let statements = [tables::INSERT_NEW, tables::REPLACE].map(|verb| tables::write(verb, R::TABLE, true));
        self.upsert_by(statements, rows.map(|(rowid, row)| (Some(ValueRef::Integer(rowid)), row)))
    }

    fn upsert_by<'r, R: Row<Sqlite> + 'r>(
        &mut self,
        [insert, update]: [String; 2],
        rows: impl Iterator<Item = (Option<ValueRef<'r>>, &'r R)>,
    ) -> rusqlite::Result<()> {
        let mut insert = self.transaction.prepare_cached(&insert)?;
        let mut update = self.transaction.prepare_cached(&update)?;
        let mut values = Vec::new();
        for (rowid, row) in rows {
            encode(row, &mut values);
            if execute(&mut insert, &values, rowid)? == 1 {
                self.add(R::TABLE, &values);
            } else {
                let key = rowid.unwrap_or(values[0]);
                let old = self.stored_checksum(R::TABLE, key)?;
                execute(&mut update, &values, rowid)?;
                let new = self.stored_checksum(R::TABLE, key)?;
                self.sums.get_mut(R::TABLE).replace(old, new);
            }
        }
        Ok(())
    }

    /// Recomputes the checksum of the table `recording`, and stores the sums that have changed.
    pub(super) fn finish(mut self) -> rusqlite::Result<Sums> {
        let recording = tables::table_of::<RecordingRow>();
        let sum = self.stored_checksum(recording, ValueRef::Integer(1))?;
        *self.sums.get_mut(recording) = TableSum { rows: 1, sum };
        let sql = "UPDATE checksum SET rows = ?, sum = ? WHERE rowid = ?";
        let mut update = self.transaction.prepare_cached(sql)?;
        for (rowid, (before, sum)) in (1i64..).zip(self.before.0.iter().zip(&self.sums.0)) {
            if before != sum {
                update.execute(params![sum.rows.cast_signed(), sum.sum.cast_signed(), rowid])?;
            }
        }
        Ok(self.sums)
    }

    fn add(&mut self, table: &Table, values: &[ValueRef<'_>]) {
        let row = self.hasher.hash(self.transaction.last_insert_rowid(), values);
        self.sums.get_mut(table).add(row);
    }

    fn stored_checksum(&mut self, table: &Table, rowid: ValueRef<'_>) -> rusqlite::Result<u64> {
        let mut select = self.transaction.prepare_cached(&tables::select_one(table))?;
        let hasher = &mut self.hasher;
        select.query_row([ToSqlOutput::Borrowed(rowid)], |row| {
            let values = column_values(row, table)?;
            Ok(hasher.hash(row.get(0)?, &values))
        })
    }
}

/// Adds a row for each table to the new table `checksum`. All tables must be empty.
pub(super) fn initialize(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(&tables::write(tables::INSERT, tables::table_of::<ChecksumRow>(), false))?;
    summed_tables().try_for_each(|table| insert.execute(params![table.name, 0, 0]).map(drop))
}

/// Returns the tables that have checksums: all tables except `checksum` itself.
fn summed_tables() -> impl Iterator<Item = &'static Table> {
    let checksums = tables::table_of::<ChecksumRow>().name;
    TABLES.into_iter().filter(move |table| table.name != checksums)
}

/// Replaces the contents of `values` with the values of a row.
fn encode<'r, R: Row<Sqlite>>(row: &'r R, values: &mut Vec<ValueRef<'r>>) {
    values.clear();
    row.write(values);
}

/// Executes a statement with the values of a row, and the rowid if the statement ends with it.
fn execute(
    statement: &mut CachedStatement<'_>,
    values: &[ValueRef<'_>],
    rowid: Option<ValueRef<'_>>,
) -> rusqlite::Result<usize> {
    statement.execute(params_from_iter(values.iter().copied().chain(rowid).map(ToSqlOutput::Borrowed)))
}

fn column_values<'row>(row: &'row rusqlite::Row<'_>, table: &Table) -> rusqlite::Result<Vec<ValueRef<'row>>> {
    (1..=table.columns.len()).map(|column| row.get_ref(column)).collect()
}

fn update_statement(table: &Table) -> String {
    let is_launch = table.name == tables::table_of::<LaunchRow>().name;
    if is_launch { merge_launch(table) } else { tables::write(tables::REPLACE, table, false) }
}

/// Returns the statement that merges new values into a launch's row. A late event about a launch
/// that is no longer in memory produces a row with few values, so NULL must not overwrite a value
/// in the file. The smaller `origin` is kept, because the largest number means an orphan, and a
/// launch whose creation is known is no longer an orphan.
fn merge_launch(table: &Table) -> String {
    let merged: Vec<String> = table.columns[1..]
        .iter()
        .map(|column| match column.name {
            "origin" => "origin = min(excluded.origin, origin)".to_owned(),
            column => format!("{column} = coalesce(excluded.{column}, {column})"),
        })
        .collect();
    let insert = tables::write(tables::INSERT, table, false);
    format!("{insert} ON CONFLICT (id) DO UPDATE SET {}", merged.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_rows_have_different_checksums() {
        let mut hasher = RowHasher::default();
        let rows: [(i64, &[ValueRef<'_>]); 9] = [
            (1, &[ValueRef::Integer(1), ValueRef::Null]),
            (2, &[ValueRef::Integer(1), ValueRef::Null]),
            (1, &[ValueRef::Null, ValueRef::Integer(1)]),
            (1, &[ValueRef::Real(1.0), ValueRef::Null]),
            (1, &[ValueRef::Text(b"ab"), ValueRef::Text(b"c")]),
            (1, &[ValueRef::Text(b"a"), ValueRef::Text(b"bc")]),
            (1, &[ValueRef::Blob(b"a"), ValueRef::Text(b"bc")]),
            (1, &[ValueRef::Integer(1)]),
            (1, &[]),
        ];
        let mut checksums: Vec<u64> = rows.iter().map(|(rowid, values)| hasher.hash(*rowid, values)).collect();
        checksums.sort_unstable();
        checksums.dedup();
        assert_eq!(checksums.len(), rows.len());
    }

    /// The checksums must never change, because other programs compute them, too.
    #[test]
    fn the_checksum_of_a_row_is_as_documented() {
        let mut expected = 7i64.to_le_bytes().to_vec();
        expected.extend([0, 1]);
        expected.extend((-2i64).to_le_bytes());
        expected.push(4);
        expected.extend(3u64.to_le_bytes());
        expected.extend(b"a\0b");
        let values = [ValueRef::Null, ValueRef::Integer(-2), ValueRef::Blob(b"a\0b")];
        assert_eq!(RowHasher::default().hash(7, &values), XxHash3_64::oneshot(&expected));
        assert_eq!(XxHash3_64::oneshot(b""), 0x2d06_8005_38d3_94c2, "XXH3-64 with seed 0");
    }
}
