//! Writes rows together with their checksums. Every row of a recording is written through this
//! code, so that the table `checksum` contains the sums of all rows after each batch.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Transaction, params, params_from_iter};

use spawnscope_data::rows::LaunchRow;
use spawnscope_data::table::{Row, Table};

use super::checksum::{RowHasher, TableSum};
use super::tables::{self, ChecksumRow, RecordingRow, TABLES};
use super::values::Sqlite;

/// The sums of all tables, in the order of `TABLES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums([TableSum; TABLES.len()]);

impl Sums {
    fn get_mut(&mut self, table: &Table) -> &mut TableSum {
        let index = TABLES.iter().position(|other| other.name == table.name);
        &mut self.0[index.unwrap_or_default()]
    }

    /// Computes the sums of the stored rows.
    #[cfg(test)]
    pub(super) fn compute(connection: &rusqlite::Connection) -> Sums {
        let mut sums = Sums::default();
        let mut hasher = RowHasher::default();
        for table in summed_tables() {
            let mut select = connection.prepare(&tables::select(table, i32::MAX)).unwrap();
            let mut rows = select.raw_query();
            while let Some(row) = rows.next().unwrap() {
                let row = hasher.hash(row.get(0).unwrap(), &column_values(row, table).unwrap());
                sums.get_mut(table).add(row);
            }
        }
        sums
    }

    /// Reads the sums that are stored in the file.
    #[cfg(test)]
    pub(super) fn read(connection: &rusqlite::Connection) -> Sums {
        let mut sums = Sums::default();
        for table in summed_tables() {
            let sql = "SELECT rows, sum FROM checksum WHERE name = ?";
            let stored =
                connection.query_row(sql, [table.name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)));
            let (rows, sum) = stored.unwrap();
            *sums.get_mut(table) = TableSum { rows: rows.cast_unsigned(), sum: sum.cast_unsigned() };
        }
        sums
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
