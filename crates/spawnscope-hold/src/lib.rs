//! `hold`: stops a new process right after its exec, before its first instruction, so that a
//! debugger or profiler can attach. Nothing is recorded, so this crate is separate from collect,
//! record, analyze and present. `session` follows the command until the wanted launch
//! (`launch_selector`) executes a program. From then on, `held_process` represents that process.
//! `prompt` waits for the user to continue it, and `attach` for the command of `--run` to attach.
//! This file contains the request, the notices, and the entry point.

mod attach;
mod held_process;
mod launch_selector;
mod prompt;
mod session;

use std::ffi::{OsStr, OsString};
use std::io;
use std::time::Duration;

use nix::sys::signal::Signal;

pub use self::attach::ATTACH_TIMEOUT;
pub use self::launch_selector::LaunchSelector;
use self::session::Session;
use spawnscope_data::event::Pid;
use spawnscope_system::held::{Identity, StartError};
use spawnscope_system::signals::Signals;

/// The interval between checks of the state of a held process. Polling is necessary, because
/// nothing reports that the process was stopped or continued.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between these checks while the command of `--run` is expected to attach. A
/// debugger's first request may follow soon after it attaches.
const SHORT_CHECK_INTERVAL: Duration = Duration::from_millis(2);
/// How long a state must last before it counts, because a process that attaches may let the held
/// process run for a moment.
const SETTLE_TIME: Duration = Duration::from_millis(150);

#[derive(Debug)]
pub struct Request<'a> {
    pub command: &'a [OsString],
    /// The user to run the command as, if not the current one.
    pub identity: Option<Identity>,
    /// Which launch by the command or its descendants to hold; `None`: the command itself.
    pub selector: Option<LaunchSelector>,
    /// The command that attaches; `None`: the user is asked to attach.
    pub run: Option<Run<'a>>,
}

#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The command line for `sh -c`, with `{pid}` in place of the held process's pid.
    pub text: &'a OsStr,
    /// The time between two steps to end this command: from the end of the held process to SIGINT,
    /// from SIGINT to SIGTERM, and from SIGTERM to giving up, which leaves the command running.
    pub grace: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Stopped {
        pid: Pid,
        arguments: Vec<Vec<u8>>,
        continued_by: ContinuedBy,
        /// Whether Yama allows only root to attach to a process that is not a descendant.
        needs_root: bool,
    },
    /// The command of `--run` has attached, and the process continues.
    Attached(Pid),
    /// The command of `--run` was not seen to attach within `ATTACH_TIMEOUT`, and the process
    /// continues nevertheless.
    AttachTimedOut(Pid),
    /// The command of `--run` ended with this wait status before it attached, and the process
    /// continues.
    EndedBeforeAttach(Pid, i32),
    /// The command of `--run` could not be started, for this reason, and the process continues.
    ToolNotStarted(Pid, String),
    /// The command of `--run` failed with this wait status.
    ToolFailed(i32),
    /// The command of `--run` did not end by itself, so this signal was sent to it.
    Sending(Signal),
    /// The command of `--run`, with this pid, did not end even after the signals, and is left
    /// running.
    ToolLeftRunning(Pid),
    Continued(Pid),
    /// The process apparently ended while it was held. The wait status is known if the process is
    /// our child.
    Ended(Pid, Option<i32>),
    /// The command ended before enough launches matched.
    NoMatch {
        count: u32,
    },
    /// A program that traces processes is no longer followed, nor is what it launches.
    Tracer {
        arguments: Vec<Vec<u8>>,
    },
    /// A set-user-ID or set-group-ID program did not get its privilege, because it is traced.
    LostPrivilege {
        arguments: Vec<Vec<u8>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContinuedBy {
    Enter,
    /// Another process sends SIGCONT, because there is no terminal for a prompt.
    Signal,
    RunCommand,
}

#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error("failed to trace the command: {error}; {why}")]
    Refused { error: io::Error, why: String },
    /// A system call failed; the command continues.
    #[error("failed to {action}: {error}")]
    System {
        /// The action that failed, as text that fits after "failed to".
        action: &'static str,
        error: io::Error,
    },
}

/// Runs the command, holds the wanted process, and waits until the command, the held process and
/// the command of `--run` are over. Returns the command's wait status. Fails if the command cannot
/// be started or traced; later failures do not affect it.
pub fn run(request: Request<'_>, signals: &Signals, notify: &mut dyn FnMut(Notice)) -> Result<i32, HoldError> {
    Session::start(request, signals, notify)?.run()
}
