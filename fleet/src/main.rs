//! `spawnscope-fleet`, which `spawnscope fleet` runs: answers questions about a dataset of many recordings, with an engine in this process.
//! Data goes one way: dataset -> engine -> answer -> page -> text, JSON or HTML.

mod answer;
mod arguments;
mod dataset;
mod engine;
mod page;
mod present;
mod push;
mod questions;
mod since;
mod store;
mod verbs;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use self::arguments::Arguments;

fn main() -> ExitCode {
    let result = verbs::run(&Arguments::parse().verb);
    match result.and_then(|text| Ok(io::stdout().write_all(text.as_bytes())?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spawnscope fleet: {}", message(&error));
            ExitCode::FAILURE
        }
    }
}

/// Joins the texts of an error and its causes. A cause is left out if the text already contains it, as the errors of object stores do.
fn message(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |message, cause| {
        let cause = cause.to_string();
        match message.as_str() {
            "" => cause,
            _ if message.contains(&cause) => message,
            _ => format!("{message}: {cause}"),
        }
    })
}

/// Whether the reader of standard output has closed the pipe, as in `| head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
