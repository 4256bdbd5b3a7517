//! `record --runs N`: records a command several times, each time to a separate file, so that `diff` and `check` can distinguish change from noise.

use anyhow::Result;

use super::args::RecordArguments;
use super::exit::Status;
use super::output::{escape_line, print_message};
use crate::record::numbered_file;

/// Records the runs with `record_once`. If the command fails in a run, there are no further runs, because that run did not do the same work as
/// the others.
///
/// # Errors
/// When spawnscope itself fails.
pub fn record(
    arguments: &RecordArguments,
    runs: u32,
    record_once: impl Fn(&RecordArguments) -> Result<Status>,
) -> Result<Status> {
    for run in 1..=runs {
        let run_arguments =
            RecordArguments { output: numbered_file(&arguments.output, run.into()), quiet: true, ..arguments.clone() };
        let status = record_once(&run_arguments)?;
        if !arguments.quiet {
            print_message(&format!("recorded run {run} of {runs} to {}", escape_line(run_arguments.output.display())));
        }
        if status != Status::SUCCESS {
            if run < runs && !arguments.quiet {
                print_message("the command failed: no further runs");
            }
            return Ok(status);
        }
    }
    Ok(Status::SUCCESS)
}
