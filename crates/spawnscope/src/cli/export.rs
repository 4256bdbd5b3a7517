//! `spawnscope export`: writes a recording in another format.

use std::io::{self, BufWriter, IsTerminal, Write};

use anyhow::{Context, Result, bail};

use super::args::{ExportArguments, ExportFormat};
use super::output;
use super::output_file::OutputFile;
use crate::analyze::{Forest, WaitCollection};
use crate::present::{ndjson, perfetto};
use crate::record::reader::RecordingFile;

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the export cannot be written.
pub fn run(arguments: &ExportArguments) -> Result<()> {
    let path = &arguments.recording.file;
    let file = RecordingFile::open(path)?;
    let recording = file.read()?;
    output::print_contradictions(path, &recording.info.contradictions);
    let forest = Forest::grow(&recording);
    let mut out = BufWriter::new(destination(arguments)?);
    let written = match arguments.format {
        ExportFormat::Ndjson => {
            let mut waits = WaitCollection::new(&recording, &forest, &file.threads()?);
            let contradictions = file.slices(&mut |slice| waits.push(slice))?;
            output::print_contradictions(path, &contradictions);
            ndjson::write(&mut out, &forest, &waits.finish())
        }
        ExportFormat::Perfetto => perfetto::write(&mut out, &forest),
    };
    written.and_then(|()| out.flush()).context("failed to write the export")
}

fn destination(arguments: &ExportArguments) -> Result<Box<dyn Write>> {
    match output::file(arguments.output.as_deref()) {
        Some(path) => Ok(Box::new(OutputFile::create(path)?)),
        None if arguments.format == ExportFormat::Perfetto && io::stdout().is_terminal() => {
            bail!("a Perfetto trace is binary: name a file with -o, or redirect standard output")
        }
        None => Ok(Box::new(io::stdout().lock())),
    }
}
