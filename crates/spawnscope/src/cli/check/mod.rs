//! `spawnscope check`: fails when a command exceeds a budget for its launches. `budgets` joins the options with spawnscope.toml.

mod budgets;

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use self::budgets::CheckRequest;
use super::args::{CheckArguments, CheckFormat};
use super::{diff, exit, output, report};
use crate::analyze::GroupBy;
use crate::analyze::budgets::{Check, check, growth};
use crate::analyze::diff::{Run, compare};
use crate::analyze::window::Part;
use crate::cli::exit::Status;
use crate::present::check as present;

/// Maximum size of our job summary. GitHub refuses summaries of 1 MiB or more, counting all programs of a step.
const MAX_SUMMARY_BYTES: usize = 900 * 1024;
const SUMMARY_VARIABLE: &str = "GITHUB_STEP_SUMMARY";

/// Runs the verb.
///
/// # Errors
/// When a budget is invalid, a recording cannot be read, or the result cannot be written.
pub fn run(arguments: &CheckArguments) -> Result<Status> {
    let requested = CheckRequest::from_arguments(arguments)?;
    let runs = read_all(&arguments.files)?;
    // The first run stands for all, since they are runs of one version.
    let first = report::read(&arguments.files[0], Part::Whole, GroupBy::Command)?;
    let mut outcome = check(&runs, &requested.budgets, &first.advices)?;
    if !requested.against.is_empty() {
        let baseline = read_all(&requested.against).context("--against")?;
        let difference = compare(&baseline, &runs);
        outcome.verdicts.extend(growth(&difference, requested.tolerance));
    }
    if outcome.verdicts.is_empty() {
        bail!(
            "no budget: give one, such as --max-launches 500, or write a spawnscope.toml (`spawnscope check --help`)"
        );
    }
    let text = match arguments.format {
        CheckFormat::Text => present::text(&outcome, output::width(&io::stdout())),
        CheckFormat::Github => present::github(&outcome, &workspace()),
        CheckFormat::Markdown => present::markdown(&outcome),
        CheckFormat::Json => present::json(&outcome),
        CheckFormat::Bmf => present::bmf(&outcome, &runs),
        CheckFormat::GithubActionBenchmark => present::github_action_benchmark(&outcome, &runs),
        CheckFormat::Gitlab => bail!("--format gitlab was removed; use json"),
    };
    let written = anstream::stdout().lock().write_all(text.as_bytes());
    written.context("failed to write the result")?;
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
    let Some(path) = env::var_os(SUMMARY_VARIABLE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = Path::new(&path);
    let summary = present::truncate_markdown(present::markdown(outcome), MAX_SUMMARY_BYTES);
    let written =
        OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(summary.as_bytes()));
    written.with_context(|| format!("failed to write the job summary to {} ({SUMMARY_VARIABLE})", path.display()))
}
