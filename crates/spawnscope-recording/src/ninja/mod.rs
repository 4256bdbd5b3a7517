//! Finds the ninja edge that a launch belongs to. ninja starts an edge as `/bin/sh -c COMMAND`, and its log has a hash of each COMMAND beside
//! the outputs. `runs` notes the commands from events, `log` finds their hashes in a log, and `logs` opens the log, which anybody may have written.

mod arguments;
mod hash;
mod log;
mod logs;
mod runs;

use spawnscope_data::event::LaunchId;

use hash::Hashes;
#[cfg(fuzzing)]
pub use log::fuzz_ninja_log;
pub(super) use logs::Logs;
pub(super) use runs::Runs;

/// A ninja that runs, or ran.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// The directory that it works in.
    directory: Vec<u8>,
    /// Its build file, relative to that directory.
    file: Vec<u8>,
    /// What it launched.
    commands: Vec<Command>,
}

/// A command that ninja launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Command {
    launch: LaunchId,
    hashes: Hashes,
}

/// The edge that a launch was made for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) launch: LaunchId,
    /// Its outputs, sorted, at least one.
    pub(super) outputs: Vec<Vec<u8>>,
}
