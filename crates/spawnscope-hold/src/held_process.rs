//! The held process: tracks whether it is still stopped, and guarantees that it is continued in any
//! case.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use super::SETTLE_TIME;
use spawnscope_data::event::Pid;
use spawnscope_system::process::{is_readable_within, pidfd};
use spawnscope_system::procfs::Status;

/// A process that we stopped. Dropping it continues the process.
#[derive(Debug)]
pub struct HeldProcess {
    pub pid: Pid,
    pidfd: OwnedFd,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Stopping,
    /// The process is stopped (`None`). Or it has been running again since this time, but still
    /// counts as stopped, because an attaching process may let it run for a moment.
    Stopped(Option<Instant>),
    Continued,
    Ended,
}

impl HeldProcess {
    /// Holds a process, which must currently be stopped by us, so that its pid cannot be reused.
    pub fn new(pid: Pid) -> io::Result<HeldProcess> {
        Ok(HeldProcess { pid, pidfd: pidfd(pid)?, state: State::Stopping })
    }

    /// Returns a descriptor that becomes readable when the process ends; `None` once the process is
    /// known to have ended.
    pub fn end_readiness(&self) -> Option<BorrowedFd<'_>> {
        (self.state != State::Ended).then(|| self.pidfd.as_fd())
    }

    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Stopping | State::Stopped(_))
    }

    pub fn update(&mut self) -> State {
        self.state = match self.state {
            State::Ended => State::Ended,
            _ if is_readable_within(&self.pidfd, Duration::ZERO) => State::Ended,
            State::Continued => State::Continued,
            _ if Status::read(self.pid).is_some_and(|status| status.is_stopped()) => State::Stopped(None),
            State::Stopped(Some(since)) if since.elapsed() > SETTLE_TIME => State::Continued,
            State::Stopped(since) => State::Stopped(since.or_else(|| Some(Instant::now()))),
            State::Stopping => State::Stopping,
        };
        self.state
    }

    /// Continues the process. Has no effect if it has ended or another process has continued it.
    pub fn release(&mut self) {
        if self.is_held() {
            let _ = pidfd_send_signal(&self.pidfd, Signal::CONT);
            self.state = State::Continued;
        }
    }
}

impl Drop for HeldProcess {
    fn drop(&mut self) {
        self.release();
    }
}
