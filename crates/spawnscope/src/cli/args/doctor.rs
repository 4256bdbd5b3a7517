//! What can be typed after `doctor`.

use clap::Args;
use clap::builder::PossibleValuesParser;

use crate::doctor::checks;

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope doctor
  spawnscope doctor --all                            notes in full as well
  spawnscope doctor scanners search-path             only these
  spawnscope doctor --except shims --except git      all others
  spawnscope doctor --json | jq '.findings[].title'

Takes some seconds at most. Needs no privilege; root also sees who holds up
files (fanotify), audit rules that are loaded, and other users' processes.
It starts shells, Python, git (with its file-system monitor, if that is a
program) and shims of version managers as you would, so that your start-up
files are run, some times each, without a terminal. What does not end within
its share of the time is asked to end, as when a terminal is closed, and then
killed. Under sudo, all this is done as the user who typed it.

Exit status: 0 when there is no problem (notes are none), 1 when there is one,
125 when spawnscope itself fails.";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The checks, by name [default: all]
    #[arg(
        value_name = "CHECK",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(checks::ALL.iter().map(|check| check.id))
    )]
    pub checks: Vec<String>,
    /// Leave this check out; can be given several times
    #[arg(
        long,
        value_name = "CHECK",
        hide_possible_values = true,
        conflicts_with = "checks",
        value_parser = PossibleValuesParser::new(checks::ALL.iter().map(|check| check.id))
    )]
    pub except: Vec<String>,
    /// List the checks and what each looks at
    #[arg(long, conflicts_with_all = ["checks", "except", "all"])]
    pub list: bool,
    /// Also print notes in full
    #[arg(long)]
    pub all: bool,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}
