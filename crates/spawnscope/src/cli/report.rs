//! `spawnscope report`: says where launch time went.

use std::io::{self, Write};
use std::path::Path;
use std::thread;

use anyhow::{Context, Result, anyhow};

use super::args::{Grouping, ReportArguments};
use super::output;
use crate::analyze::waits::tied::tied_waits;
use crate::analyze::{self, Causes, Forest, GroupBy, Report, SliceCollection};
use crate::present::{json, table};
use crate::record::reader::{RecordingFile, SliceRow};

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the report not be written.
pub fn run(arguments: &ReportArguments) -> Result<()> {
    let group_by = match arguments.by {
        Grouping::Command => GroupBy::Command,
        Grouping::Parent => GroupBy::Parent,
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

/// Slices are most of a recording: they are read, through a connection of their own, while the launches are joined.
fn read(path: &Path, group_by: GroupBy) -> Result<Report> {
    let file = RecordingFile::open(path)?;
    thread::scope(|scope| {
        let slices = scope.spawn(|| read_slices(path));
        let recording = file.read()?;
        let forest = Forest::grow(&recording);
        let slices = slices.join().map_err(|_| anyhow!("failed to read the slices"))??;
        let mut collection = SliceCollection::new(&recording, &forest, &file.threads()?);
        slices.into_iter().for_each(|slice| collection.push(slice));
        let timelines = collection.finish();
        let causes = Causes::find(&recording, &forest, &timelines);
        let mut report = analyze::report_on(&recording, &forest, causes.as_ref(), group_by);
        report.waits = tied_waits(&recording, &forest, &timelines);
        Ok(report)
    })
}

fn read_slices(path: &Path) -> Result<Vec<SliceRow>> {
    let mut slices = Vec::new();
    RecordingFile::open(path)?.slices(&mut |slice| slices.push(slice))?;
    Ok(slices)
}

fn print(report: &Report, as_json: bool, options: table::Options, out: &mut dyn Write) -> Result<()> {
    let text = if as_json {
        json::render(report)
    } else {
        table::render(report, &options)
    };
    out.write_all(text.as_bytes()).context("failed to write the report")
}
