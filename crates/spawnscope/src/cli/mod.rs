//! The command line: one file a verb. Here: from what was typed to the verb, and from its outcome to an exit status.

mod advise;
mod analysis;
mod args;
mod bench;
mod doctor;
mod exit;
mod export;
mod flame;
mod hold;
mod identity;
mod interrupts;
mod manual;
mod output;
mod output_file;
mod progress;
mod record;
mod report;
mod room;
mod running;
mod session;
mod tree;
mod whatif;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use self::args::{Arguments, Verb};

/// Runs the command line; prints the chain of causes of a failure.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            output::tell_usage(&error);
            return ExitCode::from(exit::FAILED);
        }
        Err(help) => return ended(manual::print_help(&help).map(|()| ExitCode::SUCCESS)),
    };
    ended(run(&arguments.verb))
}

/// Tells why a verb failed, if it did, and gives the exit status.
fn ended(result: Result<ExitCode>) -> ExitCode {
    match result {
        Ok(status) => status,
        Err(error) if output::reader_went_away(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell_failure(&error);
            exit::of_failure(&error)
        }
    }
}

fn run(verb: &Verb) -> Result<ExitCode> {
    let done = |result: Result<()>| result.map(|()| ExitCode::SUCCESS);
    match verb {
        Verb::Record(arguments) => record::run(arguments),
        Verb::Report(arguments) => done(report::run(arguments)),
        Verb::Advise(arguments) => done(advise::run(arguments)),
        Verb::Whatif(arguments) => done(whatif::run(arguments)),
        Verb::Tree(arguments) => done(tree::run(arguments)),
        Verb::Flame(arguments) => done(flame::run(arguments)),
        Verb::Export(arguments) => done(export::run(arguments)),
        Verb::Hold(arguments) => hold::run(arguments),
        Verb::Bench(arguments) => bench::run(arguments),
        Verb::LabWorker { setting } => done(bench::work(setting)),
        Verb::Doctor(arguments) => doctor::run(arguments),
        Verb::Completions { shell } => done(manual::print_completions(*shell)),
        Verb::Man { directory } => done(manual::write_pages(directory)),
    }
}
