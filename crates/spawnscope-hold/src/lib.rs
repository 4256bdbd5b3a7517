//! `hold`: stops a new process right after its exec, before its first instruction, so that a debugger or profiler can attach. It is
//! separate from collect, record, analyze and present: nothing is recorded. `tracer` follows the command until the wanted launch (`wanted`)
//! executes. `stopped` is that process from then on. `prompt` and `attach` are the two ways to decide when it continues, and `process`
//! reads /proc. This file has the request, the notices, and the entry point.

mod attach;
mod process;
mod prompt;
mod session;
mod stopped;
mod tracer;
mod wanted;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::sys::signal::Signal;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::attach::PATIENCE;
use self::session::Session;
pub use self::wanted::Wanted;
use spawnscope_collect::held::{Identity, StartError};
use spawnscope_data::event::Pid;
use spawnscope_system::signals::Signals;

/// How often the state of a held process is checked, since nothing reports that it is stopped or continued.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is checked while a command is to attach: a debugger's first request may follow soon after.
const QUICK_LOOK: Duration = Duration::from_millis(2);
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
        goes_on: GoesOn,
        /// Whether Yama allows only root to attach to a process that is not a descendant.
        is_for_root: bool,
    },
    /// The command of `--run` has attached, and the process continues.
    Attached(Pid),
    /// The command was not seen to attach, and the process continues nevertheless.
    Unseen(Pid),
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
pub enum GoesOn {
    /// The user presses Enter.
    ByEnter,
    /// Another process sends SIGCONT: there is no terminal for a prompt.
    BySignal,
    /// The command of `--run` has attached.
    ByRun,
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
    let tracer = process::Status::of(command).and_then(|status| status.tracer);
    let why = why_refused(tracer, process::yama_scope());
    HoldError::Refused { error, why }
}

fn why_refused(tracer: Option<Pid>, yama_scope: Option<u8>) -> String {
    match (tracer, yama_scope) {
        (Some(Pid(tracer)), _) => {
            format!("process {tracer} already traces it, as a debugger or strace does with everything it starts")
        }
        (None, Some(3..)) => "kernel.yama.ptrace_scope is 3: tracing is disabled until the next boot".to_owned(),
        (None, Some(2)) => "kernel.yama.ptrace_scope is 2: only root may trace; run this with sudo".to_owned(),
        (None, _) => {
            "a sandbox forbids it; in a container, allow the ptrace system call (docker run --cap-add SYS_PTRACE)"
                .to_owned()
        }
    }
}

/// Whether the process of a pidfd has ended.
fn has_ended(process: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_explained_by_what_is_known_of_the_machine() {
        assert!(why_refused(Some(Pid(7)), Some(2)).contains("process 7 already traces it"));
        assert!(why_refused(None, Some(3)).contains("ptrace_scope is 3"));
        assert!(why_refused(None, Some(2)).contains("sudo"));
        for scope in [None, Some(0), Some(1)] {
            assert!(why_refused(None, scope).contains("container"), "{scope:?}");
        }
    }
}
