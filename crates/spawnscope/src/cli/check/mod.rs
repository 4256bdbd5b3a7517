//! `spawnscope check`: fails when a command exceeds a budget for its launches. `budgets` joins the
//! options with spawnscope.toml.

mod budgets;

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum, ValueHint};

use self::budgets::CheckRequest;
use super::args::{DEFAULT_FILE, parse_count};
use super::{diff, exit, output, report};
use crate::analyze::GroupBy;
use crate::analyze::compare::budgets::{Check, check, growth};
use crate::analyze::compare::diff::{Grouping, Run, compare};
use crate::analyze::model::window::Part;
use crate::cli::exit::Status;
use crate::present::check as present;

/// Maximum size of our job summary. GitHub refuses summaries of 1 MiB or more, counting all
/// programs of a step.
const MAX_SUMMARY_BYTES: usize = 900 * 1024;
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

pub fn run(arguments: &CheckArguments) -> Result<Status> {
    let requested = CheckRequest::from_arguments(arguments)?;
    let runs = read_all(&arguments.files)?;
    // The first run stands for all, since they are runs of one version.
    let first = report::read(&arguments.files[0], Part::Whole, GroupBy::Command)?;
    let mut outcome = check(&runs, &requested.budgets, &first.advices)?;
    if !requested.against.is_empty() {
        let baseline = read_all(&requested.against).context("--against")?;
        let difference = compare(&baseline, &runs, Grouping::Lines);
        outcome.verdicts.extend(growth(&difference, requested.tolerance));
    }
    if outcome.verdicts.is_empty() {
        bail!(
            "no budget: give one, such as --max-launches 500, or write a spawnscope.toml (`spawnscope check --help`)"
        );
    }
    let text = match arguments.format {
        CheckFormat::Text => output::with_glyphs(present::text(&outcome, output::width(&io::stdout()))),
        CheckFormat::Github => present::github(&outcome, &workspace()),
        CheckFormat::Markdown => present::markdown(&outcome),
        CheckFormat::Json => present::json(&outcome),
    };
    output::print(&text, "result")?;
    if arguments.format == CheckFormat::Github {
        append_job_summary(&outcome)?;
    }
    Ok(if outcome.is_kept() { Status::SUCCESS } else { Status::Code(exit::EXCEEDED) })
}

fn read_all(files: &[PathBuf]) -> Result<Vec<Run>> {
    files.iter().map(|file| Ok(diff::read(file, None)?.0)).collect()
}

/// Returns the directory of the sources, to which file names in annotations are relative.
fn workspace() -> PathBuf {
    env::var_os("GITHUB_WORKSPACE").map(PathBuf::from).or_else(|| env::current_dir().ok()).unwrap_or_default()
}

/// Appends the result to the job summary, whose file GITHUB_STEP_SUMMARY names.
fn append_job_summary(outcome: &Check) -> Result<()> {
    let Some(path) = env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else { return Ok(()) };
    let path = Path::new(&path);
    let summary = present::truncate_markdown(present::markdown(outcome), MAX_SUMMARY_BYTES);
    let written =
        OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(summary.as_bytes()));
    written.with_context(|| format!("failed to write the job summary to {} ({SUMMARY_VARIABLE})", path.display()))
}

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope check --max-launches 500
  spawnscope check --per-command git=50 --per-line 100 ci.db
  spawnscope check --against main.db --tolerance 5% ci.db
  spawnscope check --max-wall 2s ci.1.db ci.2.db ci.3.db
  spawnscope check --format github ci.db   # in GitHub Actions
  spawnscope check ci.db                   # budgets of spawnscope.toml

Several recordings are runs of one version (`record --runs 5`): `check` compares
the median of each count with its budget. A time exceeds its budget if the lower
end of its 95 % interval does; for a single recording, an interval of 5 % on
either side is assumed.

spawnscope.toml has the same budgets; options take precedence:
  [check]
  max-launches = 500
  max-critical-tax = \"20%\"
  [check.per-command]
  git = 50

Exit status: 0 if all budgets are met, 1 if one is exceeded, 125 if
spawnscope itself fails.";

#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The recordings: runs of one version; - is standard input
    #[arg(value_name = "FILE", default_value = DEFAULT_FILE, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub budgets: BudgetArguments,
    /// File with budgets [default: spawnscope.toml, if it exists]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t = CheckFormat::Text)]
    pub format: CheckFormat,
}

#[derive(Debug, Default, Args)]
pub struct BudgetArguments {
    /// At most N launches
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_launches: Option<u64>,
    /// At most N forks that run no other program
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_forks_without_exec: Option<u64>,
    /// At most N failed execs
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub max_failed_execs: Option<u64>,
    /// At most this share of the wall time for start-up (launch tax) on the critical path, such as
    /// 20%
    #[arg(long, value_name = "SHARE", value_hint = ValueHint::Other)]
    pub max_critical_tax: Option<String>,
    /// At most this wall time, such as 2s or 800ms
    #[arg(long, value_name = "TIME", value_hint = ValueHint::Other)]
    pub max_wall: Option<String>,
    /// At most N launches from any one script line
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true, value_parser = parse_count)]
    pub per_line: Option<u64>,
    /// At most N launches of a program (a glob on its base name); can be repeated
    #[arg(long, value_name = "PROGRAM=N", value_hint = ValueHint::Other)]
    pub per_command: Vec<String>,
    /// At most as many launches, forks without exec and failed execs as in this recording; if
    /// repeated for several runs, the wall time is limited too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub against: Vec<PathBuf>,
    /// Permitted increase over --against: a share such as 5%, or a number of launches [default: 0]
    #[arg(long, value_name = "MORE", value_hint = ValueHint::Other)]
    pub tolerance: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// Text for the terminal
    Text,
    /// Annotations of GitHub Actions, and a job summary if GITHUB_STEP_SUMMARY is set
    Github,
    /// Markdown
    Markdown,
    /// JSON (schema_version 1)
    Json,
}
