//! One recording from start to end: moves events from the collector to the recorder while the command runs, hands
//! signals on, and decides when it is over. Whatever fails in here, the command runs to its own end.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::progress::Progress;
use super::signals::{Arrived, Signals};
use crate::collect::{CollectError, Collector};
use crate::event::{Event, EventKind, LaunchId, Loss, Nanos, Pid};
use crate::record::writer::Recorder;

/// How often events are taken from the kernel's buffer, which wakes us by itself only when it fills up.
const INTERVAL: Duration = Duration::from_millis(40);

/// What is being followed, and whose end is the recording's.
pub struct Session<'a> {
    /// Whence events come.
    pub collector: &'a mut dyn Collector,
    /// Where they go.
    pub recorder: &'a Recorder,
    /// The recorder's signals.
    pub signals: &'a Signals,
    /// The spinner.
    pub progress: Progress,
    /// The command, when there is one; else the followed process, when there is one.
    pub process: Option<OwnedFd>,
    /// The command, when there is one.
    pub command: Option<Command>,
    /// When to stop recording.
    pub deadline: Option<Instant>,
}

/// The recorded command.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// Its process.
    pub pid: Pid,
    /// Its number in the recording.
    pub launch: LaunchId,
}

/// How a session ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Why the recording ended.
    pub ended: &'static str,
    /// When the command became a zombie, as the collector saw it.
    pub command_ended: Option<Nanos>,
    /// How the command ended; `None`: there is none, or it was left running.
    pub wait_status: Option<i32>,
    /// Events that were dropped.
    pub lost: Vec<Loss>,
    /// What went wrong with the collector.
    pub collector_failure: Option<CollectError>,
}

impl Session<'_> {
    /// Records until the end.
    ///
    /// # Errors
    /// When the recorder cannot wait for what happens.
    pub fn run(&mut self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut interrupts = 0;
        let mut recording = true;
        while outcome.ended.is_empty() {
            let process_ended = self.wait(recording)?;
            while let Some(arrived) = self.signals.next() {
                interrupts += u32::from(arrived.signal == Signal::SIGINT);
                self.hand_on(arrived);
                if self.command.is_none() || interrupts >= 2 {
                    outcome.ended = "interrupted";
                }
            }
            if recording {
                self.move_events(&mut outcome);
                recording = self.goes_on(&mut outcome);
            }
            if process_ended {
                outcome.ended = "exited";
            }
        }
        self.progress.clear();
        self.finish(recording, &mut outcome);
        Ok(outcome)
    }

    /// Sleeps until something happens or the interval is over; whether the process has ended.
    fn wait(&self, recording: bool) -> Result<bool> {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = vec![readable(self.signals.readiness())];
        fds.extend(self.process.as_ref().map(|process| readable(process.as_fd())));
        if recording {
            fds.push(readable(self.collector.readiness()));
        }
        let until_deadline = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let interval = until_deadline.map_or(INTERVAL, |left| left.min(INTERVAL));
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(interval.subsec_nanos()),
        };
        match poll(&mut fds, if recording { Some(&timeout) } else { None }) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for events"),
        }
        Ok(self.process.is_some() && !fds[1].revents().is_empty())
    }

    /// Gives the command a signal that it has not got from the terminal.
    fn hand_on(&self, arrived: Arrived) {
        if let Some(command) = self.command.filter(|_| !arrived.from_terminal) {
            // It may have ended just now; then there is nobody to tell.
            let _: Result<(), Errno> = kill(nix::unistd::Pid::from_raw(command.pid.0), arrived.signal);
        }
    }

    fn move_events(&mut self, outcome: &mut Outcome) {
        let mut events = Vec::new();
        if let Err(error) = self.collector.drain(&mut events) {
            outcome.collector_failure.get_or_insert(error);
        }
        let of_command = |event: &&Event| self.command.is_some_and(|command| command.launch == event.launch);
        for event in events.iter().filter(of_command) {
            if let EventKind::Gone {
                zombie: Some(zombie), ..
            } = event.kind
            {
                outcome.command_ended = outcome.command_ended.max(Some(zombie));
            }
        }
        if !events.is_empty() {
            self.recorder.send(events);
        }
        let collector = &self.collector;
        self.progress
            .tick(self.recorder.launches_so_far(), || collector.terminal_used());
    }

    /// Whether to go on recording. When not, and there is a command, we still wait for its end.
    fn goes_on(&mut self, outcome: &mut Outcome) -> bool {
        let over = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if over && self.command.is_none() {
            outcome.ended = "duration";
        }
        if !over && outcome.collector_failure.is_none() && self.recorder.failure().is_none() {
            return true;
        }
        self.progress.clear();
        if outcome.ended.is_empty() {
            self.stop_collecting(outcome);
        }
        !outcome.ended.is_empty()
    }

    fn finish(&mut self, recording: bool, outcome: &mut Outcome) {
        if recording {
            self.stop_collecting(outcome);
        }
        if outcome.ended == "exited" && self.command.is_some() {
            outcome.wait_status = self.command.and_then(reap);
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            outcome.ended = "duration";
        }
    }

    fn stop_collecting(&mut self, outcome: &mut Outcome) {
        self.collector.detach();
        self.move_events(outcome);
        match self.collector.losses() {
            Ok(lost) => outcome.lost = lost,
            Err(error) => drop(outcome.collector_failure.get_or_insert(error)),
        }
    }
}

/// The command's status; it has ended, so this does not wait.
fn reap(command: Command) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` is a valid place for the status of a child of ours.
    let reaped = unsafe { libc::waitpid(command.pid.0, &raw mut status, 0) };
    (reaped == command.pid.0).then_some(status)
}
