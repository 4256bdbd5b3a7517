//! The command line: one file a verb.

use std::process::ExitCode;

/// Runs the command line.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::from(125)
}
