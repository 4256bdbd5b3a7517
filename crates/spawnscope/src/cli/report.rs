//! `spawnscope report`: says where launch time went.

use std::io::{self, Write};
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::analysis::with_timelines;
use super::args::{Grouping, ReportArguments};
use super::output;
use crate::analyze::waits::tied::tied_waits;
use crate::analyze::{self, Causes, GroupBy, Report};
use crate::present::{json, table};

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the report not be written.
pub fn run(arguments: &ReportArguments) -> Result<()> {
    let group_by = match arguments.by {
        Grouping::Command => GroupBy::Command,
        Grouping::Parent => GroupBy::Parent,
        Grouping::Line => GroupBy::Line,
        Grouping::Caller => GroupBy::Caller,
    };
    let report = read(&arguments.recording.file, group_by)?;
    let mut out = anstream::stdout().lock();
    let top = Some(arguments.top).filter(|&top| top > 0);
    let width = output::width(&io::stdout());
    print(&report, arguments.json, table::Options { width, top }, &mut out)
}

/// Prints the report of a recording that was just made.
///
/// # Errors
/// As for `run`.
pub fn print_after_recording(file: &Path, as_json: bool, out: &mut dyn Write) -> Result<()> {
    let report = read(file, GroupBy::Command)?;
    let options = table::Options {
        width: output::width(&io::stderr()),
        ..table::Options::default()
    };
    print(&report, as_json, options, out)
}

/// Reads a recording and finds out everything that a report says.
///
/// # Errors
/// When the recording cannot be read.
pub fn read(path: &Path, group_by: GroupBy) -> Result<Report> {
    with_timelines(path, |recording, forest, timelines, contradictions| {
        thread::scope(|scope| {
            // Nothing else needs them, and on a large recording they take a second.
            let waits = scope.spawn(|| tied_waits(recording, forest, timelines));
            let causes = Causes::find(recording, forest, timelines);
            let mut report = analyze::report_on(recording, forest, causes.as_ref(), group_by);
            report.waits = waits
                .join()
                .map_err(|_| anyhow!("failed to find out what was waited for"))?;
            report.contradictions = contradictions;
            Ok(report)
        })
    })
}

fn print(report: &Report, as_json: bool, options: table::Options, out: &mut dyn Write) -> Result<()> {
    let text = if as_json {
        json::render(report)
    } else {
        table::render(report, &options)
    };
    out.write_all(text.as_bytes()).context("failed to write the report")
}
