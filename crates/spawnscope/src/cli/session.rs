//! One recording from start to end. It moves events from the collector to the recorder while the
//! command runs, forwards signals, and decides when to stop. If anything fails here, the command
//! still runs to its end.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::metrics::Publisher;
use super::output::{escape_line, print_message};
use super::recordings::{Recordings, may_exist};
use crate::allowed_cpus::allowed_cpus;
use crate::collect::{CollectError, Collector};
use crate::event::{Event, EventKind, LaunchId, Loss, Nanos, Pid, TaskId};
use crate::record::{Follower, Header};
use crate::signals::{ArrivedSignal, Signals};
use crate::{clock, job_control, units};

/// How often events are read from the ring buffer, which wakes us only when it fills up.
const INTERVAL: Duration = Duration::from_millis(40);

/// How often the count of lost events is read while recording, for `--metrics`.
const LOSSES_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time to wait at the end of the recording until exited threads have left their CPU. Only
/// then is it known when their processes could be reaped. With one CPU, the recorder often runs
/// before that.
const MAX_SETTLING: Duration = Duration::from_millis(100);

/// Follows a recording live, and may end it.
pub trait Watcher {
    /// Returns the follower that the recorder must pass its rows to.
    fn follower(&mut self, header: &Header) -> Follower;
    /// Starts to show the rows. Called once the collector is attached and the command runs.
    fn begin(&mut self) -> Result<()>;
    /// Whether the user wants the recording to end.
    fn has_quit(&self) -> bool;
    /// Ends the view without waiting for the user. Called when a terminating signal arrives.
    fn end_now(&self);
}

pub struct Session<'a> {
    pub collector: &'a mut dyn Collector,
    pub recordings: &'a mut Recordings,
    pub signals: &'a Signals,
    /// The thread of `--metrics`.
    pub publisher: Option<&'a Publisher>,
    /// When to pass the counts of lost events to the publisher again.
    pub losses_due: Instant,
    /// The view that follows the recording live.
    pub watcher: Option<&'a dyn Watcher>,
    /// The pidfd of the command or, without a command, of the process that `-p` names.
    pub process: Option<OwnedFd>,
    pub command: Option<TracedCommand>,
    pub deadline: Option<Instant>,
    /// Whether to record until all processes that the command launched have ended, not only the
    /// command.
    pub waits_for_all: bool,
    pub is_quiet: bool,
    /// The launched processes that are still running.
    pub running: RunningProcesses,
}

#[derive(Clone, Copy, Debug)]
pub struct TracedCommand {
    pub pid: Pid,
    pub launch: LaunchId,
}

#[derive(Debug, Default)]
pub struct Outcome {
    pub end_reason: &'static str,
    /// Whether the command (or the followed process) has ended.
    process_ended: bool,
    /// When the command became a zombie, as the collector saw it. With `--wait-for-all`, when the
    /// last process did.
    last_ended: Option<Nanos>,
    /// The last moment in the recording: the end of the command or of the last process, or when
    /// recording stopped.
    pub recorded_until: Option<Nanos>,
    /// The command's wait status; `None` if there is no command or it was left running.
    pub wait_status: Option<i32>,
    /// How many CPUs the command was allowed to use when it ended.
    pub allowed_cpus: Option<f64>,
    pub lost: Vec<Loss>,
    /// Whether the recording ended early and the reason was printed.
    pub has_failed: bool,
    /// Why the next recording of `--keep` could not begin.
    rotation_failure: Option<String>,
    pub collector_failure: Option<CollectError>,
}

impl Session<'_> {
    pub fn run(&mut self) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut interrupts = Interrupts::default();
        let mut has_more = false;
        while outcome.end_reason.is_empty() {
            let is_recording = outcome.recorded_until.is_none();
            let max_time = if has_more { Duration::ZERO } else { INTERVAL };
            let has_just_ended = self.wait(is_recording, outcome.process_ended, max_time)?;
            self.stop_with_command(&outcome);
            if self.handle_signals(outcome.process_ended, &mut interrupts)
                || self.watcher.is_some_and(Watcher::has_quit)
            {
                outcome.end_reason = "interrupted";
            }
            if is_recording {
                has_more = self.move_events(&mut outcome);
                self.pass_losses_to_publisher();
                self.rotate_if_full(&mut outcome);
                self.stop_if_over(&mut outcome);
            }
            outcome.process_ended |= has_just_ended;
            if outcome.process_ended {
                self.settle(&mut outcome);
            }
            if has_just_ended {
                self.print_remaining_processes(&outcome);
            }
            if outcome.process_ended && !self.should_wait_for_others(&outcome) {
                outcome.end_reason = "exited";
            }
        }
        if outcome.recorded_until.is_none() {
            self.stop_collecting(&mut outcome);
        } else if self.command.is_some() && outcome.end_reason == "exited" {
            // The recording ended before the command did.
            outcome.end_reason = if outcome.has_failed { "failed" } else { "duration" };
        }
        self.reap_command(&mut outcome);
        Ok(outcome)
    }

    /// Passes signals on to the command. Returns whether one of them ends the recording.
    fn handle_signals(&self, process_ended: bool, interrupts: &mut Interrupts) -> bool {
        let mut ends = false;
        while let Some(arrived) = self.signals.next() {
            if let Some(command) = self.command {
                arrived.forward_to(command.pid.0);
            }
            ends |= self.ends_recording(arrived, process_ended, interrupts);
            if let Some(watcher) = self.watcher.filter(|_| arrived.should_end()) {
                watcher.end_now();
            }
        }
        ends
    }

    /// Stops this process if the command is stopped, so that the shell that waits for this process
    /// takes its terminal back. The live view keeps the terminal and goes on.
    fn stop_with_command(&mut self, outcome: &Outcome) {
        let Some(command) = self.command.filter(|_| !outcome.process_ended && self.watcher.is_none()) else {
            return;
        };
        if self.collector.has_stopped(command.pid) {
            job_control::stop_with(command.pid);
        }
    }

    /// Moves events until exited threads have left their CPU, because only then is it known when
    /// their processes could be reaped. On a machine with one CPU, the recorder often runs before
    /// that.
    fn settle(&mut self, outcome: &mut Outcome) {
        let end = Instant::now() + MAX_SETTLING;
        while outcome.recorded_until.is_none() {
            let has_more = self.move_events(outcome);
            let has_settled = !has_more && !self.running.has_leaving_threads();
            if has_settled || Instant::now() >= end {
                return;
            }
            if !has_more {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Whether to wait for other processes that the command launched and that have not ended yet
    /// (`--wait-for-all`).
    fn should_wait_for_others(&mut self, outcome: &Outcome) -> bool {
        if !self.waits_for_all || outcome.recorded_until.is_some() {
            return false;
        }
        self.running.forget_missing();
        self.running.process_count() > 0
    }

    fn print_remaining_processes(&mut self, outcome: &Outcome) {
        if self.should_wait_for_others(outcome) && !self.is_quiet {
            let processes = units::counted(self.running.process_count() as u64, "process", "processes");
            print_message(&format!(
                "the command has ended; waiting for {processes} that it launched (Ctrl-C stops the recording, not the processes)"
            ));
        }
    }

    /// Sleeps until something happens, but, while recording, at most for `max_time`. Returns
    /// whether the command (or the followed process) has just ended.
    fn wait(&self, is_recording: bool, process_ended: bool, max_time: Duration) -> Result<bool> {
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds = vec![readable(self.signals.readiness())];
        let process = self.process.as_ref().filter(|_| !process_ended).map(|process| {
            fds.push(readable(process.as_fd()));
            fds.len() - 1
        });
        if is_recording {
            fds.push(readable(self.collector.readiness()));
        }
        let until_deadline = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let interval = match is_recording {
            true => until_deadline.map_or(max_time, |left| left.min(max_time)),
            // The command may still stop.
            false => INTERVAL,
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(interval.subsec_nanos()) };
        match poll(&mut fds, (is_recording || self.command.is_some()).then_some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("failed to wait for events"),
        }
        Ok(process.is_some_and(|index| !fds[index].revents().is_empty()))
    }

    /// Whether a signal ends the recording. Without a running command, any terminating signal does;
    /// with one, only three interrupts within a second.
    fn ends_recording(&self, arrived: ArrivedSignal, has_ended: bool, interrupts: &mut Interrupts) -> bool {
        let Some(command) = self.command.filter(|_| !has_ended) else { return arrived.should_end() };
        let must_stop = arrived.signal == libc::SIGINT && interrupts.press(Instant::now());
        if must_stop {
            print_message(&format!(
                "three interrupts within a second: recording stops; the command (process {}) keeps running, unrecorded",
                command.pid.0
            ));
        }
        must_stop
    }

    /// Moves a batch of events from the collector to the recorder. Returns whether there are more.
    fn move_events(&mut self, outcome: &mut Outcome) -> bool {
        let mut events = Vec::new();
        let has_more = self.collector.drain(&mut events).unwrap_or_else(|error| {
            outcome.collector_failure.get_or_insert(error);
            false
        });
        for event in &events {
            self.running.update(event);
            let ended = match &event.kind {
                EventKind::Gone { zombie, .. } => *zombie,
                // The best estimate of an end if the collector does not see when the process can be
                // reaped.
                EventKind::Exited(exited) if exited.last_thread && self.waits_for_all => Some(event.at),
                _ => None,
            };
            if self.waits_for_all || self.command.is_some_and(|command| command.launch == event.launch) {
                outcome.last_ended = outcome.last_ended.max(ended);
            }
        }
        if !events.is_empty() {
            self.recordings.send(events);
        }
        has_more
    }

    /// Begins the next recording of `--keep` if the current one is full and has all its events.
    fn rotate_if_full(&mut self, outcome: &mut Outcome) {
        if !self.recordings.is_complete() {
            return;
        }
        match self.collector.losses() {
            Ok(lost) => {
                let rotated = self.recordings.rotate(&lost, self.collector);
                outcome.rotation_failure = rotated.err().map(|error| format!("{error:#}"));
            }
            Err(error) => drop(outcome.collector_failure.get_or_insert(error)),
        }
    }

    /// Passes the counts of lost events to the publisher. Errors are ignored here;
    /// `stop_collecting` reports them at the end.
    fn pass_losses_to_publisher(&mut self) {
        let Some(publisher) = self.publisher.filter(|_| Instant::now() >= self.losses_due) else { return };
        self.losses_due = Instant::now() + LOSSES_INTERVAL;
        if let Ok(lost) = self.collector.losses() {
            publisher.set_lost(&lost);
        }
    }

    /// Ends the recording at its deadline or on failure. Even then, the session waits for the
    /// command to end.
    fn stop_if_over(&mut self, outcome: &mut Outcome) {
        let collector_failure = outcome.collector_failure.as_ref();
        let failure = collector_failure
            .map(|error| format!("failed to {error}"))
            .or_else(|| self.recordings.failure().map(|error| error.to_string()))
            .or_else(|| outcome.rotation_failure.take());
        let reason = match &failure {
            Some(_) => "failed",
            None if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) => "duration",
            None => return,
        };
        self.stop_collecting(outcome);
        if let Some(failure) = failure {
            let command = if self.command.is_some() { "; the command is not affected" } else { "" };
            print_message(&format!("the recording ends early: {}{command}", escape_line(failure)));
            outcome.has_failed = true;
        }
        if self.command.is_none() {
            outcome.end_reason = reason;
        }
    }

    fn stop_collecting(&mut self, outcome: &mut Outcome) {
        let until = clock::now();
        self.collector.detach();
        while self.move_events(outcome) {}
        let notices = self.collector.notices();
        notices.iter().filter(|_| !self.is_quiet).for_each(|notice| print_message(notice));
        let is_cut = self.waits_for_all && self.running.process_count() > 0;
        outcome.recorded_until = outcome.last_ended.filter(|_| !is_cut).or(Some(until));
        match self.collector.losses() {
            Ok(lost) => {
                if let Some(publisher) = self.publisher {
                    publisher.set_lost(&lost);
                }
                outcome.lost = lost;
            }
            Err(error) => drop(outcome.collector_failure.get_or_insert(error)),
        }
    }

    fn reap_command(&mut self, outcome: &mut Outcome) {
        let ended = self.process.as_ref().is_some_and(has_ended);
        let command = self.command.filter(|_| ended);
        // The command may have limited itself, as taskset does before its exec.
        outcome.allowed_cpus = command.and_then(|command| allowed_cpus(command.pid));
        outcome.wait_status = command.and_then(|command| self.collector.reap(command.pid));
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
}

const PRESSES_TO_EXIT: usize = 3;
/// Maximum time from the first to the last of these presses.
const MAX_PRESSES_TIME: Duration = Duration::from_secs(1);
/// Interrupts closer together than this are one Ctrl-C that reached us twice, for example through
/// `timeout`.
const MIN_PRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Counts Ctrl-C presses while a command runs. Ctrl-C is for the command, which may be an editor, a
/// pager or a shell, where it is pressed often. Only three presses within a second are for the
/// recorder: it then stops recording and exits.
#[derive(Debug, Default)]
struct Interrupts {
    presses: Vec<Instant>,
}

impl Interrupts {
    /// Counts an interrupt. Returns whether the recorder must exit.
    fn press(&mut self, now: Instant) -> bool {
        if self.presses.last().is_some_and(|&last| now.duration_since(last) < MIN_PRESS_INTERVAL) {
            return false;
        }
        self.presses.retain(|&press| now.duration_since(press) <= MAX_PRESSES_TIME);
        self.presses.push(now);
        self.presses.len() >= PRESSES_TO_EXIT
    }
}

/// Launched processes that are still running, according to the events so far.
#[derive(Debug, Default)]
pub struct RunningProcesses {
    processes: HashMap<LaunchId, Pid>,
    /// Threads that have exited but are still on a CPU.
    leaving: HashSet<TaskId>,
}

impl RunningProcesses {
    pub fn update(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Launched(launched) => drop(self.processes.insert(event.launch, launched.pid)),
            EventKind::Exited(_) => drop(self.leaving.insert(event.task)),
            EventKind::Gone { zombie, .. } => {
                self.leaving.remove(&event.task);
                if zombie.is_some() {
                    self.processes.remove(&event.launch);
                }
            }
            _ => {}
        }
    }

    pub fn has_leaving_threads(&self) -> bool {
        !self.leaving.is_empty()
    }

    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// Removes processes that have ended but whose exit event was lost.
    pub fn forget_missing(&mut self) {
        self.processes.retain(|_, pid| may_exist(*pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Nanos;

    fn gone(launch: u64, task: u64, zombie: Option<Nanos>) -> Event {
        let kind = EventKind::Gone { zombie, auto_reaped: false, cpu: Some(Nanos(1)) };
        event(launch, task, kind)
    }

    fn event(launch: u64, task: u64, kind: EventKind) -> Event {
        Event { at: Nanos(5), launch: LaunchId(launch), task: TaskId(task), kind }
    }

    #[test]
    fn a_process_lives_until_its_last_thread_is_gone() {
        let mut running = RunningProcesses::default();
        running.processes.insert(LaunchId(2), Pid(0));
        running.update(&gone(2, 3, None));
        assert_eq!(running.process_count(), 1, "another thread is still running");
        running.forget_missing();
        assert_eq!(running.process_count(), 1, "its pid is unknown");
        running.update(&gone(2, 2, Some(Nanos(4))));
        assert_eq!(running.process_count(), 0);
    }

    #[test]
    fn a_process_whose_end_was_lost_is_forgotten() {
        let mut running = RunningProcesses::default();
        // Above the largest pid that Linux assigns.
        running.processes.insert(LaunchId(2), Pid(1 << 23));
        running.processes.insert(LaunchId(3), Pid(std::process::id().cast_signed()));
        running.forget_missing();
        assert_eq!(running.processes.keys().collect::<Vec<_>>(), [&LaunchId(3)]);
    }
}
