//! What can be typed after `doctor`.

use clap::Args;

use crate::doctor::{Check, checks};

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope doctor
  spawnscope doctor --all                            notes in full as well
  spawnscope doctor --check scanners search-path     only these
  spawnscope doctor --json | jq '.findings[].title'

Takes some seconds at most. Needs no privilege; root also sees who holds up
files (fanotify), audit rules that are loaded, and other users' processes.
It starts shells, git and Python as you would, so that start-up files are run,
without a terminal and for 0.9 s each at most; under sudo, as the user who
typed it.

Exit status: 0 when there is no problem (notes are none), 1 when there is one,
125 when spawnscope itself fails.";

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Run these checks only; --list names them
    #[arg(long = "check", value_name = "ID", num_args = 1.., value_parser = check)]
    pub checks: Vec<&'static Check>,
    /// Name the checks, and what each looks at
    #[arg(long, conflicts_with_all = ["checks", "json", "all"])]
    pub list: bool,
    /// Print notes in full too
    #[arg(long)]
    pub all: bool,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
}

fn check(id: &str) -> Result<&'static Check, String> {
    checks::named(id).ok_or_else(|| "no check has that name: `spawnscope doctor --list` tells them".to_owned())
}
