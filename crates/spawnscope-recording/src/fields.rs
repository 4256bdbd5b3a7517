//! A row of SQLite, decoded or encoded column by column. If a column has a value that no recorder writes, the error names the table and the
//! column. This file knows neither tables nor types.

use std::ops::Deref;

use rusqlite::types::ValueRef;

use super::values::{self, Sqlite, Value};
use spawnscope_data::rows::ObjectRef;
use spawnscope_data::table::{Row, Table};

/// A value that no recorder writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    pub(super) found: String,
}

/// The ids of the strings, objects, frames or call chains in a file. They may have gaps, because another program may have written them.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Ascending.
    ids: Vec<i64>,
}

impl Ids {
    /// Indexes ids, which must ascend.
    pub(super) fn new(ids: Vec<i64>) -> Self {
        Ids { ids }
    }

    /// Returns the position of an id among all ids.
    pub(super) fn place(&self, id: i64) -> Option<usize> {
        // Our recorder numbers from 1 without gaps, so the first guess is usually right.
        let guess = usize::try_from(id).ok()?.checked_sub(1)?;
        if self.ids.get(guess) == Some(&id) {
            Some(guess)
        } else {
            self.ids.binary_search(&id).ok()
        }
    }
}

/// The ids of objects, and the reference to each.
pub(super) type ObjectIndex = (Ids, Vec<ObjectRef>);

/// The rows that columns may refer to.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) texts: Ids,
    pub(super) objects: ObjectIndex,
    pub(super) frames: Ids,
    pub(super) stacks: Ids,
}

/// The values of a row that is read, from left to right.
pub(super) struct Fields<'row> {
    values: &'row [ValueRef<'row>],
    table: &'static Table,
    index: &'row Index,
    next: usize,
}

impl<'row> Fields<'row> {
    /// Starts at the first column of `table`.
    pub(super) fn new(values: &'row [ValueRef<'row>], table: &'static Table, index: &'row Index) -> Self {
        Fields {
            values,
            table,
            index,
            next: 0,
        }
    }

    /// Decodes the columns of a row.
    pub(super) fn row<R: Row<Sqlite>>(&mut self) -> Result<R, BadValue> {
        R::read(self)
    }

    /// Decodes the next column.
    pub(super) fn take<T: Value<As>, As>(&mut self) -> Result<T, BadValue> {
        self.take_with(T::load)
    }

    /// Returns the byte string in the next column.
    pub(super) fn bytes(&mut self) -> Result<&'row [u8], BadValue> {
        self.take_with(|value, _| values::bytes(value))
    }

    fn take_with<T>(
        &mut self,
        load: impl FnOnce(ValueRef<'row>, &'row Index) -> Result<T, String>,
    ) -> Result<T, BadValue> {
        let value = self.values.get(self.next).copied().unwrap_or(ValueRef::Null);
        self.next += 1;
        load(value, self.index).map_err(|found| self.bad(found))
    }

    /// Reports a bad value in the last decoded column.
    pub(super) fn bad(&self, found: String) -> BadValue {
        BadValue {
            table: self.table.name,
            column: self.table.columns[self.next - 1].name,
            found,
        }
    }
}

/// The values of a row that is written, in the order of its columns.
pub(super) struct Values<'row> {
    values: [ValueRef<'row>; MOST_COLUMNS],
    len: usize,
}

/// The maximum number of columns of any table.
pub(super) const MOST_COLUMNS: usize = 32;

impl<'row> Values<'row> {
    /// Encodes a row.
    pub(super) fn of<R: Row<Sqlite>>(row: &'row R) -> Self {
        const { assert!(R::TABLE.columns.len() <= MOST_COLUMNS) }
        let mut values = Values {
            values: [ValueRef::Null; MOST_COLUMNS],
            len: 0,
        };
        row.write(&mut values);
        values
    }

    /// Adds the value of the next column.
    pub(super) fn push(&mut self, value: ValueRef<'row>) {
        self.values[self.len] = value;
        self.len += 1;
    }
}

impl<'row> Deref for Values<'row> {
    type Target = [ValueRef<'row>];

    fn deref(&self) -> &Self::Target {
        &self.values[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_with_and_without_gaps() {
        let gapless = Ids::new(vec![1, 2, 3]);
        assert_eq!(gapless.place(3), Some(2));
        assert_eq!(gapless.place(4), None);
        assert_eq!(gapless.place(0), None);
        let gaps = Ids::new(vec![-5, 2, 7]);
        assert_eq!(gaps.place(7), Some(2));
        assert_eq!(gaps.place(2), Some(1));
        assert_eq!(gaps.place(3), None);
    }
}
