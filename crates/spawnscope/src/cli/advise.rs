//! `spawnscope advise`: prints what is worth changing, how to change it, and the predicted saving.

use std::io::{self, Write};

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;

use super::args::{RecordingArgument, WindowArguments};
use super::{output, report};
use crate::analyze::GroupBy;
use crate::analyze::advice::AdviceList;
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

pub(super) const EXAMPLES: &str = "\
Examples:
  spawnscope advise                       # what to change in spawnscope.db
  spawnscope advise --all ci.db           # also what is not worth fixing
  spawnscope advise --rule builtin        # what one rule found
  spawnscope advise --episode 2 editor.db  # one refresh of an editor";

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Also print findings that are not worth fixing or are too uncertain
    #[arg(long)]
    pub all: bool,
    /// Print only what this rule found, worth fixing or not
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(AdviceList::rules()), hide_possible_values = true)]
    pub rule: Option<String>,
    /// Print JSON (schema_version 1)
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub window: WindowArguments,
}
