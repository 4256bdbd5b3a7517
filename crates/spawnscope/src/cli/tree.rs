//! `spawnscope tree`: prints the process tree.

use std::io::{self, BufWriter, Write};

use anyhow::{Context, Result};

use super::args::TreeArguments;
use super::output;
use crate::analyze::Forest;
use crate::present::tree;
use crate::record::reader::RecordingFile;

/// Runs the verb.
///
/// # Errors
/// When the recording cannot be read or the tree cannot be written.
pub fn run(arguments: &TreeArguments) -> Result<()> {
    let file = &arguments.recording.file;
    let recording = RecordingFile::open(file)?.read()?;
    output::print_contradictions(file, &recording.info.contradictions);
    let mut out = BufWriter::new(anstream::stdout().lock());
    tree::write(
        &mut out,
        &Forest::grow(&recording),
        output::terminal_width(&io::stdout()),
    )
    .and_then(|()| out.flush())
    .context("failed to write the tree")
}
