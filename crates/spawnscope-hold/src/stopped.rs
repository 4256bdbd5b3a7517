//! The held process: whether it is still stopped, and a guarantee that it is continued in any case.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use super::SETTLED;
use spawnscope_data::event::Pid;
use spawnscope_system::process::{is_readable_within, pidfd};
use spawnscope_system::procfs::Status;

/// A process that we stopped. Dropping it continues the process.
#[derive(Debug)]
pub struct Stopped {
    pid: Pid,
    handle: OwnedFd,
    state: State,
}

/// The state of the held process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not reached its stop yet.
    Stopping,
    /// It is stopped. If a time is given, it has been seen running since then: an attaching process may continue it for a moment.
    Standing(Option<Instant>),
    /// It continues.
    Continued,
    /// It has ended.
    Ended,
}

impl Stopped {
    /// Holds a process. It must currently be stopped by us, so that its pid is not reused.
    pub fn new(pid: Pid) -> io::Result<Stopped> {
        Ok(Stopped {
            pid,
            handle: pidfd(pid)?,
            state: State::Stopping,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// A descriptor that becomes readable when it ends; `None` once it is known to have ended.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        (self.state != State::Ended).then(|| self.handle.as_fd())
    }

    /// Whether it still has to be continued.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Stopping | State::Standing(_))
    }

    /// Checks and returns its current state.
    pub fn update(&mut self) -> State {
        let stands = || Status::of(self.pid).is_some_and(|status| status.is_stopped());
        self.state = match self.state {
            State::Ended => State::Ended,
            _ if is_readable_within(&self.handle, Duration::ZERO) => State::Ended,
            State::Continued => State::Continued,
            _ if stands() => State::Standing(None),
            State::Standing(Some(since)) if since.elapsed() > SETTLED => State::Continued,
            State::Standing(since) => State::Standing(since.or_else(|| Some(Instant::now()))),
            State::Stopping => State::Stopping,
        };
        self.state
    }

    /// Continues it. Has no effect if it has ended or was continued by another process.
    pub fn release(&mut self) {
        if self.is_held() {
            let _ = pidfd_send_signal(&self.handle, Signal::CONT);
            self.state = State::Continued;
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.release();
    }
}
