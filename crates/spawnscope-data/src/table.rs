//! `table!` declares a table of a recording together with the type of its rows. A declaration names
//! each column once, with its type and the format version that added it. Everything else about the
//! rows is derived from it: SQL statements, conversions and checks. How a file stores a value is up
//! to the `Format`.

#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    /// The columns, in the order in which they are stored.
    pub columns: &'static [Column],
}

impl Table {
    /// Returns the first format version that has the table.
    pub fn since(&self) -> i32 {
        self.columns[0].since
    }
}

#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    /// The first format version that has the column.
    pub since: i32,
    pub column_type: ColumnType,
}

#[derive(Debug)]
pub struct ColumnType {
    pub name: &'static str,
    /// Whether a value can be unknown (NULL).
    pub is_optional: bool,
    /// What a value cannot exceed in any recording.
    pub limit: Limit,
}

/// What the values of a column cannot exceed, given how long the recording is. A larger value is a
/// contradiction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing that follows from the recording.
    None,
    /// The latest event: instants, and spans of time.
    Duration,
    /// The CPU time of all CPUs since the machine was started, because processes may be older than
    /// the recording.
    CpuTime,
    /// One per nanosecond on each CPU.
    Count,
}

/// A file format that stores rows.
pub trait Format {
    /// Where the stored values of a row are read from, one after the other.
    type Source<'s>;
    /// Where the values of a row are written to, one after the other.
    type Sink<'v>;
    /// The error for a stored value that no recorder writes.
    type Error;
}

/// A format that stores values of type `T`. `As` selects one of several ways to store the same
/// type.
pub trait Stores<T, As = ()>: Format {
    /// The type of the column that stores a value, or of each of its columns if there are several.
    const TYPE: ColumnType;

    fn read(source: &mut Self::Source<'_>) -> Result<T, Self::Error>;

    fn write<'v>(value: &'v T, sink: &mut Self::Sink<'v>);
}

/// A row that a format stores. `table!` implements it.
pub trait Row<F: Format>: Sized {
    const TABLE: &'static Table;

    fn read(source: &mut F::Source<'_>) -> Result<Self, F::Error>;

    fn write<'v>(&'v self, sink: &mut F::Sink<'v>);
}

/// A row of a table with a key.
impl<F: Stores<Key>, Key, R: Row<F>> Row<F> for (Key, R) {
    const TABLE: &'static Table = R::TABLE;

    fn read(source: &mut F::Source<'_>) -> Result<Self, F::Error> {
        Ok((<F as Stores<Key>>::read(source)?, R::read(source)?))
    }

    fn write<'v>(&'v self, sink: &mut F::Sink<'v>) {
        let (key, row) = self;
        <F as Stores<Key>>::write(key, sink);
        row.write(sink);
    }
}

/// Stores an unsigned number as the signed number with the same 64 bits; numbers from 2^63 on
/// become negative.
#[derive(Debug)]
pub enum Bits {}

/// Marks a CPU time (`Limit::CpuTime`).
#[derive(Debug)]
pub enum CpuTime {}

/// Marks a number of things that happened one after the other on each CPU (`Limit::Count`).
#[derive(Debug)]
pub enum Count {}

/// Marks an amount of memory, in bytes.
#[derive(Debug)]
pub enum Bytes {}

/// Marks a measured constant of the machine, such as the time of a fork.
#[derive(Debug)]
pub enum Cost {}

/// Declares a table and the type of its rows.
///
/// ```
/// use spawnscope_data::event::{LaunchId, Nanos};
/// use spawnscope_data::table;
/// use spawnscope_data::table::Bits;
///
/// table! {
///     /// One mapping of memory.
///     #[derive(Debug)]
///     pub struct MappingRow in mapping {
///         since 1 {
///             launch: LaunchId,
///             created: Nanos as created_ns,
///         }
///         since 2 {
///             address: Option<u64> = Bits,
///         }
///     }
/// }
/// ```
///
/// Optional parts of a column's declaration:
/// - `= Bits` selects a way to store the type (the parameter `As` of `Stores`).
/// - `as created_ns` names the column if its name is not the field's. `as waker + waker_text` names
///   both columns of a field that has two.
///
/// `since 1, key id` adds a first column that is not a field. Rows of such a table are read and
/// written as `(Key, Row)`.
///
/// Later versions add columns at the end, because a row's checksum covers the columns of its
/// version in order.
#[macro_export]
macro_rules! table {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:ident) => { stringify!($column) };
    (
        $(#[$meta:meta])*
        $vis:vis struct $row:ident in $table:ident {
            $(since $since:literal $(, key $key:ident)? {
                $($(#[$doc:meta])* $field:ident: $type:ty $(= $storage:ident)? $(as $column:ident $(+ $more:ident)*)?,)*
            })+
        }
    ) => {
        $(#[$meta])*
        $vis struct $row {
            $($($(#[$doc])* $vis $field: $type,)*)+
        }

        impl<F> $crate::table::Row<F> for $row
        where
            F: $crate::table::Stores<i64>,
            $($(F: $crate::table::Stores<$type $(, $storage)?>,)*)+
        {
            const TABLE: &'static $crate::table::Table = &$crate::table::Table {
                name: stringify!($table),
                columns: &[$(
                    $($crate::table::Column {
                        name: stringify!($key),
                        since: $since,
                        column_type: <F as $crate::table::Stores<i64>>::TYPE,
                    },)?
                    $(
                        $crate::table::Column {
                            name: $crate::table!(@name $field $($column)?),
                            since: $since,
                            column_type: <F as $crate::table::Stores<$type $(, $storage)?>>::TYPE,
                        },
                        $($($crate::table::Column {
                            name: stringify!($more),
                            since: $since,
                            column_type: <F as $crate::table::Stores<$type>>::TYPE,
                        },)*)?
                    )*
                )+],
            };

            fn read(source: &mut F::Source<'_>) -> Result<Self, F::Error> {
                Ok($row {
                    $($($field: <F as $crate::table::Stores<$type $(, $storage)?>>::read(source)?,)*)+
                })
            }

            fn write<'v>(&'v self, sink: &mut F::Sink<'v>) {
                $($(<F as $crate::table::Stores<$type $(, $storage)?>>::write(&self.$field, sink);)*)+
            }
        }
    };
}

/// Declares an enumeration, each value with its name in every output. Adds `ALL` and `name`.
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $type:ident {
            $($(#[$doc:meta])* $value:ident = $name:literal,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $type {
            $($(#[$doc])* $value,)+
        }

        impl $type {
            /// All values, in the order of their numbers in a recording.
            pub const ALL: [$type; [$($name),+].len()] = [$($type::$value),+];

            pub fn name(self) -> &'static str {
                match self {
                    $($type::$value => $name,)+
                }
            }
        }
    };
}
