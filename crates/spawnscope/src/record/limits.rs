//! How much of anything a recording may hold. What a file says sizes loops and allocations of those who read it, and anybody
//! may have written it: the reader holds every number against these before it is used.

use std::time::Duration;

/// CPUs: four times what Linux can be built for.
pub(super) const MOST_CPUS: u32 = 65_536;

/// Bytes of one value, such as an argv or a path. Linux lets an argv have 6 MiB.
pub(super) const LONGEST_VALUE: i32 = 16 << 20;

/// The time between a recording's start and any instant in it: more than two years.
pub(super) const LONGEST_RECORDING: Duration = Duration::from_nanos(1 << 56);

/// What the lives of all launches may add up to: sums of 64 bits hold it, so that nothing that is summed up later can
/// overflow. It is what 100,000 processes live through in a day.
pub(super) const LONGEST_LIVES: u128 = 1 << 63;

/// Bytes of the statement that made a table, with its comments: ten times ours.
pub(super) const LONGEST_STATEMENT: i32 = 64 << 10;

/// Tables and indexes: twice ours.
pub(super) const MOST_TABLES: i32 = 40;

/// Columns of a table or of a statement: twice ours.
pub(super) const MOST_COLUMNS: i32 = 64;
