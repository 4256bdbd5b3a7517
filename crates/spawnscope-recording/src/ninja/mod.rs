//! Finds the ninja edge that a launch belongs to. ninja runs an edge as `/bin/sh -c COMMAND`, and
//! its log contains the outputs of each edge with the hash of COMMAND. `invocations` collects the
//! commands from events, `logs` opens the logs, and `log` finds the hashes in a log.
//!
//! Edges are found by hashes only. The log also has times, but ninja's clock begins at an instant
//! that is not recorded, and with `-j` many edges begin in the same millisecond. If two launches or
//! two edges have the same command, none gets a label, because a wrong label is worse than none.

mod invocations;
mod log;
mod logs;

use spawnscope_data::event::LaunchId;

pub(super) use invocations::Invocations;
use log::Hashes;
#[cfg(fuzzing)]
pub use log::fuzz_ninja_log;
pub(super) use logs::Logs;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    directory: Vec<u8>,
    /// The build file, relative to that directory.
    file: Vec<u8>,
    commands: Vec<BuildCommand>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BuildCommand {
    launch: LaunchId,
    hashes: Hashes,
}

/// The edge that a launch belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) launch: LaunchId,
    /// The outputs of the edge, sorted. There is at least one.
    pub(super) outputs: Vec<Vec<u8>>,
}
