//! Launches while they are recorded: joins the rows that a recorder has just written, keeps the processes that run, and returns the launches
//! that have ended. `ended` divides them into phases, with the code that reports use. Memory is bounded by the number of processes.

mod board;
mod critical;
mod ended;
mod metrics;
mod process;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use board::{CommandLine, LiveBoard, ProcessLine, Snapshot};
pub use critical::CriticalTimes;
pub use ended::EndedLaunch;
pub use metrics::{BUCKETS, CommandMetrics, Histogram, LaunchMetrics, OTHER};
pub use process::Process;

use spawnscope_data::event::{LaunchId, Missing, Nanos};
use spawnscope_data::rows::{LaunchRow, NewRows, Origin, TextId};

/// The processes that run, as the rows written so far say.
#[derive(Debug)]
pub struct LiveLaunches {
    /// What the collector cannot see. This determines which phases are known.
    missing: Vec<Missing>,
    texts: HashMap<TextId, Arc<[u8]>>,
    oldest_text: TextId,
    processes: HashMap<LaunchId, Process>,
    started: u64,
    /// Launches that have ended, but of which the recorder still expects events.
    ended_unreaped: HashSet<LaunchId>,
    /// Which of several consecutive recordings the latest rows belong to.
    recording: u32,
    /// The latest instant of its rows.
    latest: Nanos,
    /// Critical time that no running process has.
    critical: CriticalTimes,
}

impl LiveLaunches {
    /// `missing` is what the collector cannot see on this machine.
    #[must_use]
    pub fn new(missing: Vec<Missing>) -> LiveLaunches {
        LiveLaunches {
            missing,
            texts: HashMap::new(),
            oldest_text: TextId(0),
            processes: HashMap::new(),
            started: 0,
            ended_unreaped: HashSet::new(),
            recording: 0,
            latest: Nanos(0),
            critical: CriticalTimes::default(),
        }
    }

    /// Applies the rows of a batch. Returns the launches that have ended.
    pub fn apply(&mut self, rows: NewRows) -> Vec<EndedLaunch> {
        let mut gone = Vec::new();
        if rows.recording != self.recording {
            self.recording = rows.recording;
            (self.texts, self.oldest_text) = (HashMap::new(), TextId(0));
            gone = self.begin_next(&rows.launches);
        }
        let instants = rows.launches.iter().flat_map(|row| [row.created, row.reaped]);
        self.latest = instants.flatten().fold(self.latest, Nanos::max);
        self.texts.extend(rows.texts);
        let changed: Vec<LaunchId> = rows.launches.iter().map(|row| row.id).collect();
        let mut new: Vec<LaunchId> = rows
            .launches
            .into_iter()
            .filter_map(|row| self.take_launch(row))
            .collect();
        for (ordinal, row) in rows.execs {
            let Some(process) = self.processes.get_mut(&row.launch) else {
                continue;
            };
            let text = |id: TextId| self.texts.get(&id).cloned().unwrap_or_default();
            process.take_exec((rows.recording, ordinal), text(row.path), text(row.argv), row);
        }
        // Ids ascend in the order of creation, so a parent gets its name before its children.
        new.sort_unstable();
        new.into_iter().for_each(|id| self.name(id));
        let mut ended = self.take_ended(&changed, &rows.finished);
        ended.append(&mut gone);
        if rows.oldest_text > self.oldest_text {
            self.oldest_text = rows.oldest_text;
            self.texts.retain(|id, _| *id >= rows.oldest_text);
        }
        ended::ended(&ended, &self.missing)
    }

    /// Returns the processes that run, in no order.
    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.values()
    }

    /// Returns a process that runs.
    #[must_use]
    pub fn process(&self, id: LaunchId) -> Option<&Process> {
        self.processes.get(&id)
    }

    /// Returns the number of launches that began, without those whose creation was lost.
    #[must_use]
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Returns the number of launches that have not ended.
    #[must_use]
    pub fn running(&self) -> usize {
        self.processes.values().filter(|process| process.is_launch()).count()
    }

    /// Begins the next recording, whose first rows contain every process that lives. Returns the launches that do not.
    fn begin_next(&mut self, living: &[LaunchRow]) -> Vec<Process> {
        self.processes.values_mut().for_each(Process::live_on);
        self.latest = Nanos(0);
        self.ended_unreaped.clear();
        let living: HashSet<LaunchId> = living.iter().map(|row| row.id).collect();
        let gone = self.processes.extract_if(|id, _| !living.contains(id));
        let mut gone: Vec<Process> = gone.map(|(_, process)| process).collect();
        gone.iter_mut().for_each(|process| self.keep_critical(process));
        gone.retain(Process::is_launch);
        gone
    }

    /// Takes a new or changed row. Returns its id if it is new.
    fn take_launch(&mut self, row: LaunchRow) -> Option<LaunchId> {
        let id = row.id;
        if let Some(process) = self.processes.get_mut(&id) {
            process.update(row);
            return None;
        }
        if row.origin == Origin::Orphan || self.ended_unreaped.contains(&id) {
            // Its creation was lost, or it has ended and this is a late event.
            return None;
        }
        self.started += u64::from(row.origin != Origin::Existed);
        self.processes.insert(id, Process::new(row));
        Some(id)
    }

    /// Removes the processes that have ended, and returns the launches among them.
    fn take_ended(&mut self, changed: &[LaunchId], finished: &[LaunchId]) -> Vec<Process> {
        self.note_waits(finished);
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
        ended.iter_mut().for_each(|process| self.keep_critical(process));
        ended.retain(Process::is_launch);
        ended
    }

    /// Sets the name of the program that a new process started as.
    fn name(&mut self, id: LaunchId) {
        let Some(process) = self.processes.get(&id) else {
            return;
        };
        let own = process.row.name.and_then(|name| self.texts.get(&name)).cloned();
        let created = process.row.created;
        let birth = process.row.create.or(created);
        let parent = process.row.parent.and_then(|parent| self.processes.get(&parent));
        let name = own.or_else(|| parent.map(|parent| parent.program_at(birth)));
        let parent = process.row.parent.filter(|_| process.is_launch());
        if let Some(parent) = parent.and_then(|parent| self.processes.get_mut(&parent)) {
            parent.launched += 1;
            created.inspect(|at| parent.works_at(*at));
        }
        let root = parent
            .and_then(|parent| self.processes.get(&parent))
            .filter(|parent| parent.is_launch())
            .map(|parent| parent.root);
        if let (Some(process), Some(root)) = (self.processes.get_mut(&id), root) {
            process.root = root;
        }
        if let (Some(process), Some(name)) = (self.processes.get_mut(&id), name) {
            process.born_as = name;
        }
    }
}

#[cfg(test)]
mod tests;
