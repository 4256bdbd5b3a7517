//! The exit statuses, in one place.
//!
//! | status | meaning |
//! |---|---|
//! | 0 to 255 | `record -- CMD`, `hold -- CMD`: CMD's own |
//! | 128 + n | CMD was killed by signal n |
//! | 0 | `record -p`, `record -a`: ended by Ctrl-C, `--duration`, or the process's end |
//! | 1 | `doctor`: there is a problem; `bench --exit-code`: a case stands apart |
//! | 130 | three Ctrl-C within a second left CMD running |
//! | 129, 130, 143 | `bench`: ended by SIGHUP, Ctrl-C or SIGTERM, with what there is |
//! | 125 | spawnscope itself failed: bad usage, no permission, an unreadable recording |
//! | 126 | CMD was found but could not be executed |
//! | 127 | CMD was not found |

use std::process::ExitCode;

use crate::analyze::launch::Outcome;
use crate::collect::held::StartError;
use crate::present::signal_name;

/// Spawnscope itself failed.
pub const FAILED: u8 = 125;

/// `doctor` has found a problem.
pub const PROBLEMS: u8 = 1;

/// `bench --exit-code` has found a case that stands apart.
pub const DIFFERS: u8 = 1;

/// Three Ctrl-C within a second ended the recording, as SIGINT would have.
pub const INTERRUPTED: u8 = 130;

/// The status with which a failure ends the program.
#[must_use]
pub fn of_failure(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(match error.downcast_ref::<StartError>() {
        Some(StartError::NotFound(_)) => 127,
        Some(StartError::NotExecutable(..) | StartError::NoInterpreter(_)) => 126,
        _ => FAILED,
    })
}

/// The status of a command that ended as `wait(2)` says.
#[must_use]
pub fn of_command(wait_status: i32) -> ExitCode {
    let status = if libc::WIFSIGNALED(wait_status) {
        128 + libc::WTERMSIG(wait_status)
    } else {
        libc::WEXITSTATUS(wait_status)
    };
    ExitCode::from(u8::try_from(status).unwrap_or(FAILED))
}

/// How the command ended, to follow on another clause.
#[must_use]
pub fn sentence(wait_status: i32) -> String {
    match Outcome::of_wait_status(wait_status) {
        Outcome::Code(code) => format!("; the command exited with status {code}"),
        Outcome::Signal { number, .. } => format!("; the command was killed by {}", signal_name(number)),
        Outcome::Running | Outcome::Unknown => String::new(),
    }
}
