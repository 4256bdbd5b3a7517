//! Critical time while recording, as an estimate: the critical path itself is known only at the end. From its birth, or from the
//! reaping of its parent's child before it, a parent waits at most for a launch. This window belongs to the launch and to what it waited
//! for itself. If the window is shorter than the life of the launch, the same part of each of these times is critical.

use std::collections::HashMap;

use super::{LiveLaunches, OTHER, Process};
use spawnscope_data::event::{LaunchId, Nanos};
use spawnscope_data::rows::Origin;

/// Commands with times of their own. All others share one.
const MAX_COMMANDS: usize = 1000;

/// Critical time in nanoseconds, by the command of the launches.
#[derive(Clone, Debug, Default)]
pub struct CriticalTimes(HashMap<Vec<u8>, f64>);

impl CriticalTimes {
    /// Returns the time of a command. `None` if nothing waited for a launch of it.
    #[must_use]
    pub fn of(&self, command: &[u8]) -> Option<Nanos> {
        self.0.get(command).map(|time| Nanos(*time as u64))
    }

    fn total(&self) -> f64 {
        self.0.values().sum()
    }

    fn add(&mut self, command: Vec<u8>, time: f64) {
        let has_place = self.0.len() < MAX_COMMANDS || self.0.contains_key(&command);
        let name = if has_place { command } else { OTHER.into() };
        *self.0.entry(name).or_default() += time;
    }

    /// Adds a part of other times.
    fn merge(&mut self, other: &CriticalTimes, part: f64) {
        for (command, time) in &other.0 {
            self.add(command.clone(), time * part);
        }
    }
}

/// Returns the part of a life until `at` in which the parent waited at most for this process.
fn part(window: Nanos, life: Nanos) -> f64 {
    if life.0 == 0 {
        1.0
    } else {
        (window.0 as f64 / life.0 as f64).min(1.0)
    }
}

impl LiveLaunches {
    /// Returns critical time by command, as far as it is known now. What a process has waited for counts if its own parent waits for it, and
    /// its parent: of the processes that run side by side, the one launched first.
    #[must_use]
    pub fn critical_times(&self) -> CriticalTimes {
        let mut times = self.critical.clone();
        let mut first_children: HashMap<LaunchId, &Process> = HashMap::new();
        let mut roots = Vec::new();
        for process in self.processes.values() {
            match process.parent().filter(|parent| self.processes.contains_key(parent)) {
                None => roots.push(process),
                Some(parent) => {
                    let first = first_children.entry(parent).or_insert(process);
                    if process.id() < first.id() {
                        *first = process;
                    }
                }
            }
        }
        for root in roots {
            let (mut process, mut share) = (root, 1.0);
            loop {
                times.merge(&process.critical, share);
                let Some(child) = first_children.get(&process.id()) else {
                    break;
                };
                share *= self.part_of_running(process, child);
                process = child;
            }
        }
        times
    }

    fn part_of_running(&self, parent: &Process, child: &Process) -> f64 {
        match child.birth().filter(|_| !child.is_of_earlier) {
            Some(birth) => part(self.latest.since(parent.window_begins(birth)), self.latest.since(birth)),
            None => 1.0,
        }
    }

    /// Notes how long parents waited for the launches that they have reaped, in the order of these reapings.
    pub(super) fn note_waits(&mut self, finished: &[LaunchId]) {
        let reaping = |id: &LaunchId| Some((self.processes.get(id)?.reaped()?, *id));
        let mut reaped: Vec<(Nanos, LaunchId)> = finished.iter().filter_map(reaping).collect();
        reaped.sort_unstable_by_key(|(at, id)| (*at, *id));
        for (at, id) in reaped {
            self.note_wait(at, id);
        }
    }

    fn note_wait(&mut self, at: Nanos, id: LaunchId) {
        let Some(child) = self.processes.get_mut(&id) else {
            return;
        };
        let Some((birth, parent)) = child.birth().zip(child.parent()) else {
            return;
        };
        let (label, below) = (child.label(), std::mem::take(&mut child.critical));
        let Some(parent) = self.processes.get_mut(&parent) else {
            return;
        };
        let window = at.since(parent.window_begins(birth));
        parent.last_reaping = Some(at);
        parent.works_at(at);
        let mut times = CriticalTimes::default();
        times.merge(&below, part(window, at.since(birth)));
        times.add(label, (window.0 as f64 - times.total()).max(0.0));
        parent.critical.merge(&times, 1.0);
    }

    /// Keeps what a process has waited for that ends without a reaping: that of the command, and of a process whose parent has ended. A parent
    /// that is there did not wait for it, unless its reaping is unknown because the process began in an earlier recording.
    pub(super) fn keep_critical(&mut self, ended: &mut Process) {
        let mut times = std::mem::take(&mut ended.critical);
        if ended.row.origin == Origin::Command
            && let Some((birth, end)) = ended.birth().zip(ended.row.zombie).filter(|_| !ended.is_of_earlier)
        {
            times.add(ended.label(), (end.since(birth).0 as f64 - times.total()).max(0.0));
        }
        match ended.parent().and_then(|parent| self.processes.get_mut(&parent)) {
            None => self.critical.merge(&times, 1.0),
            Some(parent) if ended.is_of_earlier => parent.critical.merge(&times, 1.0),
            Some(_) => {}
        }
    }
}
