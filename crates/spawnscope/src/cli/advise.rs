//! `spawnscope advise`: prints what is worth changing, how to change it, and the predicted saving.

use std::io::{self, Write};

use anyhow::{Context, Result};

use super::args::AdviseArguments;
use super::{output, report};
use crate::analyze::GroupBy;
use crate::analyze::window::Part;
use crate::present::advice;

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the advice cannot be written.
pub fn run(arguments: &AdviseArguments) -> Result<()> {
    let file = &arguments.recording.file;
    let part = arguments.window.part(Part::Main);
    let mut report = report::read(file, part, GroupBy::Command)?;
    if let Some(rule) = &arguments.rule {
        report.advices.keep_rule(rule);
    }
    output::print_contradictions(file, &report.info.contradictions);
    let text = if arguments.json {
        advice::json(&report)
    } else {
        advice::render(
            &report,
            arguments.all || arguments.rule.is_some(),
            output::width(&io::stdout()),
            arguments.window.with_file(output::typed_name(file)).as_deref(),
        )
    };
    anstream::stdout().lock().write_all(text.as_bytes()).context("failed to write the advice")
}
