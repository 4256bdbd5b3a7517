//! `hold`: a new process is stopped right after its exec, before its first instruction, so that a debugger or profiler can attach.
//! It stands apart from collect, record, analyze and present: nothing is recorded. `tracer` follows the command until the
//! wanted launch (`wanted`) executes; `stopped` is that process from then on, `prompt` and `attach` are the two ways in which it is
//! decided when it goes on, `process` is what /proc says of processes. Here: what is asked for, what is told, and the loop.

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
use crate::collect::held::{Identity, StartError};
use crate::event::Pid;
use crate::signals::Signals;

/// How often it is looked what became of a held process, whose stopping and continuing nobody reports to us.
const LOOK: Duration = Duration::from_millis(50);
/// How often while something is to attach: a debugger's first command may come soon after.
const QUICK_LOOK: Duration = Duration::from_millis(2);
/// What is to be believed must be so for this long: who attaches to a process moves it for moments.
const SETTLED: Duration = Duration::from_millis(150);

/// What is to be held.
#[derive(Debug)]
pub struct Request<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// Whom it runs as, when not as ourselves.
    pub identity: Option<Identity>,
    /// Which launch of its tree; `None`: the command itself.
    pub wanted: Option<Wanted>,
    /// What attaches; `None`: the user is asked.
    pub run: Option<Run<'a>>,
}

/// A command that attaches to the held process.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// For `sh -c`, with `{pid}` for the process.
    pub text: &'a OsStr,
    /// How long it may run on after the process's end, before SIGINT, and again before SIGTERM, and before it is left.
    pub grace: Duration,
}

/// What the user is told while it goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The process stands before its first instruction.
    Stopped {
        /// Which.
        pid: Pid,
        /// The arguments of its program.
        arguments: Vec<Vec<u8>>,
        /// How it goes on.
        goes_on: GoesOn,
        /// Whether Yama lets only root attach to a process that is no descendant.
        is_for_root: bool,
    },
    /// The command of `--run` has attached, and the process goes on.
    Attached(Pid),
    /// It was not seen to attach, and the process goes on nevertheless.
    Unseen(Pid),
    /// It ended before it had attached, as `wait(2)` says, and the process goes on.
    EndedBefore(Pid, i32),
    /// It could not be started, and the process goes on.
    NotStarted(Pid, String),
    /// It ended with this status.
    Failed(i32),
    /// It was sent this signal, since it did not end by itself.
    Sending(Signal),
    /// It did not end even so, and runs on.
    Left(Pid),
    /// Somebody else continued the process.
    Continued(Pid),
    /// The process ended while it was held, for all we know; as `wait(2)` says, if it is our child.
    Ended(Pid, Option<i32>),
    /// The command ended and no launch, or fewer than asked for, had matched.
    NoMatch {
        /// How many had.
        count: u32,
    },
    /// A program did not get the privilege that its file gives, since it is traced.
    LostPrivilege {
        /// Its arguments.
        arguments: Vec<Vec<u8>>,
    },
}

/// How a held process goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoesOn {
    /// When the user presses Enter.
    ByEnter,
    /// When somebody sends it SIGCONT: there is no terminal to ask on.
    BySignal,
    /// When the command of `--run` has attached.
    ByRun,
}

/// Why nothing can be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The command cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The kernel does not let us trace it.
    #[error("failed to trace the command: {error}; {why}")]
    Refused {
        /// What the kernel said.
        error: io::Error,
        /// What may be behind it.
        why: String,
    },
    /// The machinery failed; the command runs on.
    #[error("failed to {action}: {error}")]
    System {
        /// What was being done.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
}

/// Runs the command, holds what is wanted of it, and waits for all that was started. Gives the command's status, as `wait(2)` does.
///
/// # Errors
/// When the command cannot be started or traced. It is not harmed by what fails later.
pub fn run(request: Request<'_>, signals: &Signals, tell: &mut dyn FnMut(Notice)) -> Result<i32, HoldError> {
    Session::start(request, signals, tell)?.run()
}

fn refused(error: io::Error, command: Pid) -> HoldError {
    let tracer = process::Status::of(command).and_then(|status| status.tracer);
    let why = why_refused(tracer, process::yama_scope());
    HoldError::Refused { error, why }
}

fn why_refused(tracer: Option<Pid>, yama_scope: Option<u8>) -> String {
    match (tracer, yama_scope) {
        (Some(Pid(tracer)), _) => {
            format!("process {tracer} traces it already, as a debugger or strace does with all that it starts")
        }
        (None, Some(3..)) => "kernel.yama.ptrace_scope is 3: tracing is off until the next boot".to_owned(),
        (None, Some(2)) => "kernel.yama.ptrace_scope is 2: only root may trace; run this with sudo".to_owned(),
        (None, _) => {
            "a sandbox forbids it; in a container, allow the system call ptrace (docker run --cap-add SYS_PTRACE)"
                .to_owned()
        }
    }
}

/// Whether a handle's process has ended.
fn has_ended(process: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_explained_by_what_is_known_of_the_machine() {
        assert!(why_refused(Some(Pid(7)), Some(2)).contains("process 7 traces it already"));
        assert!(why_refused(None, Some(3)).contains("ptrace_scope is 3"));
        assert!(why_refused(None, Some(2)).contains("sudo"));
        for scope in [None, Some(0), Some(1)] {
            assert!(why_refused(None, scope).contains("container"), "{scope:?}");
        }
    }
}
