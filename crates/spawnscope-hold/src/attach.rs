//! The command of `--run`: starts it, detects when it has attached to the held process, and ends it afterwards. It is our child and runs as
//! the same user as the held command. Signals are sent only to it and its descendants.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};

use super::{CHECK_INTERVAL, SETTLED};
use spawnscope_data::event::Pid;
use spawnscope_system::held::Identity;
use spawnscope_system::process::pidfd;
use spawnscope_system::procfs::{self, Status};

/// The placeholder for the held process's pid in the command.
const PLACEHOLDER: &[u8] = b"{pid}";
/// How long the process is held if the command is not seen to attach.
pub const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);

/// The command of `--run`, running or ended.
#[derive(Debug)]
pub struct Tool {
    pid: Pid,
    handle: OwnedFd,
    started: Instant,
    /// When its processes were last checked for perf events.
    searched: Instant,
    /// Since when it has had perf events open while asleep.
    watching_since: Option<Instant>,
    ending: Ending,
    status: Option<i32>,
    /// Whether its end was seen before it attached.
    has_ended_early: bool,
}

/// The state of the command with respect to the held process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It has not attached yet.
    Starting,
    /// It has attached, and waits for events.
    Attached,
    /// It did not attach within the time limit, as far as can be seen.
    TimedOut,
    /// It has ended with this wait status.
    Ended(i32),
}

/// What was done to end the command.
#[derive(Clone, Copy, Debug)]
enum Ending {
    /// The held process still exists.
    NotDue,
    /// When the next signal is due, and which one; `None`: the command is left alone then.
    Due(Instant, Option<Signal>),
    /// It did not end, and is no longer waited for.
    Left,
}

impl Tool {
    /// Starts the command with a shell. Its standard input is the terminal or /dev/null: piped input belongs to the held command.
    ///
    /// # Errors
    /// If no process can be created.
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
        // SAFETY: `prepare` only makes system calls, on memory that it owns.
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

    /// A descriptor that becomes readable when it ends; `None` once it is known to have ended.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        self.status.is_none().then(|| self.handle.as_fd())
    }

    /// Records that it has ended with this wait status.
    pub fn note_end(&mut self, status: i32) {
        self.status = Some(status);
    }

    /// Whether it does not have to be waited for any more.
    pub fn is_over(&self) -> bool {
        self.status.is_some() || matches!(self.ending, Ending::Left)
    }

    /// Its wait status, if it failed on its own and `progress` has not reported it.
    pub fn failure(&self) -> Option<i32> {
        let by_itself = matches!(self.ending, Ending::NotDue | Ending::Due(_, Some(Signal::SIGINT)));
        self.status
            .filter(|status| *status != 0 && by_itself && !self.has_ended_early)
    }

    /// Checks whether it has attached.
    pub fn progress(&mut self, target: Pid) -> Progress {
        if let Some(status) = self.status {
            self.has_ended_early = true;
            return Progress::Ended(status);
        }
        let is_traced = Status::of(target).is_some_and(|status| status.is_stopped_by_tracer());
        if is_traced || self.watches() {
            Progress::Attached
        } else if self.started.elapsed() > ATTACH_TIMEOUT {
            Progress::TimedOut
        } else {
            Progress::Starting
        }
    }

    /// Whether one of its processes has had perf events open for long enough to have finished its setup, while it waited for files as perf
    /// does when the events are enabled. Searching the processes is slow, so it is not done on every call.
    fn watches(&mut self) -> bool {
        if self.searched.elapsed() > CHECK_INTERVAL {
            self.searched = Instant::now();
            let is_asleep = |pid: Pid| Status::of(pid).is_some_and(|status| status.is_asleep());
            let waits = |pid: Pid| is_asleep(pid) && procfs::waits_for_files(pid).unwrap_or(true);
            let mut tree = procfs::tree(self.pid).into_iter();
            let does = tree.any(|pid| procfs::has_perf_events(pid) && waits(pid));
            self.watching_since = self.watching_since.or(Some(self.searched)).filter(|_| does);
        }
        self.watching_since.is_some_and(|since| since.elapsed() > SETTLED)
    }

    /// Ends the command after the held process has ended, step by step. Returns the signal that was sent in this call, if any.
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

    /// Whether it did not end and was left running.
    pub fn is_left(&self) -> bool {
        matches!(self.ending, Ending::Left)
    }

    /// Sends a signal to the shell and its descendants, as a key at the terminal would.
    fn send(&self, signal: Signal) {
        for pid in procfs::tree(self.pid) {
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
