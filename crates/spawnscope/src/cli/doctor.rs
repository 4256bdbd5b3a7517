//! `spawnscope doctor`: finds what makes launches slow on this machine.

use std::io;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

#[cfg(feature = "parquet")]
use super::dataset::{add_examination, add_to, check_for_examination};
use super::exit::{self, Status};
use super::identity::{self, IdentityArguments};
use super::output;
use crate::doctor::{Check, Machine, Measured, checks, examine};
use crate::present::doctor;
#[cfg(feature = "parquet")]
use clap::ValueHint;
#[cfg(feature = "parquet")]
use std::path::PathBuf;

pub fn run(arguments: &DoctorArguments) -> Result<Status> {
    let width = output::width(&io::stdout());
    if arguments.list {
        let listed = if arguments.json { doctor::list_json(&checks::ALL) } else { doctor::list(&checks::ALL, width) };
        output::print(&listed, "findings")?;
        return Ok(Status::SUCCESS);
    }
    let mut wanted: Vec<&Check> = checks::ALL.iter().collect();
    wanted.retain(|check| arguments.checks.is_empty() || arguments.checks.iter().any(|id| id == check.id));
    wanted.retain(|check| arguments.except.iter().all(|id| id != check.id));
    let machine = Machine::real(identity::decide(&IdentityArguments::default())?.identity)
        .context("failed to find the working directory")?;
    #[cfg(feature = "parquet")]
    arguments.output.as_deref().map(check_for_examination).transpose()?;
    let diagnosis = examine(&machine, &Measured::measure(&machine), &wanted);
    let text = if arguments.json {
        doctor::json(&diagnosis)
    } else {
        output::with_glyphs(doctor::render(&diagnosis, arguments.full, width))
    };
    output::print(&text, "findings")?;
    #[cfg(feature = "parquet")]
    if let Some(root) = &arguments.output {
        add_to(root, |directory| add_examination(directory, &diagnosis, arguments.host.as_deref()))?;
    }
    Ok(if diagnosis.has_problems() { Status::Code(exit::PROBLEMS) } else { Status::SUCCESS })
}

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
