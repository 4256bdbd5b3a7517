//! Tracks which launched processes are still running, and which exited threads are still on a CPU.
//! This is derived from the events before they are recorded.

use std::collections::{HashMap, HashSet};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd;

use crate::event::{Event, EventKind, LaunchId, Pid, TaskId};

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

/// Whether a process exists, or is outside the recorder's pid namespace and therefore has pid 0.
pub fn may_exist(pid: Pid) -> bool {
    pid.0 == 0 || kill(unistd::Pid::from_raw(pid.0), None) != Err(Errno::ESRCH)
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
