//! The border between two recordings of `--keep`. Events reach the recorder a little later than
//! they happen, and the last slice of a thread comes after the event of its end. Therefore the
//! earlier recording stays open for a short time after the border. Events of this time that belong
//! to the next recording are held until it begins, so neither recording lacks any.
//!
//! The processes that are running at the border, with their names and threads according to the
//! events so far, are handed on. The next recording begins with them as processes that existed
//! before it, as a recording with `-a` does.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd;

use crate::event::{Event, EventKind, LaunchId, Nanos, Pid, TaskId};

/// For this long, the earlier recording still gets its events. This is also the age up to which a
/// process is young: its launch is completed in the recording in which it began.
const TIME: Duration = Duration::from_millis(500);

/// The border, until the next recording begins.
#[derive(Debug)]
pub struct Cut {
    /// The time zero of the next recording.
    pub at: Nanos,
    until: Instant,
    /// The threads that have started since then.
    started: HashSet<TaskId>,
    /// The events that the next recording contains.
    held: Vec<Event>,
}

impl Cut {
    /// Makes a border between what has happened until `at`, which is now, and what follows.
    pub fn new(at: Nanos, now: Instant) -> Cut {
        Cut { at, until: now + TIME, started: HashSet::new(), held: Vec::new() }
    }

    /// Whether all events of the earlier recording have arrived.
    pub fn is_over(&self, now: Instant) -> bool {
        now >= self.until
    }

    /// Removes the events that belong to the next recording. `carried` are the processes that run
    /// at the border, as far as the events have arrived.
    pub fn hold_later(&mut self, carried: &mut CarriedProcesses, events: &mut Vec<Event>) {
        events.retain(|event| {
            if event.at < self.at {
                carried.update(event);
                return true;
            }
            if matches!(
                event.kind,
                EventKind::Launched(_) | EventKind::Adopted { .. } | EventKind::ThreadStarted { .. }
            ) {
                self.started.insert(event.task);
            }
            let is_later = self.started.contains(&event.task) || carried.contains(event);
            if is_later {
                self.held.push(event.clone());
            }
            !is_later
        });
    }

    /// Returns the events that belong to the earlier recording as well: those of young processes.
    pub fn of_young_processes(&self, carried: &CarriedProcesses) -> Vec<Event> {
        let oldest = Nanos(self.at.0.saturating_sub(TIME.as_nanos() as u64));
        self.held.iter().filter(|event| carried.is_launched_since(event.launch, oldest)).cloned().collect()
    }

    /// Returns the events that the next recording contains.
    pub fn into_later(self) -> Vec<Event> {
        self.held
    }
}

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

/// Whether a process exists, or is outside the recorder's pid namespace and therefore has pid 0.
pub fn may_exist(pid: Pid) -> bool {
    pid.0 == 0 || kill(unistd::Pid::from_raw(pid.0), None) != Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{LaunchId, Launched, Pid};

    fn event(at: u64, task: u64, launch: u64, kind: EventKind) -> Event {
        Event { at: Nanos(at), launch: LaunchId(launch), task: TaskId(task), kind }
    }

    fn launched(at: u64, launch: u64) -> Event {
        let pid = Pid(std::process::id().cast_signed());
        event(at, launch, launch, EventKind::Launched(Launched { pid, ..Launched::default() }))
    }

    fn gone(at: u64, task: u64, launch: u64) -> Event {
        event(at, task, launch, EventKind::Gone { zombie: Some(Nanos(at)), auto_reaped: false, cpu: None })
    }

    #[test]
    fn each_event_is_on_the_side_of_its_process() {
        let border = 5_000_000_000;
        let mut carried = CarriedProcesses::default();
        let old = [launched(10, 1), launched(20, 2), gone(30, 2, 2), launched(border - 9, 3)];
        old.iter().for_each(|event| carried.update(event));
        let mut cut = Cut::new(Nanos(border), Instant::now());
        let arriving = [
            launched(border - 1, 4),
            gone(border + 1, 2, 2),
            gone(border + 2, 1, 1),
            gone(border + 3, 3, 3),
            launched(border + 4, 5),
            gone(border + 5, 4, 4),
            gone(border + 6, 5, 5),
            gone(border + 7, 5, 5),
        ];
        let mut earlier = arriving.to_vec();
        cut.hold_later(&mut carried, &mut earlier);
        assert_eq!(
            earlier,
            [arriving[0].clone(), arriving[1].clone()],
            "an event from before, and one of an ended process"
        );
        let young = cut.of_young_processes(&carried);
        assert_eq!(young, [arriving[3].clone(), arriving[5].clone()], "their launches are completed");
        let adopted: Vec<u64> = carried.adoptions(Nanos(border)).iter().map(|event| event.launch.0).collect();
        assert_eq!(adopted, [1, 3, 4]);
        assert_eq!(cut.into_later(), arriving[2..]);
    }

    fn adopted(name: &str) -> EventKind {
        // Our own process: it exists.
        let pid = Pid(std::process::id().cast_signed());
        let name = name.as_bytes().to_vec();
        EventKind::Adopted { pid, name }
    }

    fn ended(is_last_thread: bool) -> EventKind {
        EventKind::Gone { zombie: is_last_thread.then_some(Nanos(4)), auto_reaped: false, cpu: None }
    }

    #[test]
    fn the_next_recording_begins_with_the_running_processes_and_threads() {
        let event = |launch, task, kind| event(5, task, launch, kind);
        let mut carried = CarriedProcesses::default();
        let started = EventKind::ThreadStarted { tid: Pid(0), creator: TaskId(1) };
        carried.update(&event(1, 1, adopted("server")));
        carried.update(&event(1, 7, started.clone()));
        carried.update(&event(1, 8, started.clone()));
        carried.update(&event(2, 2, adopted("shell")));
        carried.update(&event(1, 7, ended(false)));
        carried.update(&event(2, 2, ended(true)));
        let at = Nanos(99);
        let wanted = [event(1, 1, adopted("server")), event(1, 8, started)];
        let wanted = wanted.map(|event| Event { at, ..event });
        assert_eq!(carried.adoptions(at), wanted);
        let running =
            [(1, 1), (1, 8), (1, 7), (2, 2)].map(|(launch, task)| carried.contains(&event(launch, task, ended(false))));
        assert_eq!(running, [true, true, false, false]);
    }
}
