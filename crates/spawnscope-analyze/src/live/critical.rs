//! Estimates critical time while recording, because the critical path is known only at the end. A
//! parent can wait for a launch from the launch's birth until it reaps the launch, but not before
//! its previous reaping. This span is critical time. One part of it belongs to the launches that
//! this launch waited for: their critical time, multiplied by the share of the launch's lifetime
//! that the span covers. The rest belongs to the launch itself.

use std::collections::HashMap;

use super::{LiveLaunches, OTHER, Process};
use spawnscope_data::event::{LaunchId, Nanos};
use spawnscope_data::rows::Origin;

/// Maximum number of commands with a time of their own. All other commands share one time.
const MAX_COMMANDS: usize = 1000;

/// Critical time in nanoseconds, by the command of the launches.
#[derive(Clone, Debug, Default)]
pub(super) struct CriticalTimes(HashMap<Vec<u8>, f64>);

impl CriticalTimes {
    /// Returns the time of a command. `None` if nothing waited for a launch of this command.
    pub(super) fn get(&self, command: &[u8]) -> Option<Nanos> {
        self.0.get(command).map(|time| Nanos(*time as u64))
    }

    fn total(&self) -> f64 {
        self.0.values().sum()
    }

    fn add(&mut self, command: Vec<u8>, time: f64) {
        let has_row = self.0.len() < MAX_COMMANDS || self.0.contains_key(&command);
        let name = if has_row { command } else { OTHER.into() };
        *self.0.entry(name).or_default() += time;
    }

    fn merge(&mut self, other: &CriticalTimes, share: f64) {
        for (command, time) in &other.0 {
            self.add(command.clone(), time * share);
        }
    }
}

/// Returns the share of a process's lifetime in which its parent can have waited for it.
fn awaited_share(awaited: Nanos, lifetime: Nanos) -> f64 {
    if lifetime.0 == 0 { 1.0 } else { (awaited.0 as f64 / lifetime.0 as f64).min(1.0) }
}

impl LiveLaunches {
    /// Returns the critical time of each command so far. A parent is assumed to wait for the one of
    /// its running children that was launched first. The waits of a running process count if all
    /// its ancestors are assumed to wait for it.
    pub(super) fn critical_times(&self) -> CriticalTimes {
        let mut times = self.critical.clone();
        let mut first_children: HashMap<LaunchId, &Process> = HashMap::new();
        let mut roots = Vec::new();
        for process in self.processes.values() {
            match process.row.parent.filter(|parent| self.processes.contains_key(parent)) {
                None => roots.push(process),
                Some(parent) => {
                    let first = first_children.entry(parent).or_insert(process);
                    if process.row.id < first.row.id {
                        *first = process;
                    }
                }
            }
        }
        for root in roots {
            let (mut process, mut share) = (root, 1.0);
            loop {
                times.merge(&process.critical, share);
                let Some(child) = first_children.get(&process.row.id) else { break };
                share *= self.running_share(process, child);
                process = child;
            }
        }
        times
    }

    /// Returns the share of a running child's lifetime in which its parent can have waited for it.
    fn running_share(&self, parent: &Process, child: &Process) -> f64 {
        match child.birth().filter(|_| !child.began_in_earlier_recording) {
            Some(birth) => awaited_share(self.latest.since(parent.earliest_wait(birth)), self.latest.since(birth)),
            None => 1.0,
        }
    }

    /// Adds how long parents waited for the launches that they have reaped, in the order of
    /// reaping.
    pub(super) fn add_waits(&mut self, finished: &[LaunchId]) {
        let mut reaped: Vec<(Nanos, LaunchId)> =
            finished.iter().filter_map(|id| Some((self.processes.get(id)?.reaped()?, *id))).collect();
        reaped.sort_unstable_by_key(|(at, id)| (*at, *id));
        for (at, id) in reaped {
            self.add_wait(at, id);
        }
    }

    fn add_wait(&mut self, at: Nanos, id: LaunchId) {
        let Some(child) = self.processes.get_mut(&id) else { return };
        let Some((birth, parent)) = child.birth().zip(child.row.parent) else { return };
        let (label, below) = (child.label(), std::mem::take(&mut child.critical));
        let Some(parent) = self.processes.get_mut(&parent) else { return };
        let awaited = at.since(parent.earliest_wait(birth));
        parent.last_reaping = Some(at);
        parent.extend_work(at);
        let mut times = CriticalTimes::default();
        times.merge(&below, awaited_share(awaited, at.since(birth)));
        times.add(label, (awaited.0 as f64 - times.total()).max(0.0));
        parent.critical.merge(&times, 1.0);
    }

    /// Passes on the critical time of a process that ended without being reaped. If its parent has
    /// ended or is not recorded, the time counts in full. If its parent still runs, the parent did
    /// not wait for the process, so the time is dropped. But if the process began in an earlier
    /// recording, its reaping is unknown, and the parent gets the time.
    pub(super) fn pass_on_critical_time(&mut self, ended: &mut Process) {
        let mut times = std::mem::take(&mut ended.critical);
        if ended.row.origin == Origin::Command
            && let Some((birth, end)) =
                ended.birth().zip(ended.row.zombie).filter(|_| !ended.began_in_earlier_recording)
        {
            times.add(ended.label(), (end.since(birth).0 as f64 - times.total()).max(0.0));
        }
        match ended.row.parent.and_then(|parent| self.processes.get_mut(&parent)) {
            None => self.critical.merge(&times, 1.0),
            Some(parent) if ended.began_in_earlier_recording => parent.critical.merge(&times, 1.0),
            Some(_) => {}
        }
    }
}
