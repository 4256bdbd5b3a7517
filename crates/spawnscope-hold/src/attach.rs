//! The tool: the command of `--run`, which attaches to the held process. This module starts the
//! tool, detects when it has attached, and ends it afterwards. The tool is our child and runs as
//! the same user as the held process. Signals are sent only to the tool and its descendants.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, sigprocmask};

use super::{CHECK_INTERVAL, Notice, SETTLE_TIME};
use spawnscope_data::event::Pid;
use spawnscope_system::held::Identity;
use spawnscope_system::held::inheritance::restore_dispositions;
use spawnscope_system::process::pidfd;
use spawnscope_system::procfs::{self, Status};

const PLACEHOLDER: &[u8] = b"{pid}";
/// How long the process is held if the tool is not seen to attach.
pub const ATTACH_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Tool {
    pub pid: Pid,
    pidfd: OwnedFd,
    started: Instant,
    /// When the tool's processes were last checked for perf events.
    last_search: Instant,
    /// Since when a process of the tool has been asleep with perf events open.
    watching_since: Option<Instant>,
    ending: Ending,
    /// The tool's wait status, once it has ended.
    pub status: Option<i32>,
    has_ended_early: bool,
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    NotDue,
    /// When to send the next signal, and the signal. If there is no signal left, the tool is left
    /// running at that time.
    Due(Instant, Option<Signal>),
    LeftRunning,
}

impl Tool {
    /// Starts the tool with a shell. Its standard input is the terminal or /dev/null, because piped
    /// input belongs to the held command.
    pub fn start(text: &OsStr, target: Pid, mask: SigSet, identity: Option<&Identity>) -> io::Result<Tool> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(with_pid(text, target));
        if !io::stdin().is_terminal() {
            shell.stdin(Stdio::null());
        }
        let identity = identity.cloned();
        shell.envs(identity.iter().flat_map(|identity| identity.environment.clone()));
        // SAFETY: the closure only makes system calls, on memory that it owns.
        unsafe {
            shell.pre_exec(move || {
                if let Some(identity) = &identity {
                    identity.assume()?;
                }
                restore_dispositions();
                Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&mask), None)?)
            })
        };
        let child = shell.spawn()?;
        let pid = Pid(i32::try_from(child.id()).map_err(io::Error::other)?);
        Ok(Tool {
            pid,
            pidfd: pidfd(pid)?,
            started: Instant::now(),
            last_search: Instant::now(),
            watching_since: None,
            ending: Ending::NotDue,
            status: None,
            has_ended_early: false,
        })
    }

    /// Returns a descriptor that becomes readable when the tool ends; `None` once the tool is known
    /// to have ended.
    pub fn end_readiness(&self) -> Option<BorrowedFd<'_>> {
        self.status.is_none().then(|| self.pidfd.as_fd())
    }

    /// Whether the tool has ended or was left running, so that it is not waited for any more.
    pub fn is_over(&self) -> bool {
        self.status.is_some() || self.was_left_running()
    }

    /// Returns the tool's wait status if it failed without a signal from us and `progress` has not
    /// reported it.
    pub fn failure(&self) -> Option<i32> {
        let was_not_signalled = matches!(self.ending, Ending::NotDue | Ending::Due(_, Some(Signal::SIGINT)));
        self.status.filter(|status| *status != 0 && was_not_signalled && !self.has_ended_early)
    }

    /// Returns why the held process may continue; `None` if it may not yet.
    pub fn progress(&mut self, target: Pid) -> Option<Notice> {
        if let Some(status) = self.status {
            self.has_ended_early = true;
            return Some(Notice::EndedBeforeAttach(target, status));
        }
        let is_traced = Status::read(target).is_some_and(|status| status.is_stopped_by_tracer());
        if is_traced || self.watches_by_perf_events() {
            return Some(Notice::Attached(target));
        }
        (self.started.elapsed() > ATTACH_TIMEOUT).then_some(Notice::AttachTimedOut(target))
    }

    /// Whether a process of the tool has perf events open and has been waiting for files for
    /// `SETTLE_TIME`. `perf` enters that wait when it has finished its setup and enabled the
    /// events. The search through the processes is slow, so it is repeated at most once per
    /// `CHECK_INTERVAL`.
    fn watches_by_perf_events(&mut self) -> bool {
        if self.last_search.elapsed() > CHECK_INTERVAL {
            self.last_search = Instant::now();
            let mut tree = procfs::tree(self.pid).into_iter();
            let is_watching = tree.any(|pid| procfs::has_perf_events(pid) && is_waiting(pid));
            self.watching_since = self.watching_since.or(Some(self.last_search)).filter(|_| is_watching);
        }
        self.watching_since.is_some_and(|since| since.elapsed() > SETTLE_TIME)
    }

    /// Takes the next step to end the tool, if it is due. Call this repeatedly once the held
    /// process has ended. Returns the signal that this call has sent, if any.
    pub fn finish(&mut self, grace: Duration) -> Option<Signal> {
        if self.is_over() {
            return None;
        }
        let now = Instant::now();
        match self.ending {
            Ending::NotDue => self.ending = Ending::Due(now + grace, Some(Signal::SIGINT)),
            Ending::Due(due, Some(signal)) if now >= due => {
                let next = (signal == Signal::SIGINT).then_some(Signal::SIGTERM);
                self.ending = Ending::Due(now + grace, next);
                self.send(signal);
                return Some(signal);
            }
            Ending::Due(due, None) if now >= due => self.ending = Ending::LeftRunning,
            Ending::Due(..) | Ending::LeftRunning => {}
        }
        None
    }

    pub fn was_left_running(&self) -> bool {
        matches!(self.ending, Ending::LeftRunning)
    }

    /// Sends a signal to the shell and all its descendants, just as the terminal signals a whole
    /// process group.
    fn send(&self, signal: Signal) {
        for pid in procfs::tree(self.pid) {
            let _ = kill(nix::unistd::Pid::from_raw(pid.0), signal);
        }
    }
}

fn is_waiting(pid: Pid) -> bool {
    let is_asleep = Status::read(pid).is_some_and(|status| status.is_asleep());
    is_asleep && procfs::waits_for_files(pid).unwrap_or(true)
}

fn with_pid(text: &OsStr, target: Pid) -> OsString {
    let number = target.0.to_string();
    let mut filled = Vec::new();
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
    fn every_placeholder_is_replaced() {
        for (text, filled) in [
            ("perf record -o p.{pid} -p {pid}", "perf record -o p.42 -p 42"),
            ("{pid}{{pid}}{pid", "42{42}{pid"),
            ("echo", "echo"),
        ] {
            assert_eq!(with_pid(OsStr::new(text), Pid(42)), filled);
        }
        let bytes = OsStr::from_bytes(b"\xff{pid}");
        assert_eq!(with_pid(bytes, Pid(7)).as_bytes(), b"\xff7");
    }
}
