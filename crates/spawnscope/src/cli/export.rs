//! `spawnscope export`: writes a recording in another format.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::analysis::{Input, read_launches, with_timelines};
use super::args::{ExportArguments, ExportFormat};
use super::output;
use super::output_file::OutputFile;
use super::variable;
use crate::analyze::model::window::Part;
use crate::analyze::waits::attribution::waits_of_parents;
use crate::analyze::{Forest, GroupBy, Waits};
use crate::parallel;
use crate::present::otlp::{self, TraceContext};
use crate::present::{ndjson, perfetto};
use crate::record::reader::RecordingFile;

pub fn run(arguments: &ExportArguments) -> Result<()> {
    match arguments.format {
        ExportFormat::Ndjson => write_launches(arguments, only_recording(arguments)?),
        ExportFormat::Perfetto => write_trace(arguments, only_recording(arguments)?),
        ExportFormat::Otlp => write_spans(arguments, only_recording(arguments)?),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => super::dataset::export(arguments),
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
    let recording = read_launches(&file, path)?;
    let forest = Forest::build(&recording);
    let mut waits = Waits::new(&forest, &file.threads()?);
    let contradictions = file.slices(&mut |slice| waits.push(slice))?;
    output::print_contradictions(path, &contradictions);
    waits.sort();
    write(arguments, |out| ndjson::write(out, &forest, &waits))
}

/// Exports an OpenTelemetry trace, which is part of the trace of TRACEPARENT if that is set.
fn write_spans(arguments: &ExportArguments, path: &Path) -> Result<()> {
    let recording = read_launches(&RecordingFile::open(path)?, path)?;
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

fn write_trace(arguments: &ExportArguments, path: &Path) -> Result<()> {
    with_timelines(path, Part::Whole, |input| {
        let Input { recording, forest, timelines, .. } = input;
        let ((critical_path, waits_of_parents), (report, _)) = parallel::join(
            || (input.stretches(), waits_of_parents(recording, forest, timelines)),
            || input.report(GroupBy::Command),
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
