//! `spawnscope export`: writes a recording in another format.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

#[cfg(feature = "parquet")]
use super::analysis::with_timelines_of;
use super::analysis::{Input, with_timelines};
use super::args::{ExportArguments, ExportFormat};
#[cfg(feature = "parquet")]
use super::dataset::DatasetFiles;
#[cfg(feature = "parquet")]
use super::fleet;
use super::output;
use super::output_file::OutputFile;
use super::variable;
use crate::analyze::model::window::Part;
use crate::analyze::path::critical_path::stretches;
use crate::analyze::predict::replay::Parameters;
#[cfg(feature = "parquet")]
use crate::analyze::sites::build_labels::{BuildLabel, BuildLabels};
#[cfg(feature = "parquet")]
use crate::analyze::waits::attribution::attributed_waits;
use crate::analyze::waits::attribution::waits_of_parents;
use crate::analyze::{self, Causes, Forest, GroupBy, Waits};
use crate::parallel;
#[cfg(feature = "parquet")]
use crate::present::dataset::{self, Dataset};
use crate::present::otlp::{self, TraceContext};
use crate::present::{ndjson, perfetto};
use crate::record::reader::RecordingFile;

pub fn run(arguments: &ExportArguments) -> Result<()> {
    match arguments.format {
        ExportFormat::Ndjson => write_launches(arguments, only_recording(arguments)?),
        ExportFormat::Perfetto => write_trace(arguments, only_recording(arguments)?),
        ExportFormat::Otlp => write_spans(arguments, only_recording(arguments)?),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => add(arguments),
    }
}

fn only_recording(arguments: &ExportArguments) -> Result<&Path> {
    match arguments.files.as_slice() {
        [path] => Ok(path),
        _ => bail!("this format has the launches of one recording: export each recording by itself"),
    }
}

fn write_launches(arguments: &ExportArguments, path: &Path) -> Result<()> {
    let file = RecordingFile::open(path)?;
    let recording = file.read()?;
    output::print_contradictions(path, &recording.info.contradictions);
    let forest = Forest::build(&recording);
    let mut waits = Waits::new(&forest, &file.threads()?);
    let contradictions = file.slices(&mut |slice| waits.push(slice))?;
    output::print_contradictions(path, &contradictions);
    waits.sort();
    write(arguments, |out| ndjson::write(out, &forest, &waits))
}

/// Exports an OpenTelemetry trace, which is part of the trace of TRACEPARENT if that is set.
fn write_spans(arguments: &ExportArguments, path: &Path) -> Result<()> {
    let recording = RecordingFile::open(path)?.read()?;
    output::print_contradictions(path, &recording.info.contradictions);
    let forest = Forest::build(&recording);
    let command = &recording.info.command;
    let inherited = variable("TRACEPARENT").and_then(|text| TraceContext::parse(&text));
    let service = variable("OTEL_SERVICE_NAME");
    let contents = otlp::Contents {
        forest: &forest,
        command,
        service: service.as_deref(),
        context: &inherited.unwrap_or_else(|| TraceContext::for_recording(recording.info.started_unix_ns, command)),
        max_spans: arguments.max_spans as usize,
    };
    write(arguments, |out| otlp::write(out, &contents))
}

/// Adds the recordings to the dataset of -o, unless the dataset already has them.
#[cfg(feature = "parquet")]
fn add(arguments: &ExportArguments) -> Result<()> {
    let Some(root) = output::file(arguments.output.as_deref()) else {
        bail!("a dataset is a directory, or s3://BUCKET/PREFIX: name it with -o");
    };
    if !fleet::is_store(root) {
        return add_all(arguments, root);
    }
    let directory = super::dataset::temporary_directory().context("failed to make a temporary directory")?;
    let added = add_all(arguments, directory.path());
    if directory.path().join(dataset::Table::Runs.name()).exists() {
        fleet::push(directory.path(), root)?;
    }
    added
}

/// Adds all recordings that can be read, and then fails if there are others.
#[cfg(feature = "parquet")]
fn add_all(arguments: &ExportArguments, root: &Path) -> Result<()> {
    let results = arguments.files.iter().map(|path| add_to_dataset(arguments, path, root));
    let mut failures: Vec<_> = results.filter_map(Result::err).collect();
    let Some(last) = failures.pop() else {
        return Ok(());
    };
    for failure in &failures {
        output::print_message(&output::escape_line(format!("{failure:#}")));
    }
    match arguments.files.len() - failures.len() - 1 {
        0 => Err(last),
        added => Err(last.context(format!("{added} of {} recordings were added", arguments.files.len()))),
    }
}

/// Adds a recording to the dataset in a directory, unless the dataset already has it.
#[cfg(feature = "parquet")]
fn add_to_dataset(arguments: &ExportArguments, path: &Path, root: &Path) -> Result<()> {
    let file = RecordingFile::open(path)?;
    let info = file.info()?;
    let files = DatasetFiles::for_recording(root, &file, &info)?;
    if files.exist()? {
        output::print_message(&format!("{} is already in {}", path.display(), root.display()));
        return Ok(());
    }
    with_timelines_of(&file, Part::Whole, &mut |_| {}, |input| {
        let Input { recording, forest, timelines, .. } = input;
        output::print_contradictions(path, &input.contradictions);
        let ((waits, labels), (report, path)) = parallel::join(
            || {
                let labels = BuildLabel::ALL.map(|label| BuildLabels::find(forest, label));
                (attributed_waits(recording, forest, timelines), labels)
            },
            || {
                let causes = Causes::find(recording, forest, timelines);
                let report = analyze::report_on(recording, forest, causes.as_ref(), GroupBy::Command);
                (report, causes.map(|causes| causes.path))
            },
        );
        let dataset = Dataset::new(&dataset::Contents {
            run: files.id(),
            has_command_lines: !arguments.no_command_lines,
            recorder: &info.version,
            forest,
            report: &report,
            path: path.as_ref(),
            waits: &waits,
            labels: &labels,
        });
        files.write(&dataset, arguments.mode)
    })
}

fn write_trace(arguments: &ExportArguments, path: &Path) -> Result<()> {
    with_timelines(path, Part::Whole, |input| {
        let Input { recording, forest, timelines, .. } = input;
        output::print_contradictions(path, &input.contradictions);
        let ((critical_path, waits_of_parents), report) = parallel::join(
            || {
                let wall = Parameters::of(recording).map(|setting| setting.wall);
                let critical_path = wall.and_then(|wall| stretches(forest, timelines, wall));
                (critical_path, waits_of_parents(recording, forest, timelines))
            },
            || {
                let causes = Causes::find(recording, forest, timelines);
                analyze::report_on(recording, forest, causes.as_ref(), GroupBy::Command)
            },
        );
        let contents = perfetto::Contents {
            forest,
            report: &report,
            critical_path: &critical_path.unwrap_or_default(),
            waits_of_parents: &waits_of_parents,
            run_queue: &timelines.run_queue_times(),
        };
        write(arguments, |out| perfetto::write(out, &contents))
    })
}

fn write(arguments: &ExportArguments, export: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    if let Some(path) = output::file(arguments.output.as_deref()) {
        let file = OutputFile::claim(path)?;
        file.replace(export)?;
        if !file.is_stream() {
            output::print_written(path);
        }
        return Ok(());
    }
    if arguments.format == ExportFormat::Perfetto && io::stdout().is_terminal() {
        bail!("this trace is binary: name a file with -o, or redirect standard output")
    }
    let mut out = BufWriter::new(io::stdout().lock());
    let written = export(&mut out).and_then(|()| out.flush());
    written.context("failed to write the export")
}
