//! The arguments of `doctor`.

#[cfg(feature = "parquet")]
use std::path::PathBuf;

use clap::Args;
#[cfg(feature = "parquet")]
use clap::ValueHint;
use clap::builder::PossibleValuesParser;

use crate::doctor::checks;

pub const EXAMPLES: &str = "\
Examples:
  spawnscope doctor
  spawnscope doctor --full                        # with evidence and notes
  spawnscope doctor scanners search-path          # run only these checks
  spawnscope doctor --except shims --except git   # run all other checks
  spawnscope doctor --json | jq '.findings[].title'
  spawnscope doctor -o fleet/                     # add to a dataset

Takes a few seconds at most. Needs no privilege; root also sees permission
scanners (fanotify) and other users' processes. Doctor starts shells, Python,
git (with its file-system monitor, if that is a program) and the shims of
version managers as you would. Your start-up files therefore run a few times
each, without a terminal. A program that exceeds its share of the time gets
SIGTERM, then SIGHUP, then SIGKILL. Under sudo, all programs run as the user who
called sudo.

Exit status: 0 if there are no problems (notes do not count), 1 if there are,
125 if spawnscope itself fails.";

#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// The checks, by name [default: all]
    #[arg(
        value_name = "CHECK",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(checks::ALL.iter().map(|check| check.id))
    )]
    pub checks: Vec<String>,
    /// Skip this check; can be repeated
    #[arg(
        long,
        value_name = "CHECK",
        hide_possible_values = true,
        conflicts_with = "checks",
        value_parser = PossibleValuesParser::new(checks::ALL.iter().map(|check| check.id))
    )]
    pub except: Vec<String>,
    /// List the checks and what each examines
    #[arg(long, conflicts_with_all = ["checks", "except", "full"])]
    pub list: bool,
    /// Also print the evidence, what each fix costs, and notes
    #[arg(long, visible_alias = "all")]
    pub full: bool,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    /// Also add the findings to a dataset, for `fleet machines`: a directory, or s3://BUCKET/PREFIX
    ///
    /// The dataset is that of `export --format parquet`. Only complete runs are added: do not
    /// combine it with CHECK or --except.
    #[cfg(feature = "parquet")]
    #[arg(
        short,
        long,
        value_name = "DATASET",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["checks", "except", "list"]
    )]
    pub output: Option<PathBuf>,
    /// The machine's name in the dataset; give the name that its recordings have as --label
    /// host=NAME [default: `uname -n`]
    #[cfg(feature = "parquet")]
    #[arg(long, value_name = "NAME", requires = "output", value_hint = ValueHint::Hostname)]
    pub host: Option<String>,
}
