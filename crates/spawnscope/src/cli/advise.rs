//! `spawnscope advise`: what is worth changing, how, and what that would bring.

use std::io::{self, Write};

use anyhow::{Context, Result};

use super::args::AdviseArguments;
use super::{output, report};
use crate::analyze::GroupBy;
use crate::present::advice;

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the advice not be written.
pub fn run(arguments: &AdviseArguments) -> Result<()> {
    let file = &arguments.recording.file;
    let report = report::read(file, GroupBy::Command)?;
    output::tell_contradictions(file, &report.contradictions);
    let text = if arguments.json {
        advice::json(&report)
    } else {
        advice::render(
            &report,
            arguments.all,
            output::width(&io::stdout()),
            output::typed(file).as_deref(),
        )
    };
    anstream::stdout()
        .lock()
        .write_all(text.as_bytes())
        .context("failed to write the advice")
}
