//! Decodes a row of SQLite, column by column. If a column has a value that no recorder writes, the error names the table and the column.
//! This file knows types but no tables.

use rusqlite::types::ValueRef;

use spawnscope_data::event::{LaunchId, Nanos, Pid, TaskId};

use super::limits::LONGEST_RECORDING;
use super::tables::Table;
use spawnscope_data::rows::{FrameId, ObjectRef, StackId, TextId};

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

/// A row that is decoded from left to right.
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

    /// Returns the next column's index and value.
    fn take(&mut self) -> (usize, ValueRef<'row>) {
        let column = self.next;
        self.next += 1;
        (column, self.values.get(column).copied().unwrap_or(ValueRef::Null))
    }

    /// Skips the next column, which only other programs use.
    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    /// Decodes the next column, an integer or NULL.
    pub(super) fn optional<T: FromColumn>(&mut self) -> Result<Option<T>, BadValue> {
        match self.take() {
            (_, ValueRef::Null) => Ok(None),
            (column, ValueRef::Integer(value)) => match T::from_column(value, self.index) {
                Some(value) => Ok(Some(value)),
                None => Err(self.bad(column, value.to_string())),
            },
            (column, other) => Err(self.bad(column, format!("a value of type {}", other.data_type()))),
        }
    }

    /// Decodes the next column, an integer.
    pub(super) fn required<T: FromColumn>(&mut self) -> Result<T, BadValue> {
        let column = self.next;
        self.optional()?.ok_or_else(|| self.bad(column, "NULL".to_owned()))
    }

    /// Decodes the next column, a reference to a row of its own table before `id`. This excludes cycles.
    pub(super) fn earlier<T: FromColumn + PartialOrd + Copy>(&mut self, id: T) -> Result<Option<T>, BadValue> {
        let column = self.next;
        let other: Option<T> = self.optional()?;
        match other {
            Some(other) if other >= id => Err(self.bad(column, "a reference to itself or a later row".to_owned())),
            other => Ok(other),
        }
    }

    /// Decodes the next column, the index of a value in `all`.
    pub(super) fn one_of<T: Copy>(&mut self, all: &[T]) -> Result<T, BadValue> {
        let column = self.next;
        self.optional_one_of(all)?
            .ok_or_else(|| self.bad(column, "NULL".to_owned()))
    }

    /// Decodes the next column, the index of a value in `all`, or NULL.
    pub(super) fn optional_one_of<T: Copy>(&mut self, all: &[T]) -> Result<Option<T>, BadValue> {
        let column = self.next;
        let Some(number) = self.optional::<i64>()? else {
            return Ok(None);
        };
        let value = usize::try_from(number).ok().and_then(|place| all.get(place)).copied();
        value.map(Some).ok_or_else(|| self.bad(column, number.to_string()))
    }

    /// Decodes the next column, a finite number.
    pub(super) fn real(&mut self) -> Result<f64, BadValue> {
        let column = self.next;
        self.optional_real()?.ok_or_else(|| self.bad(column, "NULL".to_owned()))
    }

    /// Decodes the next column, a finite number or NULL.
    pub(super) fn optional_real(&mut self) -> Result<Option<f64>, BadValue> {
        match self.take() {
            (_, ValueRef::Null) => Ok(None),
            (_, ValueRef::Real(value)) if value.is_finite() => Ok(Some(value)),
            (column, ValueRef::Real(value)) => Err(self.bad(column, value.to_string())),
            (column, other) => Err(self.bad(column, format!("a value of type {}", other.data_type()))),
        }
    }

    /// Decodes the next column, an integer from 1 to `most`.
    pub(super) fn count_up_to(&mut self, most: u32) -> Result<u32, BadValue> {
        let column = self.next;
        let count: u32 = self.required()?;
        if (1..=most).contains(&count) {
            Ok(count)
        } else {
            Err(self.bad(column, format!("{count}, which is not between 1 and {most}")))
        }
    }

    /// Decodes the next column, a byte string.
    pub(super) fn bytes(&mut self) -> Result<&'row [u8], BadValue> {
        match self.take() {
            // Recordings written by hand, such as those of the tests, have TEXT here.
            (_, ValueRef::Blob(bytes) | ValueRef::Text(bytes)) => Ok(bytes),
            (column, other) => Err(self.bad(column, format!("a value of type {}", other.data_type()))),
        }
    }

    /// Decodes the next column, UTF-8 text.
    pub(super) fn word(&mut self) -> Result<String, BadValue> {
        let column = self.next;
        let bytes = self.bytes()?;
        String::from_utf8(bytes.to_vec()).map_err(|error| self.bad(column, error.to_string()))
    }

    /// Decodes the next column, UTF-8 text or NULL.
    pub(super) fn optional_word(&mut self) -> Result<Option<String>, BadValue> {
        if matches!(self.values.get(self.next), Some(ValueRef::Null)) {
            self.skip();
            return Ok(None);
        }
        self.word().map(Some)
    }

    /// Decodes the next column, the word that `name` gives to a value in `all`.
    pub(super) fn word_of<T: Copy>(&mut self, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, BadValue> {
        let column = self.next;
        let word = self.word()?;
        let value = all.iter().copied().find(|value| name(*value) == word);
        value.ok_or_else(|| self.bad(column, format!("'{}'", word.escape_default())))
    }

    /// Reports a bad value in the last decoded column.
    pub(super) fn bad_last(&self, found: String) -> BadValue {
        self.bad(self.next.saturating_sub(1), found)
    }

    fn bad(&self, column: usize, found: String) -> BadValue {
        BadValue {
            table: self.table.name,
            column: self.table.columns[column],
            found,
        }
    }
}

/// A type that an integer column can have.
pub(super) trait FromColumn: Sized {
    /// Returns `None` if the value is out of range.
    fn from_column(value: i64, index: &Index) -> Option<Self>;
}

impl FromColumn for i64 {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        Some(value)
    }
}

impl FromColumn for i32 {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok()
    }
}

impl FromColumn for u16 {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok()
    }
}

impl FromColumn for u32 {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok()
    }
}

impl FromColumn for u64 {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok()
    }
}

impl FromColumn for bool {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        match value {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl FromColumn for Nanos {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        let nanos: u64 = value.try_into().ok()?;
        (u128::from(nanos) <= LONGEST_RECORDING.as_nanos()).then_some(Nanos(nanos))
    }
}

impl FromColumn for Pid {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok().map(Pid)
    }
}

impl FromColumn for LaunchId {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok().map(LaunchId)
    }
}

impl FromColumn for TaskId {
    fn from_column(value: i64, _: &Index) -> Option<Self> {
        value.try_into().ok().map(TaskId)
    }
}

impl FromColumn for TextId {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        u32::try_from(index.texts.place(value)?).ok().map(TextId)
    }
}

impl FromColumn for FrameId {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        u32::try_from(index.frames.place(value)?).ok().map(FrameId)
    }
}

impl FromColumn for StackId {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        u32::try_from(index.stacks.place(value)?).ok().map(StackId::at)
    }
}

impl FromColumn for ObjectRef {
    fn from_column(value: i64, index: &Index) -> Option<Self> {
        let (ids, references) = &index.objects;
        references.get(ids.place(value)?).copied()
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
