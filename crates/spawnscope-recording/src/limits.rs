//! Limits on the contents of a recording. Values in the file determine loops and allocations of the
//! reader, and anyone may have written the file, so the reader checks every value against these
//! limits before use.

use std::time::Duration;

/// Maximum number of CPUs, far above what Linux supports (8192 on x86-64).
pub(super) const MAX_CPUS: u32 = 65_536;

/// Maximum time of what the calibration measures, in nanoseconds: 10 seconds. None takes more than
/// milliseconds on the slowest machines.
pub(super) const MAX_COST_NS: f64 = 1e10;

/// Maximum amount of memory, in bytes: the size of the largest address space, of 57 bits.
pub(super) const MAX_MEMORY_BYTES: u64 = 1 << 57;

/// Maximum size of one value, such as an argv or a path, in bytes. Linux allows an argv of 6 MiB.
pub(super) const MAX_VALUE_BYTES: i32 = 16 << 20;

/// Maximum time between the start of a recording and any instant in it: more than two years.
pub(super) const MAX_RECORDING_SPAN: Duration = Duration::from_nanos(1 << 56);

/// Maximum sum of the lives of all launches, in nanoseconds. It fits into 64 bits, so sums of the
/// analysis cannot overflow. 100,000 processes that run for a day stay below it.
pub(super) const MAX_TOTAL_LIFE_NS: u128 = 1 << 63;

/// Maximum size of the statement that created a table, including comments, in bytes: more than ten
/// times that of the longest statement in our schema.
pub(super) const MAX_STATEMENT_BYTES: i32 = 64 << 10;

/// Maximum number of tables and indexes: about twice as many as in our schema.
pub(super) const MAX_TABLES: i32 = 40;

/// Maximum number of columns of a table or a statement: about twice as many as in our schema.
pub(super) const MAX_COLUMNS: i32 = 64;
