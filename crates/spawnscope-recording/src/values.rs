//! Converts the fields of rows to SQLite's values and back. The columns are in the order of the
//! row's declaration (`table!`). If a column has a value that no recorder writes, the error names
//! the table and the column. The tables are in `tables`.

use std::sync::Arc;

use rusqlite::types::ValueRef;

use spawnscope_data::event::{Constant, Language, LaunchId, LeftCpu, Mechanism, Nanos, ObjectKind, Pid, TaskId};
use spawnscope_data::ids::Ids;
use spawnscope_data::rows::{FrameId, ObjectRef, Origin, Scope, StackId, TextId, WakerRow};
use spawnscope_data::table::{Bits, Bytes, ColumnType, Cost, Count, CpuTime, Format, Limit, Row, Stores, Table};

use super::limits::{MAX_COST_NS, MAX_CPUS, MAX_MEMORY_BYTES, MAX_RECORDING_SPAN};

/// The format of a recording.
pub(super) enum Sqlite {}

impl Format for Sqlite {
    type Source<'s> = Fields<'s>;
    type Sink<'v> = Vec<ValueRef<'v>>;
    type Error = BadValue;
}

/// A type that is stored in one column.
pub(super) trait Value<As = ()>: Sized {
    const TYPE: ColumnType;

    fn store(&self) -> ValueRef<'_>;

    /// Decodes a value; `None` if no recorder writes it.
    fn load(value: ValueRef<'_>, index: &Index) -> Option<Self>;

    /// Describes a value that no recorder writes.
    fn describe(value: ValueRef<'_>) -> String {
        describe(value, Self::TYPE.name)
    }
}

impl<T: Value<As>, As> Stores<T, As> for Sqlite {
    const TYPE: ColumnType = T::TYPE;

    fn read(fields: &mut Fields<'_>) -> Result<T, BadValue> {
        fields.decode()
    }

    fn write<'v>(value: &'v T, values: &mut Vec<ValueRef<'v>>) {
        values.push(value.store());
    }
}

/// `None` is stored as NULL.
impl<T: Value<As>, As> Value<As> for Option<T> {
    const TYPE: ColumnType = ColumnType { is_optional: true, ..T::TYPE };

    fn store(&self) -> ValueRef<'_> {
        self.as_ref().map_or(ValueRef::Null, T::store)
    }

    fn load(value: ValueRef<'_>, index: &Index) -> Option<Self> {
        match value {
            ValueRef::Null => Some(None),
            value => T::load(value, index).map(Some),
        }
    }

    fn describe(value: ValueRef<'_>) -> String {
        T::describe(value)
    }
}

impl Value<Bits> for u64 {
    const TYPE: ColumnType = <u64 as Value>::TYPE;

    fn store(&self) -> ValueRef<'_> {
        ValueRef::Integer(self.cast_signed())
    }

    fn load(value: ValueRef<'_>, index: &Index) -> Option<Self> {
        i64::load(value, index).map(i64::cast_unsigned)
    }
}

/// Marks a number of CPUs, which is limited.
pub(super) enum Cpus {}

/// Marks the duration of the recording itself, which may continue after its latest event.
pub(super) enum Whole {}

/// Implements `Value` for types with a marker, which are stored as without it. A marker selects a
/// limit that follows from the recording's duration, or permits only some values.
macro_rules! marked {
    ($($type:ty = $marker:ty: $limit:expr, $is_permitted:expr, $explanation:expr;)*) => {$(
        impl Value<$marker> for $type {
            const TYPE: ColumnType = ColumnType { limit: $limit, ..<$type as Value>::TYPE };

            fn store(&self) -> ValueRef<'_> {
                <$type as Value>::store(self)
            }

            fn load(value: ValueRef<'_>, index: &Index) -> Option<Self> {
                let is_permitted: fn(&$type) -> bool = $is_permitted;
                <$type as Value>::load(value, index).filter(is_permitted)
            }

            fn describe(value: ValueRef<'_>) -> String {
                let found = <$type as Value>::describe(value);
                let explanation: Option<String> = $explanation;
                explanation.map_or(found.clone(), |explanation| format!("{found}, which is {explanation}"))
            }
        }
    )*};
}

marked! {
    Nanos = CpuTime: Limit::CpuTime, |_| true, None;
    Nanos = Whole: Limit::None, |_| true, None;
    u32 = Count: Limit::Count, |_| true, None;
    u64 = Count: Limit::Count, |_| true, None;
    u64 = Bytes: Limit::None, |bytes| *bytes <= MAX_MEMORY_BYTES, Some("more than an address space".to_owned());
    u32 = Cpus: Limit::None, |cpus| *cpus <= MAX_CPUS, Some(format!("not between 0 and {MAX_CPUS}"));
    f64 = Cpus: Limit::None, |cpus| *cpus > 0.0 && *cpus <= MAX_CPUS.into(), Some(format!("not between 0 and {MAX_CPUS}"));
    f64 = Cost: Limit::None, |cost| cost.abs() <= MAX_COST_NS, Some("more than 10 s".to_owned());
}

impl Value for f64 {
    const TYPE: ColumnType = required("REAL");

    fn store(&self) -> ValueRef<'_> {
        ValueRef::Real(*self)
    }

    fn load(value: ValueRef<'_>, _: &Index) -> Option<Self> {
        match value {
            ValueRef::Real(value) => Some(value).filter(|value| value.is_finite()),
            _ => None,
        }
    }
}

impl Value for String {
    const TYPE: ColumnType = required("TEXT");

    fn store(&self) -> ValueRef<'_> {
        ValueRef::Text(self.as_bytes())
    }

    fn load(value: ValueRef<'_>, _: &Index) -> Option<Self> {
        String::from_utf8(bytes(value)?.to_vec()).ok()
    }

    fn describe(value: ValueRef<'_>) -> String {
        let error = bytes(value).and_then(|bytes| str::from_utf8(bytes).err());
        error.map_or_else(|| describe(value, "TEXT"), |error| error.to_string())
    }
}

/// Implements `Value` for types of byte strings.
macro_rules! blobs {
    ($($type:ty),*) => {$(
        impl Value for $type {
            const TYPE: ColumnType = required("BLOB");

            fn store(&self) -> ValueRef<'_> {
                ValueRef::Blob(self)
            }

            fn load(value: ValueRef<'_>, _: &Index) -> Option<Self> {
                bytes(value).map(<$type>::from)
            }
        }
    )*};
}

blobs!(Vec<u8>, Arc<[u8]>);

/// Returns a stored byte string; `None` if the value has another type.
fn bytes(value: ValueRef<'_>) -> Option<&[u8]> {
    match value {
        // Recordings written by hand, such as those of the tests, contain TEXT where a recorder
        // writes BLOB.
        ValueRef::Blob(bytes) | ValueRef::Text(bytes) => Some(bytes),
        _ => None,
    }
}

/// Describes a value that no recorder writes in a column of this type.
fn describe(value: ValueRef<'_>, expected: &str) -> String {
    match (value, expected) {
        (ValueRef::Null, _) => "NULL".to_owned(),
        (ValueRef::Integer(value), "INTEGER") => value.to_string(),
        (ValueRef::Real(value), "REAL") => value.to_string(),
        (other, _) => format!("a value of type {}", other.data_type()),
    }
}

const fn required(name: &'static str) -> ColumnType {
    ColumnType { name, is_optional: false, limit: Limit::None }
}

/// Converts a number to SQLite's signed integers. No recorded value comes near their limit (292
/// years, 8 EiB).
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Implements `Value` for types that are stored as integers, given the functions that encode and
/// decode each type. A decoder returns `None` if the integer is out of range.
macro_rules! integers {
    ($($type:ty: $to_integer:expr, $from_integer:expr $(, $limit:expr)?;)*) => {$(
        impl Value for $type {
            const TYPE: ColumnType = ColumnType { $(limit: $limit,)? ..required("INTEGER") };

            fn store(&self) -> ValueRef<'_> {
                let to_integer: fn(&$type) -> i64 = $to_integer;
                ValueRef::Integer(to_integer(self))
            }

            fn load(value: ValueRef<'_>, index: &Index) -> Option<Self> {
                let from_integer: fn(i64, &Index) -> Option<$type> = $from_integer;
                match value {
                    ValueRef::Integer(value) => from_integer(value, index),
                    _ => None,
                }
            }
        }
    )*};
}

integers! {
    i64: |number| *number, |value, _| Some(value);
    i32: |number| i64::from(*number), |value, _| value.try_into().ok();
    u16: |number| i64::from(*number), |value, _| value.try_into().ok();
    u32: |number| i64::from(*number), |value, _| value.try_into().ok();
    u64: |number| signed(*number), |value, _| value.try_into().ok();
    bool: |flag| i64::from(*flag), |value, _| nth(&[false, true], value);
    Nanos: |nanos| signed(nanos.0), |value, _| {
        let nanos = u64::try_from(value).ok()?;
        (u128::from(nanos) <= MAX_RECORDING_SPAN.as_nanos()).then_some(Nanos(nanos))
    }, Limit::Duration;
    LaunchId: |id| signed(id.0), |value, _| value.try_into().ok().map(LaunchId);
    TaskId: |id| signed(id.0), |value, _| value.try_into().ok().map(TaskId);
    Pid: |pid| i64::from(pid.0), |value, _| value.try_into().ok().filter(|pid| *pid >= 0).map(Pid);

    // The id in the file is the index plus one. In a file that another program wrote, ids may have
    // gaps.
    TextId: |id| i64::from(id.0) + 1, |value, index| u32::try_from(index.texts.index_of(value)?).ok().map(TextId);
    FrameId: |id| i64::from(id.0) + 1, |value, index| u32::try_from(index.frames.index_of(value)?).ok().map(FrameId);
    StackId: |id| i64::from(id.index()) + 1,
        |value, index| u32::try_from(index.stacks.index_of(value)?).ok().map(StackId::from_index);
    ObjectRef: |object| signed(object.index() as u64 + 1), |value, index| {
        let (ids, references) = &index.objects;
        references.get(ids.index_of(value)?).copied()
    };

    // The number of an enumeration's value is its position among all values.
    Origin: |origin| *origin as i64, |value, _| nth(&Origin::ALL, value);
    Mechanism: |mechanism| *mechanism as i64, |value, _| nth(&Mechanism::ALL, value);
    Language: |language| *language as i64, |value, _| nth(&Language::ALL, value);
    LeftCpu: |reason| *reason as i64, |value, _| nth(&LeftCpu::ALL, value);
    ObjectKind: |kind| *kind as i64, |value, _| nth(&ObjectKind::ALL, value);
}

fn nth<T: Copy>(all: &[T], index: i64) -> Option<T> {
    all.get(usize::try_from(index).ok()?).copied()
}

/// Implements `Value` for types whose values are stored by name.
macro_rules! named {
    ($($type:ident),*) => {$(
        impl Value for $type {
            const TYPE: ColumnType = required("TEXT");

            fn store(&self) -> ValueRef<'_> {
                ValueRef::Text(self.name().as_bytes())
            }

            fn load(value: ValueRef<'_>, _: &Index) -> Option<Self> {
                let name = bytes(value)?;
                $type::ALL.into_iter().find(|value| value.name().as_bytes() == name)
            }

            fn describe(value: ValueRef<'_>) -> String {
                bytes(value).map_or_else(|| describe(value, "TEXT"), |name| format!("'{}'", name.escape_ascii()))
            }
        }
    )*};
}

named!(Scope, Constant);

/// A waker is stored in two columns: a number that identifies it, and the name of a thread that is
/// not followed.
impl Stores<Option<WakerRow>> for Sqlite {
    const TYPE: ColumnType = <Option<i64> as Value>::TYPE;

    fn read(fields: &mut Fields<'_>) -> Result<Option<WakerRow>, BadValue> {
        let waker = match fields.decode()? {
            None => None,
            Some(0) => Some(WakerRow::Interrupt),
            Some(task @ 1..) => Some(WakerRow::Task(TaskId(i64::cast_unsigned(task)))),
            Some(minus_pid) => {
                let pid = minus_pid.checked_neg().and_then(|pid| pid.try_into().ok());
                let pid = pid.ok_or_else(|| fields.bad(minus_pid.to_string()))?;
                Some(WakerRow::Other(Pid(pid), None))
            }
        };
        let name: Option<TextId> = fields.decode()?;
        Ok(match waker {
            None => name.map(|name| WakerRow::Other(Pid(0), Some(name))),
            Some(WakerRow::Other(pid, _)) => Some(WakerRow::Other(pid, name)),
            waker => waker,
        })
    }

    fn write<'v>(waker: &'v Option<WakerRow>, values: &mut Vec<ValueRef<'v>>) {
        let (number, name) = match waker {
            None => (None, &None),
            Some(WakerRow::Interrupt) => (Some(0), &None),
            Some(WakerRow::Task(task)) => (Some(signed(task.0)), &None),
            Some(WakerRow::Other(Pid(0), name)) => (None, name),
            Some(WakerRow::Other(pid, name)) => (Some(-i64::from(pid.0)), name),
        };
        values.extend([number.map_or(ValueRef::Null, ValueRef::Integer), name.store()]);
    }
}

/// The error for a value that no recorder writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadValue {
    pub(super) table: &'static str,
    pub(super) column: &'static str,
    pub(super) found: String,
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
        bytes(value).ok_or_else(|| self.bad(describe(value, "BLOB")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_value_is_its_position() {
        fn check<T: Value>(all: &[T]) {
            assert!(all.iter().map(T::store).eq((0..all.len() as i64).map(ValueRef::Integer)));
        }
        check(&Origin::ALL);
        check(&Mechanism::ALL);
        check(&Language::ALL);
        check(&LeftCpu::ALL);
        check(&ObjectKind::ALL);
    }
}
