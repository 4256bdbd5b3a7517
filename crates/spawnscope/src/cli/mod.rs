//! The command line, one file per verb. This file dispatches the parsed arguments to a verb and
//! turns its result into an exit status.

mod accel;
mod advise;
mod analysis;
mod args;
mod bench;
mod check;
mod collectors;
#[cfg(feature = "parquet")]
mod dataset;
mod diff;
mod doctor;
mod exit;
mod export;
mod flame;
mod fleet;
mod git_exclude;
mod hold;
mod html;
mod identity;
mod import;
mod input;
mod labels;
mod manual;
mod mcp;
mod metrics;
mod node_hook;
mod output;
mod output_file;
mod record;
mod recordings;
mod report;
mod resources;
mod ring;
mod session;
mod shell;
mod source_files;
#[cfg(feature = "top")]
mod top;
mod tree;
mod usage_error;
mod verbs;
mod whatif;

use std::env;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use self::exit::Status;
use self::verbs::{Arguments, Verb};
use crate::held::inheritance;

/// Returns the definition of the command line. Tests parse the commands in the documentation with
/// it.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Parses and runs the command line. Prints a failure with its chain of causes.
pub fn main() -> ExitCode {
    inheritance::use_own_dispositions();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            usage_error::print(&error);
            return ExitCode::from(exit::FAILED);
        }
        Err(help) => return status(without_status(manual::print_help(&help))).end(),
    };
    status(run(arguments.verb)).end()
}

/// Returns the exit status for the result of a verb, and prints the error if it failed.
fn status(result: Result<Status>) -> Status {
    match result {
        Ok(status) => status,
        Err(error) if output::is_closed_pipe(&error) => Status::SUCCESS,
        Err(error) => {
            output::print_failure(&error);
            exit::status_of_failure(&error)
        }
    }
}

fn run(mut verb: Verb) -> Result<Status> {
    input::replace_standard_input(verb.recordings())?;
    match &verb {
        Verb::Record(arguments) => record::run(arguments),
        #[cfg(feature = "top")]
        Verb::Top(arguments) => top::run(arguments),
        Verb::Report(arguments) => without_status(report::run(arguments)),
        Verb::Advise(arguments) => without_status(advise::run(arguments)),
        Verb::Import(arguments) => without_status(import::run(arguments)),
        Verb::Whatif(arguments) => without_status(whatif::run(arguments)),
        Verb::Diff(arguments) => without_status(diff::run(arguments)),
        Verb::Check(arguments) => check::run(arguments),
        Verb::Tree(arguments) => without_status(tree::run(arguments)),
        Verb::Flame(arguments) => without_status(flame::run(arguments)),
        Verb::Export(arguments) => without_status(export::run(arguments)),
        Verb::Html(arguments) => without_status(html::run(arguments)),
        Verb::Fleet { arguments } => fleet::run(arguments),
        Verb::Shell(arguments) => without_status(shell::run(arguments)),
        Verb::Hold(arguments) => hold::run(arguments),
        Verb::Accel(arguments) => accel::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::LabWorker { setting } => without_status(bench::run_worker(setting)),
        Verb::Doctor(arguments) => doctor::run(arguments),
        Verb::Mcp(arguments) => without_status(mcp::run(arguments)),
        Verb::Completions { shell } => without_status(manual::print_completions(*shell)),
        Verb::Man { directory } => without_status(manual::write_pages(directory)),
    }
}

fn without_status(result: Result<()>) -> Result<Status> {
    result.map(|()| Status::SUCCESS)
}

/// Returns an environment variable, unless it is empty or not UTF-8.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}
