//! The process that is held: whether it still stands, and the duty to continue it, whatever happens to us.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

use rustix::process::{Signal, pidfd_send_signal};

use super::process::Status;
use super::{SETTLED, has_ended};
use crate::collect::pidfd;
use crate::event::Pid;

/// A process that was made to stop. Dropped, it is continued.
#[derive(Debug)]
pub struct Stopped {
    pid: Pid,
    handle: OwnedFd,
    state: State,
}

/// Where it is between its stop and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// On its way to the stop.
    Stopping,
    /// It stands, but since when it was found running: who attaches to it may set it in motion for a moment.
    Standing(Option<Instant>),
    /// It goes on.
    Continued,
    /// It is gone.
    Ended,
}

impl Stopped {
    /// Of a process that cannot go away meanwhile, being stopped by us.
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

    /// Readable when it has ended; `None`: it is known to have.
    pub fn end(&self) -> Option<BorrowedFd<'_>> {
        (self.state != State::Ended).then(|| self.handle.as_fd())
    }

    /// Whether it is still to be continued by somebody.
    pub fn is_held(&self) -> bool {
        matches!(self.state, State::Stopping | State::Standing(_))
    }

    /// Looks what became of it.
    pub fn look(&mut self) -> State {
        let stands = || Status::of(self.pid).is_some_and(|status| status.is_stopped());
        self.state = match self.state {
            State::Ended => State::Ended,
            _ if has_ended(&self.handle) => State::Ended,
            State::Continued => State::Continued,
            _ if stands() => State::Standing(None),
            State::Standing(Some(since)) if since.elapsed() > SETTLED => State::Continued,
            State::Standing(since) => State::Standing(since.or_else(|| Some(Instant::now()))),
            State::Stopping => State::Stopping,
        };
        self.state
    }

    /// Continues it. It may be gone, or another's to continue by now: then nothing happens.
    pub fn go_on(&mut self) {
        if self.is_held() {
            let _ = pidfd_send_signal(&self.handle, Signal::CONT);
            self.state = State::Continued;
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.go_on();
    }
}
