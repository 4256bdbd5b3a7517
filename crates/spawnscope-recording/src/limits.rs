//! Limits on the contents of a recording. Values in the file determine loops and allocations of the reader, and anyone may have written
//! the file, so the reader checks every value against these limits before use.

use std::time::Duration;

/// CPUs: four times as many as Linux can be built for.
pub(super) const MAX_CPUS: u32 = 65_536;

/// Bytes of one value, such as an argv or a path. Linux allows an argv of 6 MiB.
pub(super) const MAX_VALUE: i32 = 16 << 20;

/// Time between the start of a recording and any instant in it: more than two years.
pub(super) const MAX_RECORDING: Duration = Duration::from_nanos(1 << 56);

/// The limit for the summed lives of all launches. A sum within it fits into 64 bits, so later sums cannot overflow. 100,000 processes that
/// run for a day stay below it.
pub(super) const MAX_LIVES: u128 = 1 << 63;

/// Bytes of the statement that created a table, including comments: ten times as many as the longest in our schema.
pub(super) const MAX_STATEMENT: i32 = 64 << 10;

/// Tables and indexes: twice as many as in our schema.
pub(super) const MAX_TABLES: i32 = 40;

/// Columns of a table or a statement: twice as many as in our schema.
pub(super) const MAX_COLUMNS: i32 = 64;
