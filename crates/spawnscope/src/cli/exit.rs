//! All exit statuses.
//!
//! | status | meaning |
//! |---|---|
//! | 0 to 255 | `record -- CMD`, `hold -- CMD`, `accel -- CMD`: the status of CMD |
//! | killed by signal n | CMD was killed by signal n (a shell shows 128 + n): spawnscope ends by the same signal, so that Ctrl-C ends a shell's loop |
//! | 0 | `record -p`, `record -a`: ended by Ctrl-C, `--duration`, or the end of the process |
//! | 1 | `check`: a budget is exceeded; `doctor`: found a problem |
//! | 130 | three Ctrl-C within a second left CMD running |
//! | 129, 130, 143 | `bench`: ended by SIGHUP, Ctrl-C or SIGTERM, with the results so far |
//! | 125 | spawnscope itself failed: bad usage, no permission, an unreadable recording |
//! | 126 | CMD was found but could not be executed |
//! | 127 | CMD, its `#!` interpreter or its dynamic loader was not found |

use std::io::Write;
use std::process::ExitCode;

use crate::analyze::model::launch::Outcome;
use crate::held::StartError;
use crate::job_control;
use crate::present::signal_name;

pub const FAILED: u8 = 125;

pub const EXCEEDED: u8 = 1;

pub const PROBLEMS: u8 = 1;

/// Three Ctrl-C within a second ended the recording. The status is that of a program killed by
/// SIGINT.
pub const INTERRUPTED: u8 = 130;

/// How spawnscope ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Code(u8),
    /// It ends by the signal that killed the command.
    Killed(i32),
}

impl Status {
    pub const SUCCESS: Status = Status::Code(0);

    pub fn of_command(wait_status: i32) -> Status {
        match libc::WIFSIGNALED(wait_status) {
            true => Status::Killed(libc::WTERMSIG(wait_status)),
            false => Status::Code(u8::try_from(libc::WEXITSTATUS(wait_status)).unwrap_or(FAILED)),
        }
    }

    /// Ends this process if the status is a signal. Otherwise returns the exit status.
    pub fn end(self) -> ExitCode {
        match self {
            Status::Code(code) => ExitCode::from(code),
            Status::Killed(signal) => {
                let _ = std::io::stdout().flush();
                job_control::die_of(signal);
                // The kernel ignores the signal for the init process of a container.
                ExitCode::from(u8::try_from(128 + signal).unwrap_or(FAILED))
            }
        }
    }
}

pub fn status_of_failure(error: &anyhow::Error) -> Status {
    Status::Code(match error.downcast_ref::<StartError>() {
        Some(StartError::NotFound(_) | StartError::NoInterpreter(_)) => 127,
        Some(StartError::NotExecutable(..)) => 126,
        _ => FAILED,
    })
}

/// Describes how the command ended, as a clause to append to a sentence. Empty if that is unknown.
pub fn outcome_clause(wait_status: i32) -> String {
    match Outcome::of_wait_status(wait_status) {
        Outcome::Code(code) => format!("; the command exited with status {code}"),
        Outcome::Signal { number, .. } => format!("; the command was killed by {}", signal_name(number)),
        Outcome::Running | Outcome::Unknown => String::new(),
    }
}
