//! Command lines that were launched repeatedly with the same arguments in the same working directory.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::groups::argument_list;
use crate::tree::Forest;
use spawnscope_data::event::Nanos;

/// A command line with its launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The arguments with spaces between them.
    pub label: Vec<u8>,
    /// Number of launches.
    pub count: u64,
    /// Summed wall time of the launches.
    pub total: Nanos,
}

/// Arguments and working directory.
type CommandLine<'a> = (&'a [u8], Option<&'a [u8]>);
/// Number of launches and their summed wall time, in nanoseconds.
type Sums = (u64, u64);

/// Minimum number of launches of a repeated command line.
const MIN_LAUNCHES: u64 = 5;
/// Maximum number of command lines that are reported.
const MAX_LINES: usize = 10;

/// Returns the repeated command lines with the longest total time.
pub(crate) fn repeats(forest: &Forest<'_>) -> Vec<Repeat> {
    let mut lines: HashMap<CommandLine<'_>, Sums> = HashMap::new();
    for launch in forest.launches.iter().filter(|launch| launch.is_launch()) {
        if let Some(exec) = launch.execs.last().filter(|exec| !exec.argv_cut) {
            let (count, total) = lines.entry((exec.argv(), exec.cwd())).or_default();
            *count += 1;
            *total += launch.total(forest.end).unwrap_or_default().0;
        }
    }
    let mut lines: Vec<_> = lines.into_iter().filter(|(_, (count, _))| *count >= MIN_LAUNCHES).collect();
    lines.sort_by_key(|(key, (count, total))| (Reverse(*total), Reverse(*count), *key));
    lines.truncate(MAX_LINES);
    lines
        .into_iter()
        .map(|((argv, _), (count, total))| Repeat { label: argument_list(argv, false), count, total: Nanos(total) })
        .collect()
}
