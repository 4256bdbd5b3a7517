//! Errors of imports. Each message says what failed, on which file, and what to do.

use std::io;
use std::path::PathBuf;

use spawnscope_recording::RecordError;

/// Why a log could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The log cannot be opened or read.
    #[error("failed to read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file is something else.
    #[error("{} looks like {what}", path.display())]
    Other {
        path: PathBuf,
        /// What it is, and what to do with it.
        what: &'static str,
    },
    /// The file contains no line of a known format.
    #[error(
        "{} has no line that {tool} wrote; {}. docs/guide/import.md shows how to make a log",
        path.display(),
        beginning(first)
    )]
    NoLines {
        path: PathBuf,
        /// The tool whose log it was taken for.
        tool: &'static str,
        /// The beginning of its first line.
        first: Vec<u8>,
    },
    /// The files cannot be put in order.
    #[error(
        "{} has no times that can be compared with those of the other files: record with `strace -ff -ttt`",
        path.display()
    )]
    NoCommonTimes { path: PathBuf },
    /// A log of scans is beside another log.
    #[error("{} is not a log of eslogger, and only such a log can have a log of scans", path.display())]
    ScansOfOther { path: PathBuf },
    /// The recording cannot be written.
    #[error(transparent)]
    Record(#[from] RecordError),
}

fn beginning(first: &[u8]) -> String {
    match first {
        [] => "it has no text".to_owned(),
        first => format!("its first line is: {}", first.escape_ascii()),
    }
}
