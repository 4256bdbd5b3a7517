//! The border between two recordings of `--keep`. Events reach the recorder a little later than
//! they happen, and the last slice of a thread comes after the event of its end. Therefore the
//! earlier recording stays open for a short time after the border. Events of this time that belong
//! to the next recording are held until it begins, so neither recording lacks any.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::carried_processes::CarriedProcesses;
use crate::event::{Event, EventKind, Nanos, TaskId};

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
}
