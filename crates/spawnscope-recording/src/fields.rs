//! Decodes an SQLite row, column by column. If a column has a value that no recorder writes, the
//! error names the table and the column. The types of values are in `values`, and the tables in
//! `tables`.

use rusqlite::types::ValueRef;

use super::values::{self, Sqlite, Value};
use spawnscope_data::rows::ObjectRef;
use spawnscope_data::table::{Row, Table};

/// The error for a value that no recorder writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    pub(super) found: String,
}

/// The ids of the rows of one table in a file. They may have gaps, because another program may have
/// written them.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Number of ids, from the first one, that are 1, 2, 3 and so on, as our recorder numbers rows.
    numbered: usize,
    others: Vec<i64>,
}

impl Ids {
    /// Indexes ids, which must ascend.
    pub(super) fn new(mut ids: Vec<i64>) -> Self {
        let numbered = ids.iter().zip(1..).take_while(|(id, number)| *id == number).count();
        Ids { numbered, others: ids.split_off(numbered) }
    }

    pub(super) fn index_of(&self, id: i64) -> Option<usize> {
        let index = usize::try_from(id).ok()?.checked_sub(1)?;
        let of_others = || self.others.binary_search(&id).ok().map(|index| self.numbered + index);
        if index < self.numbered { Some(index) } else { of_others() }
    }
}

/// The ids of objects, and the reference to each object in the same order.
pub(super) type ObjectIndex = (Ids, Vec<ObjectRef>);

/// The rows that columns may refer to.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) texts: Ids,
    pub(super) objects: ObjectIndex,
    pub(super) frames: Ids,
    pub(super) stacks: Ids,
}

/// The values of a row, which are read from left to right.
pub(super) struct Fields<'row> {
    values: &'row [ValueRef<'row>],
    table: &'static Table,
    index: &'row Index,
    next: usize,
}

impl<'row> Fields<'row> {
    pub(super) fn new(values: &'row [ValueRef<'row>], table: &'static Table, index: &'row Index) -> Self {
        Fields { values, table, index, next: 0 }
    }

    pub(super) fn row<R: Row<Sqlite>>(&mut self) -> Result<R, BadValue> {
        R::read(self)
    }

    pub(super) fn decode<T: Value<As>, As>(&mut self) -> Result<T, BadValue> {
        let value = self.next();
        T::load(value, self.index).ok_or_else(|| self.bad(T::describe(value)))
    }

    pub(super) fn bytes(&mut self) -> Result<&'row [u8], BadValue> {
        let value = self.next();
        values::bytes(value).ok_or_else(|| self.bad(values::describe(value, "BLOB")))
    }

    fn next(&mut self) -> ValueRef<'row> {
        let value = self.values.get(self.next).copied().unwrap_or(ValueRef::Null);
        self.next += 1;
        value
    }

    /// Returns the error for the bad value `found` in the last decoded column.
    #[cold]
    pub(super) fn bad(&self, found: String) -> BadValue {
        BadValue { table: self.table.name, column: self.table.columns[self.next - 1].name, found }
    }
}
