//! `spawnscope report`: shows where launch time went.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueHint};

use super::analysis::{Input, predict_together, with_timelines_of};
use super::args::{JsonArguments, RecordingArgument, WindowArguments, named};
use super::output;
use super::output_file::OutputFile;
use super::source_files::SourceFiles;
use crate::analyze::explain::report::waits_fit;
use crate::analyze::model::window::Part;
use crate::analyze::sites::build_labels::BuildLabel;
use crate::analyze::sites::build_steps::name_by_steps;
use crate::analyze::waits::attribution::attributed_waits;
use crate::analyze::{GroupBy, Report, Scope};
use crate::import::build_steps;
use crate::parallel;
use crate::present::groupings::GROUPINGS;
use crate::present::{json, summary, table};
use crate::record::reader::{Recording, RecordingFile};
use crate::units;

pub fn run(arguments: &ReportArguments) -> Result<()> {
    let usual = match arguments.labels.is_empty() {
        true => GroupBy::Command,
        false => GroupBy::Label(BuildLabel::Target),
    };
    let group_by = arguments.by.unwrap_or(usual);
    let file = &arguments.recording.file;
    let part = arguments.window.part(Part::Whole);
    let has_waits = arguments.json.json || arguments.full;
    let mut report = match arguments.labels.is_empty() {
        true => read_with_busiest_episode(file, part, group_by, has_waits)?,
        false => read_with_labels(file, &arguments.labels, part, group_by, has_waits)?,
    };
    let width = output::width(&io::stdout());
    let typed = arguments.window.with_file(output::typed_name(file));
    let options = table::Options {
        width,
        top: Some(arguments.top.unwrap_or(table::DEFAULT_TOP)).filter(|&top| top > 0),
        file: typed.as_deref(),
    };
    let text = if arguments.json.json {
        arguments.json.text(&json::value(&report))?
    } else if arguments.full {
        look_up_sources(&mut report, file, part)?;
        output::with_glyphs(table::render(&report, &options))
    } else if arguments.by.is_some() || arguments.top.is_some() || !arguments.labels.is_empty() {
        output::with_glyphs(table::render_table(&report, &options))
    } else {
        look_up_sources(&mut report, file, part)?;
        let height = output::terminal_height(&io::stdout());
        output::with_glyphs(summary::render(&report, width, height, options.file))
    };
    output::print(&text, "report")
}

/// Prints the report of a recording that was just made: as text to `out`, as JSON to `json`.
/// Returns the number of its launches.
pub fn print_after_recording(file: &Path, out: Option<&mut dyn Write>, json_file: Option<&OutputFile>) -> Result<u64> {
    let mut report = read_with_busiest_episode(file, Part::Whole, GroupBy::Command, json_file.is_some())?;
    if let Some(json_file) = json_file {
        json_file.replace(|out| out.write_all(json::render(&report).as_bytes()))?;
    }
    if let Some(out) = out {
        let (width, height) = (output::width(&io::stderr()), output::terminal_height(&io::stderr()));
        look_up_sources(&mut report, file, Part::Whole)?;
        let text = output::with_glyphs(summary::render(&report, width, height, output::typed_name(file).as_deref()));
        out.write_all(text.as_bytes()).context("failed to write the report")?;
    }
    Ok(report.all.count)
}

/// Looks up the lines and edits of the advice that is printed.
fn look_up_sources(report: &mut Report, file: &Path, part: Part) -> Result<()> {
    let (report, part) = match &mut report.busiest {
        Some(busiest) => (&mut **busiest, Part::Main),
        None => (report, part),
    };
    SourceFiles::look_up(report);
    predict_together(&mut report.advices, file, part)
}

/// Reads a part of a recording and reports on it. The report on a whole recording of a machine also
/// contains its busiest episode.
fn read_with_busiest_episode(path: &Path, part: Part, group_by: GroupBy, has_waits: bool) -> Result<Report> {
    let read = |part| read_with_waits(path, part, group_by, has_waits);
    let mut report = read(part)?;
    if part == Part::Whole && report.info.scope == Scope::System && !report.episodes.is_empty() {
        report.busiest = Some(Box::new(read(Part::Main)?));
    }
    Ok(report)
}

/// Reads a part of a recording and reports on it, without its waits.
pub fn read(path: &Path, part: Part, group_by: GroupBy) -> Result<Report> {
    read_with_waits(path, part, group_by, false)
}

fn read_with_waits(path: &Path, part: Part, group_by: GroupBy, has_waits: bool) -> Result<Report> {
    let report = |input: Input<'_, '_>| report_of(input, part, group_by, has_waits);
    with_timelines_of(&RecordingFile::open(path)?, part, &mut |_| {}, report)
}

/// Reads a part of a recording whose launches get names from the logs of build tools, and reports
/// on it.
fn read_with_labels(path: &Path, logs: &[PathBuf], part: Part, group_by: GroupBy, has_waits: bool) -> Result<Report> {
    let builds: Vec<_> = logs.iter().map(|log| build_steps(log)).collect::<Result<Vec<_>, _>>()?.concat();
    let mut named = 0;
    let mut name = |recording: &mut Recording| named = name_by_steps(recording, &builds);
    let file = RecordingFile::open(path)?;
    let report = with_timelines_of(&file, part, &mut name, |input| report_of(input, part, group_by, has_waits))?;
    let steps = units::counted(builds.iter().map(Vec::len).sum::<usize>() as u64, "step", "steps");
    output::print_message(&format!(
        "{} named after {steps} of builds",
        units::counted(named as u64, "launch", "launches")
    ));
    Ok(report)
}

/// Reports on a part of a recording. `has_waits` says whether the waits are shown: on a large
/// recording they take a second.
fn report_of(input: Input<'_, '_>, part: Part, group_by: GroupBy, has_waits: bool) -> Result<Report> {
    let Input { recording, forest, timelines, .. } = input;
    let waits = || if has_waits { attributed_waits(recording, forest, timelines) } else { Vec::new() };
    let (waits, (mut report, _)) = parallel::join(waits, || input.report(group_by));
    debug_assert!(
        !input.contradictions.0.is_empty()
            || waits_fit(&waits, recording.info.last_event.max(report.wall), timelines.threads.len()),
        "the threads wait longer than the wall time"
    );
    report.waits = waits;
    report.info.contradictions = input.contradictions;
    // A recording of `-p` is explained as a whole.
    let is_whole = part == Part::Whole || (part == Part::Main && report.info.scope == Scope::Process);
    if !is_whole {
        report.window = input.window;
        report.episodes.clear();
    }
    Ok(report)
}

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  spawnscope report                 # reads spawnscope.db
  spawnscope report --full          # all sections
  spawnscope report --by parent ci.db  # which programs launch others
  spawnscope report --by line       # which script lines request launches
  ssh build cat ci.db | spawnscope report -  # from standard input
  spawnscope report --by args       # same program, same arguments
  spawnscope report --by subcommand  # git log, git show: a row each
  spawnscope report --by label:target  # launches by build target
  spawnscope report --labels out/.ninja_log  # launches by ninja's steps
  spawnscope report --by label:test  # what each test launches
  spawnscope report --by command --top 0  # every command
  spawnscope report --from 12.5 --to 20  # only these seconds
  spawnscope report --json | jq '.commands[0]'";

#[derive(Debug, Args)]
pub struct ReportArguments {
    #[command(flatten)]
    pub recording: RecordingArgument,
    /// Print all sections, not only what fits on one screen; --top 0 also prints all rows
    #[arg(long, conflicts_with_all = ["json"])]
    pub full: bool,
    /// Print only the table of launches, grouped by BY; with --full or --json, print the whole
    /// report with this table
    #[arg(long, value_parser = named(GROUPINGS.iter().map(|grouping| (grouping.name, grouping.about, grouping.by))))]
    pub by: Option<GroupBy>,
    /// Label launches with the build steps that a build tool logged: .ninja_log, cargo's --timings
    /// page or -Zbuild-analysis log, or Bazel's profile. Without --by, the table is by label:target
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub labels: Vec<PathBuf>,
    /// Number of table rows to print, most expensive first; 0 prints all [default: 15]. If --top is
    /// used without --full, --by or --json, only the table of commands is printed
    #[arg(long, value_name = "N", value_hint = ValueHint::Other, allow_negative_numbers = true)]
    pub top: Option<usize>,
    #[command(flatten)]
    pub json: JsonArguments,
    #[command(flatten)]
    pub window: WindowArguments,
}
