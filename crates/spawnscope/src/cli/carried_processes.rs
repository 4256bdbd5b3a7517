//! The processes that one recording of `--keep` hands on to the next: those that are running when
//! it ends, with their names and threads, according to the events so far. The next recording begins
//! with them as processes that existed before it, as a recording with `-a` does.

use std::collections::HashMap;

use super::running::may_exist;
use crate::event::{Event, EventKind, LaunchId, Nanos, Pid, TaskId};

/// The processes that are running according to the events so far, by their launches.
#[derive(Debug, Default)]
pub struct CarriedProcesses(HashMap<LaunchId, CarriedProcess>);

#[derive(Debug)]
struct CarriedProcess {
    pid: Pid,
    name: Vec<u8>,
    /// When it was launched; `None` if it existed before.
    launched: Option<Nanos>,
    /// All threads but the main thread: the thread id and the creator of each.
    threads: HashMap<TaskId, (Pid, TaskId)>,
}

impl CarriedProcesses {
    pub fn update(&mut self, event: &Event) {
        let id = event.launch;
        match &event.kind {
            EventKind::Adopted { pid, name } => self.insert(id, *pid, name.clone(), None),
            EventKind::Launched(launched) => {
                let parent = self.0.get(&launched.parent);
                let name = parent.map_or_else(|| b"?".to_vec(), |parent| parent.name.clone());
                self.insert(id, launched.pid, name, Some(event.at));
            }
            EventKind::Executed(executed) => {
                if let Some(process) = self.0.get_mut(&id) {
                    let base = executed.path.rsplit(|byte| *byte == b'/').next();
                    process.name = base.unwrap_or_default().to_vec();
                }
            }
            EventKind::ThreadStarted { tid, creator } => {
                if let Some(process) = self.0.get_mut(&id) {
                    process.threads.insert(event.task, (*tid, *creator));
                }
            }
            EventKind::Gone { zombie: Some(_), .. } => drop(self.0.remove(&id)),
            EventKind::Gone { zombie: None, .. } => {
                if let Some(process) = self.0.get_mut(&id) {
                    process.threads.remove(&event.task);
                }
            }
            _ => {}
        }
    }

    pub fn contains(&self, event: &Event) -> bool {
        let is_main_thread = event.task.0 == event.launch.0;
        let process = self.0.get(&event.launch);
        process.is_some_and(|process| is_main_thread || process.threads.contains_key(&event.task))
    }

    /// Whether a process is running that was launched at this instant or later.
    pub fn is_launched_since(&self, launch: LaunchId, oldest: Nanos) -> bool {
        self.0.get(&launch).and_then(|process| process.launched).is_some_and(|launched| launched >= oldest)
    }

    /// Forgets processes that do not exist: the event of their end was lost.
    pub fn forget_missing(&mut self) {
        self.0.retain(|_, process| may_exist(process.pid));
    }

    /// Returns the events with which a recording that starts at `at` must begin.
    pub fn adoptions(&self, at: Nanos) -> Vec<Event> {
        let mut processes: Vec<_> = self.0.iter().collect();
        processes.sort_unstable_by_key(|(id, _)| **id);
        processes.iter().flat_map(|(id, process)| process.adoption(**id, at)).collect()
    }

    fn insert(&mut self, id: LaunchId, pid: Pid, name: Vec<u8>, launched: Option<Nanos>) {
        let threads = HashMap::new();
        self.0.insert(id, CarriedProcess { pid, name, launched, threads });
    }
}

impl CarriedProcess {
    fn adoption(&self, launch: LaunchId, at: Nanos) -> Vec<Event> {
        let kind = EventKind::Adopted { pid: self.pid, name: self.name.clone() };
        let mut events = vec![Event { at, launch, task: TaskId(launch.0), kind }];
        for (&task, &(tid, creator)) in &self.threads {
            events.push(Event { at, launch, task, kind: EventKind::ThreadStarted { tid, creator } });
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(launch: u64, task: u64, kind: EventKind) -> Event {
        Event { at: Nanos(5), launch: LaunchId(launch), task: TaskId(task), kind }
    }

    fn adopted(name: &str) -> EventKind {
        // Our own process: it exists.
        let pid = Pid(std::process::id().cast_signed());
        let name = name.as_bytes().to_vec();
        EventKind::Adopted { pid, name }
    }

    fn gone(is_last_thread: bool) -> EventKind {
        EventKind::Gone { zombie: is_last_thread.then_some(Nanos(4)), auto_reaped: false, cpu: None }
    }

    #[test]
    fn the_next_recording_begins_with_the_running_processes_and_threads() {
        let mut carried = CarriedProcesses::default();
        let started = EventKind::ThreadStarted { tid: Pid(0), creator: TaskId(1) };
        carried.update(&event(1, 1, adopted("server")));
        carried.update(&event(1, 7, started.clone()));
        carried.update(&event(1, 8, started.clone()));
        carried.update(&event(2, 2, adopted("shell")));
        carried.update(&event(1, 7, gone(false)));
        carried.update(&event(2, 2, gone(true)));
        let at = Nanos(99);
        let wanted = [event(1, 1, adopted("server")), event(1, 8, started)];
        let wanted = wanted.map(|event| Event { at, ..event });
        assert_eq!(carried.adoptions(at), wanted);
        let running =
            [(1, 1), (1, 8), (1, 7), (2, 2)].map(|(launch, task)| carried.contains(&event(launch, task, gone(false))));
        assert_eq!(running, [true, true, false, false]);
    }
}
