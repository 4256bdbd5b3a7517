//! The command of `--run`: starts it, tells when it has attached to the held process, and brings it to its end afterwards. It is
//! a child of ours and runs as the held command does; signals go to it and to what it launched, to nobody else.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};

use super::process::{self, Status};
use super::{LOOK, SETTLED};
use crate::collect::held::Identity;
use crate::collect::pidfd;
use crate::event::Pid;

/// What stands for the held process in the command.
const PLACEHOLDER: &[u8] = b"{pid}";
/// How long a command that is not seen to attach holds up the process.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The command, running or ended.
#[derive(Debug)]
pub struct Tool {
    pid: Pid,
    handle: OwnedFd,
    started: Instant,
    /// When its processes were last looked through for events.
    searched: Instant,
    /// Since when it was found with events open, and asleep.
    watching_since: Option<Instant>,
    ending: Ending,
    status: Option<i32>,
    /// Its end was seen before it had attached.
    has_ended_early: bool,
}

/// How far the command is with the held process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not attached yet.
    Starting,
    /// It has attached, and waits for what happens.
    Attached,
    /// Nothing of the kind was seen for long enough.
    Unseen,
    /// It has ended with this status.
    Ended(i32),
}

/// What was done to make it end.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// There is something to run for.
    NotDue,
    /// The moment when the next signal is due, and what that is; none: it is left alone then.
    Due(Instant, Option<Signal>),
    /// It did not end, and nobody waits for it any more.
    Left,
}

impl Tool {
    /// Starts it by a shell. Its standard input is the terminal, or nothing: what comes through a pipe is the held command's.
    ///
    /// # Errors
    /// When no process can be created.
    pub fn start(text: &OsStr, target: Pid, mask: SigSet, identity: Option<&Identity>) -> io::Result<Tool> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(with_pid(text, target));
        if !io::stdin().is_terminal() {
            shell.stdin(Stdio::null());
        }
        let identity = identity.cloned();
        shell.envs(identity.iter().flat_map(|identity| identity.environment.clone()));
        let prepare = move || {
            if let Some(identity) = &identity {
                identity.assume()?;
            }
            Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?)
        };
        // SAFETY: it makes only system calls, on memory of its own.
        let child = unsafe { shell.pre_exec(prepare) }.spawn()?;
        let pid = Pid(i32::try_from(child.id()).map_err(io::Error::other)?);
        Ok(Tool {
            pid,
            handle: pidfd(pid)?,
            started: Instant::now(),
            searched: Instant::now(),
            watching_since: None,
            ending: Ending::NotDue,
            status: None,
            has_ended_early: false,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable when it has ended; `None`: it is known to have.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.status.is_none().then(|| self.handle.as_fd())
    }

    /// It has ended with this status.
    pub fn note_end(&mut self, status: i32) {
        self.status = Some(status);
    }

    /// Whether nobody waits for it.
    pub fn is_over(&self) -> bool {
        self.status.is_some() || matches!(self.ending, Ending::Left)
    }

    /// How it ended, when that was its own doing, no success, and not seen by `look`.
    pub fn failure(&self) -> Option<i32> {
        let by_itself = matches!(self.ending, Ending::NotDue | Ending::Due(_, Some(Signal::SIGINT)));
        self.status
            .filter(|status| *status != 0 && by_itself && !self.has_ended_early)
    }

    /// Looks whether it has attached.
    pub fn look(&mut self, target: Pid) -> Progress {
        if let Some(status) = self.status {
            self.has_ended_early = true;
            return Progress::Ended(status);
        }
        let is_traced = Status::of(target).is_some_and(|status| status.is_stopped_by_tracer());
        if is_traced || self.watches() {
            Progress::Attached
        } else if self.started.elapsed() > PATIENCE {
            Progress::Unseen
        } else {
            Progress::Starting
        }
    }

    /// Whether it has events open and sleeps, for long enough that it has done what it has to before. To look through processes
    /// takes its time, so that it is not done at each look.
    fn watches(&mut self) -> bool {
        if self.searched.elapsed() > LOOK {
            self.searched = Instant::now();
            let is_asleep = |pid: Pid| Status::of(pid).is_some_and(|status| status.is_asleep());
            let mut tree = process::tree(self.pid).into_iter();
            let does = tree.any(|pid| process::has_perf_events(pid) && is_asleep(pid));
            self.watching_since = self.watching_since.or(Some(self.searched)).filter(|_| does);
        }
        self.watching_since.is_some_and(|since| since.elapsed() > SETTLED)
    }

    /// The held process is gone. Gives the signal by which the command was asked to end just now, if it was.
    pub fn finish(&mut self, grace: Duration) -> Option<Signal> {
        if self.is_over() {
            return None;
        }
        let now = Instant::now();
        match self.ending {
            Ending::NotDue => self.ending = Ending::Due(now + grace, Some(Signal::SIGINT)),
            Ending::Due(moment, Some(signal)) if now >= moment => {
                let next = (signal == Signal::SIGINT).then_some(Signal::SIGTERM);
                self.ending = Ending::Due(now + grace, next);
                self.send(signal);
                return Some(signal);
            }
            Ending::Due(moment, None) if now >= moment => self.ending = Ending::Left,
            Ending::Due(..) | Ending::Left => {}
        }
        None
    }

    /// Whether it was left running.
    pub fn is_left(&self) -> bool {
        matches!(self.ending, Ending::Left)
    }

    /// To the shell and what runs below it, as a key at the terminal would.
    fn send(&self, signal: Signal) {
        for pid in process::tree(self.pid) {
            let _ = kill(nix::unistd::Pid::from_raw(pid.0), signal);
        }
    }
}

fn with_pid(text: &OsStr, target: Pid) -> OsString {
    let number = target.0.to_string();
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some(at) = rest.windows(PLACEHOLDER.len()).position(|window| window == PLACEHOLDER) {
        filled.extend_from_slice(&rest[..at]);
        filled.extend_from_slice(number.as_bytes());
        rest = &rest[at + PLACEHOLDER.len()..];
    }
    filled.extend_from_slice(rest);
    OsString::from_vec(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_placeholder_is_replaced_wherever_it_stands() {
        let filled = |text: &str| with_pid(OsStr::new(text), Pid(42)).into_string().unwrap();
        assert_eq!(filled("perf record -o p.{pid} -p {pid}"), "perf record -o p.42 -p 42");
        assert_eq!(filled("{pid}{{pid}}{pid"), "42{42}{pid");
        assert_eq!(filled("echo"), "echo");
        let bytes = OsStr::from_bytes(b"\xff{pid}");
        assert_eq!(with_pid(bytes, Pid(7)).as_bytes(), b"\xff7");
    }
}
