//! All exit statuses.
//!
//! | status | meaning |
//! |---|---|
//! | 0 to 255 | `record -- CMD`, `hold -- CMD`, `accel -- CMD`: the status of CMD |
//! | 128 + n | CMD was killed by signal n |
//! | 0 | `record -p`, `record -a`: ended by Ctrl-C, `--duration`, or the end of the process |
//! | 1 | `check`: a budget is exceeded; `doctor`: found a problem; `bench --exit-code`: a case changed by more than the common shift |
//! | 130 | three Ctrl-C within a second left CMD running |
//! | 129, 130, 143 | `bench`: ended by SIGHUP, Ctrl-C or SIGTERM, with the results so far |
//! | 125 | spawnscope itself failed: bad usage, no permission, an unreadable recording |
//! | 126 | CMD was found but could not be executed |
//! | 127 | CMD, its `#!` interpreter or its dynamic loader was not found |

use std::process::ExitCode;

use crate::analyze::launch::Outcome;
use crate::held::StartError;
use crate::present::signal_name;

/// Spawnscope itself failed.
pub const FAILED: u8 = 125;

/// `check` found that a budget is exceeded.
pub const EXCEEDED: u8 = 1;

/// `doctor` found a problem.
pub const PROBLEMS: u8 = 1;

/// `bench --exit-code` found a case that changed by more than the common shift.
pub const DIFFERS: u8 = 1;

/// Three Ctrl-C within a second ended the recording. The status is that of a program killed by SIGINT.
pub const INTERRUPTED: u8 = 130;

/// Returns the exit status for a failure of spawnscope.
#[must_use]
pub fn status_of_failure(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<StartError>() {
        Some(StartError::NotFound(_) | StartError::NoInterpreter(_)) => 127,
        Some(StartError::NotExecutable(..)) => 126,
        _ => FAILED,
    })
}

/// Returns the exit status for a command that ended with this status of wait(2).
#[must_use]
pub fn status_of_command(wait_status: i32) -> ExitCode {
    let status =
        if libc::WIFSIGNALED(wait_status) { 128 + libc::WTERMSIG(wait_status) } else { libc::WEXITSTATUS(wait_status) };
    ExitCode::from(u8::try_from(status).unwrap_or(FAILED))
}

/// Describes how the command ended, as a clause to append to a sentence. Empty if that is unknown.
#[must_use]
pub fn outcome_clause(wait_status: i32) -> String {
    match Outcome::of_wait_status(wait_status) {
        Outcome::Code(code) => format!("; the command exited with status {code}"),
        Outcome::Signal { number, .. } => format!("; the command was killed by {}", signal_name(number)),
        Outcome::Running | Outcome::Unknown => String::new(),
    }
}
