//! Launches while they are recorded: joins the rows that a recorder has just written, keeps the
//! running processes, and returns the launches that have ended. `ended` divides them into phases,
//! with the same code as reports. Memory use is bounded by the number of processes.

mod board;
mod critical;
mod ended;
mod metrics;
mod process;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use board::{CommandRow, LiveBoard, ProcessRow, Snapshot};
use critical::CriticalTimes;
pub use ended::EndedLaunch;
pub use metrics::{CommandMetrics, Histogram, LaunchMetrics, OTHER};
use process::Process;

use spawnscope_data::event::{LaunchId, Missing, Nanos};
use spawnscope_data::rows::{LaunchRow, NewRows, Origin, TextId};

/// The running processes, according to the rows written so far.
#[derive(Debug, Default)]
pub struct LiveLaunches {
    /// What the collector cannot record. This determines which phases are known.
    missing: Vec<Missing>,
    texts: HashMap<TextId, Arc<[u8]>>,
    oldest_text: TextId,
    processes: HashMap<LaunchId, Process>,
    started: u64,
    /// Launches that have ended and are not expected to be reaped, but may still have late events.
    ended_unreaped: HashSet<LaunchId>,
    /// The number of the recording that the latest rows belong to, if a recorder writes several
    /// consecutive ones.
    recording: u32,
    /// The time of the latest creation or reaping in this recording.
    latest: Nanos,
    /// Critical time that does not belong to a running process.
    critical: CriticalTimes,
}

impl LiveLaunches {
    /// Creates an empty set. `missing` lists what the collector cannot record on this machine.
    pub fn new(missing: Vec<Missing>) -> LiveLaunches {
        LiveLaunches { missing, ..LiveLaunches::default() }
    }

    /// Applies the rows of a batch. Returns the launches that have ended.
    pub fn apply(&mut self, rows: NewRows) -> Vec<EndedLaunch> {
        let mut gone = Vec::new();
        if rows.recording != self.recording {
            self.recording = rows.recording;
            (self.texts, self.oldest_text) = (HashMap::new(), TextId(0));
            gone = self.begin_next_recording(&rows.launches);
        }
        let instants = rows.launches.iter().flat_map(|row| [row.created, row.reaped]);
        self.latest = instants.flatten().fold(self.latest, Nanos::max);
        self.texts.extend(rows.texts);
        let changed: Vec<LaunchId> = rows.launches.iter().map(|row| row.id).collect();
        let mut new: Vec<LaunchId> = rows.launches.into_iter().filter_map(|row| self.add_or_update(row)).collect();
        for (ordinal, row) in rows.execs {
            let Some(process) = self.processes.get_mut(&row.launch) else { continue };
            let [path, argv] = [row.path, row.argv].map(|id| self.texts.get(&id).cloned().unwrap_or_default());
            process.add_exec((rows.recording, ordinal), path, argv, row);
        }
        // Ids ascend in the order of creation, so a parent gets its name before its children.
        new.sort_unstable();
        new.into_iter().for_each(|id| self.relate_to_parent(id));
        let mut ended = self.remove_ended(&changed, &rows.finished);
        ended.append(&mut gone);
        if rows.oldest_text > self.oldest_text {
            self.oldest_text = rows.oldest_text;
            self.texts.retain(|id, _| *id >= rows.oldest_text);
        }
        ended::join_ended(&ended, &self.missing)
    }

    /// Returns the number of launches that have started, without launches whose creation was lost.
    pub fn started(&self) -> u64 {
        self.started
    }

    pub fn running(&self) -> usize {
        self.processes.values().filter(|process| process.is_launch()).count()
    }

    /// Begins the next recording. Its first rows contain every running process, so all other
    /// processes have ended. Returns the launches among those that have ended.
    fn begin_next_recording(&mut self, running: &[LaunchRow]) -> Vec<Process> {
        self.processes.values_mut().for_each(Process::enter_next_recording);
        self.latest = Nanos(0);
        self.ended_unreaped.clear();
        let running: HashSet<LaunchId> = running.iter().map(|row| row.id).collect();
        let gone = self.processes.extract_if(|id, _| !running.contains(id));
        let mut gone: Vec<Process> = gone.map(|(_, process)| process).collect();
        gone.iter_mut().for_each(|process| self.pass_on_critical_time(process));
        gone.retain(Process::is_launch);
        gone
    }

    /// Stores a new or changed row. Returns its id if the launch is new.
    fn add_or_update(&mut self, row: LaunchRow) -> Option<LaunchId> {
        let id = row.id;
        if let Some(process) = self.processes.get_mut(&id) {
            process.update(row);
            return None;
        }
        if row.origin == Origin::Orphan || self.ended_unreaped.contains(&id) {
            // The creation of the launch was lost, or it has ended and this is a late event.
            return None;
        }
        self.started += u64::from(row.origin != Origin::Existed);
        self.processes.insert(id, Process::new(row));
        Some(id)
    }

    /// Removes the processes that have ended, and returns the launches among them.
    fn remove_ended(&mut self, changed: &[LaunchId], finished: &[LaunchId]) -> Vec<Process> {
        self.add_waits(finished);
        let mut ended = Vec::new();
        for id in finished {
            ended.extend(self.processes.remove(id));
            self.ended_unreaped.remove(id);
        }
        for id in changed {
            if self.processes.get(id).is_some_and(Process::has_ended_unreaped) {
                ended.extend(self.processes.remove(id));
                self.ended_unreaped.insert(*id);
            }
        }
        ended.iter_mut().for_each(|process| self.pass_on_critical_time(process));
        ended.retain(Process::is_launch);
        ended
    }

    /// Sets the program name of a new process, and updates its parent.
    fn relate_to_parent(&mut self, id: LaunchId) {
        let Some(process) = self.processes.get(&id) else { return };
        let own = process.row.name.and_then(|name| self.texts.get(&name)).cloned();
        let created = process.row.created;
        let birth = process.row.create.or(created);
        let parent = process.row.parent.and_then(|parent| self.processes.get(&parent));
        let name = own.or_else(|| parent.map(|parent| parent.program_at(birth)));
        let parent = process.row.parent.filter(|_| process.is_launch());
        if let Some(parent) = parent.and_then(|parent| self.processes.get_mut(&parent)) {
            parent.launched += 1;
            created.inspect(|at| parent.extend_work(*at));
        }
        if let (Some(process), Some(name)) = (self.processes.get_mut(&id), name) {
            process.birth_program = name;
        }
    }
}

#[cfg(test)]
mod tests;
