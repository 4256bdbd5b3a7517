//! `hold`: stops a new process right after its exec, before its first instruction, so that a debugger or profiler can attach. It is
//! separate from collect, record, analyze and present: nothing is recorded. `tracer` follows the command until the wanted launch (`wanted`)
//! executes. `stopped` is that process from then on. `prompt` and `attach` are the two ways to decide when it continues. This file has the
//! request, the notices, and the entry point.

mod attach;
mod prompt;
mod session;
mod stopped;
mod tracer;
mod wanted;

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

pub use self::attach::ATTACH_TIMEOUT;
use self::session::Session;
pub use self::wanted::Wanted;
use spawnscope_data::event::Pid;
use spawnscope_system::held::{Identity, StartError};
use spawnscope_system::ptrace::refusal;
use spawnscope_system::signals::Signals;

/// How often the state of a held process is checked, since nothing reports that it is stopped or continued.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often it is checked while a command is to attach: a debugger's first request may follow soon after.
const SHORT_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// A state must last this long to count: a process that attaches may move the held process for a moment.
const SETTLED: Duration = Duration::from_millis(150);

/// What to hold.
#[derive(Debug)]
pub struct Request<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// The user it runs as, if not the current one.
    pub identity: Option<Identity>,
    /// Which launch of its tree to hold; `None`: the command itself.
    pub wanted: Option<Wanted>,
    /// The command that attaches; `None`: ask the user.
    pub run: Option<Run<'a>>,
}

/// A command that attaches to the held process.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The text for `sh -c`, with `{pid}` for the held process.
    pub text: &'a OsStr,
    /// How long it may run after the held process has ended: before SIGINT, again before SIGTERM, and again before it is left running.
    pub grace: Duration,
}

/// An event to report to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The process is stopped before its first instruction.
    Stopped {
        /// Its pid.
        pid: Pid,
        /// Its arguments.
        arguments: Vec<Vec<u8>>,
        /// What makes it continue.
        continued_by: ContinuedBy,
        /// Whether Yama allows only root to attach to a process that is not a descendant.
        is_for_root: bool,
    },
    /// The command of `--run` has attached, and the process continues.
    Attached(Pid),
    /// The command was not seen to attach within `ATTACH_TIMEOUT`, and the process continues nevertheless.
    AttachTimedOut(Pid),
    /// The command ended with this wait status before it attached, and the process continues.
    EndedBefore(Pid, i32),
    /// The command could not be started, and the process continues.
    NotStarted(Pid, String),
    /// The command failed with this wait status.
    Failed(i32),
    /// The command did not end by itself, and was sent this signal.
    Sending(Signal),
    /// The command did not end even after the signals, and is left running.
    Left(Pid),
    /// Another process continued the held process.
    Continued(Pid),
    /// The process apparently ended while it was held; with its wait status, if it is our child.
    Ended(Pid, Option<i32>),
    /// The command ended before enough launches matched.
    NoMatch {
        /// How many matched.
        count: u32,
    },
    /// A set-user-ID or set-group-ID program did not get its privilege, because it is traced.
    LostPrivilege {
        /// Its arguments.
        arguments: Vec<Vec<u8>>,
    },
}

/// What makes a held process continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinuedBy {
    /// The user presses Enter.
    Enter,
    /// Another process sends SIGCONT: there is no terminal for a prompt.
    Signal,
    /// The command of `--run` has attached.
    RunCommand,
}

/// Why holding failed.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The kernel refuses to trace it.
    #[error("failed to trace the command: {error}; {why}")]
    Refused {
        /// The kernel's error.
        error: io::Error,
        /// The likely reason.
        why: String,
    },
    /// A system call failed; the command continues.
    #[error("failed to {action}: {error}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

/// Runs the command, holds the wanted process, and waits until everything it started has ended. Returns the command's wait status.
///
/// # Errors
/// If the command cannot be started or traced. Later failures do not affect the command.
pub fn run(request: Request<'_>, signals: &Signals, notify: &mut dyn FnMut(Notice)) -> Result<i32, HoldError> {
    Session::start(request, signals, notify)?.run()
}

fn refused(error: io::Error, command: Pid) -> HoldError {
    let why = refusal::reason(command);
    HoldError::Refused { error, why }
}
