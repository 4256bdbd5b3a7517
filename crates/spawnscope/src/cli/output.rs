//! Where output goes: how wide a terminal is, which files are not written over, and a reader that has seen enough.

use std::env;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::record::reader::RecordingFile;

/// Columns where there is no terminal to ask, and nobody says.
const DEFAULT_WIDTH: usize = 80;
/// What `COLUMNS` may say.
const WIDTHS: RangeInclusive<usize> = 20..=1000;
/// Names standard output where a file could be named.
const STANDARD_OUTPUT: &str = "-";
/// What every output can be laid out in; a narrower terminal wraps lines.
const LEAST_WIDTH: usize = 40;

/// Columns of the stream's terminal; when it is none, those that `COLUMNS` says, or 80.
#[must_use]
pub fn width(stream: &impl AsFd) -> usize {
    let said = || {
        env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|said| WIDTHS.contains(said))
    };
    let width = terminal_width(stream).or_else(said);
    width.unwrap_or(DEFAULT_WIDTH).max(LEAST_WIDTH)
}

/// Columns of the stream's terminal, if it knows them.
#[must_use]
pub fn terminal_width(stream: &impl AsFd) -> Option<usize> {
    let fd = stream.as_fd();
    let size = rustix::termios::tcgetwinsize(fd.is_terminal().then_some(fd)?).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col).max(LEAST_WIDTH))
}

/// The file that was named with -o; `None` for standard output, which `-` names too.
#[must_use]
pub fn file(named: Option<&Path>) -> Option<&Path> {
    named.filter(|path| *path != Path::new(STANDARD_OUTPUT))
}

/// A file to write to, unless it is a recording: read while it is written, nothing would be left of it.
///
/// # Errors
/// When it is a recording, or cannot be created.
pub fn create(path: &Path) -> Result<File> {
    if RecordingFile::open(path).is_ok() {
        bail!(
            "{} is a recording, and writing to it would destroy it: name another file with -o",
            path.display()
        );
    }
    File::create(path).with_context(|| format!("failed to create {}", path.display()))
}

/// Tells the user something of our own. A standard error that cannot be written to is no reason to fail.
pub fn tell(message: &str) {
    let _ = writeln!(io::stderr(), "spawnscope: {message}");
}

/// Whether a failure is only that the reader of our output went away, as `head` does.
#[must_use]
pub fn reader_went_away(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
