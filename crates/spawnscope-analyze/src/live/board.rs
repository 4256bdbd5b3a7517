//! What a live view shows: the commands launched so far with their costs, and the tree of running
//! processes. Memory use is bounded by the number of processes and by a maximum number of commands.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{EndedLaunch, LiveLaunches, OTHER, Process};
use crate::model::phases::Phase;
use crate::path::summary::add_known;
use spawnscope_data::event::{LaunchId, Missing, Nanos, Pid};
use spawnscope_data::rows::NewRows;

/// Maximum number of commands with a row of their own. All other commands share one row.
const MAX_COMMANDS: usize = 1000;
/// Number of latest launches that are kept for each command.
const MAX_RECENT: usize = 8;

#[derive(Debug)]
pub struct LiveBoard {
    live: LiveLaunches,
    commands: HashMap<Vec<u8>, Sums>,
}

#[derive(Debug, Default)]
struct Sums {
    count: u64,
    failures: u64,
    tax: Option<Nanos>,
    phases: [Nanos; Phase::ALL.len()],
    recent: VecDeque<Arc<EndedLaunch>>,
}

#[derive(Clone, Debug)]
pub struct CommandRow {
    /// The name of the command: `(bash)` for forks of bash.
    pub command: Vec<u8>,
    /// Number of launches that have ended.
    pub count: u64,
    pub running: u64,
    pub failures: u64,
    /// Launch tax of the launches that have ended. `None` when it is unknown for all of them.
    pub tax: Option<Nanos>,
    /// Estimated critical time of the launches that have ended. `None` if nothing waited for any of
    /// them.
    pub critical: Option<Nanos>,
    /// The phase other than `run` that took longest.
    pub largest: Option<Phase>,
    /// The latest launches, newest first.
    pub recent: Vec<Arc<EndedLaunch>>,
}

#[derive(Clone, Debug)]
pub struct ProcessRow {
    pub id: LaunchId,
    pub parent: Option<LaunchId>,
    /// Number of its ancestors that are listed.
    pub depth: usize,
    pub pid: Option<Pid>,
    /// The name that it is counted under.
    pub command: Vec<u8>,
    /// The arguments of its last exec, each terminated by NUL.
    pub argv: Vec<u8>,
    /// When it began. `None` if it existed before.
    pub birth: Option<Nanos>,
    pub launched: u64,
}

/// Everything that a live view shows at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub started: u64,
    /// Number of launches that have not ended.
    pub running: u64,
    /// The commands, in no particular order.
    pub commands: Vec<CommandRow>,
    /// Running launches, and processes that existed before and have launched others. Parents come
    /// before their children.
    pub processes: Vec<ProcessRow>,
}

impl LiveBoard {
    /// Creates an empty board. `missing` lists what the collector cannot record on this machine.
    pub fn new(missing: Vec<Missing>) -> LiveBoard {
        LiveBoard { live: LiveLaunches::new(missing), commands: HashMap::new() }
    }

    pub fn apply(&mut self, rows: NewRows) {
        for launch in self.live.apply(rows) {
            let has_row = self.commands.len() < MAX_COMMANDS || self.commands.contains_key(&launch.command);
            let name = if has_row { &launch.command } else { OTHER.as_bytes() };
            self.commands.entry(name.to_vec()).or_default().add(launch);
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut running: HashMap<Vec<u8>, u64> = HashMap::new();
        for process in self.live.processes.values().filter(|process| process.is_launch()) {
            *running.entry(process.label()).or_default() += 1;
        }
        let mut commands: Vec<CommandRow> = self.commands.iter().map(|(name, sums)| sums.row(name)).collect();
        let critical = self.live.critical_times();
        for row in &mut commands {
            row.running = running.remove(&row.command).unwrap_or(0);
            row.critical = critical.get(&row.command);
        }
        let only_running =
            running.into_iter().map(|(command, running)| CommandRow { running, ..Sums::default().row(&command) });
        commands.extend(only_running);
        Snapshot {
            started: self.live.started(),
            running: self.live.running() as u64,
            commands,
            processes: self.processes(),
        }
    }

    /// Returns the processes, each after its parent, and siblings in the order of creation.
    fn processes(&self) -> Vec<ProcessRow> {
        let mut children: HashMap<Option<LaunchId>, Vec<&Process>> = HashMap::new();
        let shown = self.live.processes.values().filter(|process| process.is_launch() || process.launched > 0);
        for process in shown {
            // A parent that has ended is not listed.
            let parent = process.row.parent.filter(|parent| self.live.processes.contains_key(parent));
            children.entry(parent).or_default().push(process);
        }
        for siblings in children.values_mut() {
            // In descending order, because they are popped from the end.
            siblings.sort_unstable_by_key(|process| std::cmp::Reverse(process.row.id));
        }
        let mut pending = vec![children.remove(&None).unwrap_or_default()];
        let mut rows = Vec::new();
        while let Some(siblings) = pending.last_mut() {
            let Some(process) = siblings.pop() else {
                pending.pop();
                continue;
            };
            rows.push(ProcessRow {
                id: process.row.id,
                parent: process.row.parent,
                depth: pending.len() - 1,
                pid: process.row.pid,
                command: process.label(),
                argv: process.argv().to_vec(),
                birth: process.birth().filter(|_| process.is_launch()),
                launched: process.launched,
            });
            pending.extend(children.remove(&Some(process.row.id)));
        }
        rows
    }
}

impl Sums {
    fn add(&mut self, launch: EndedLaunch) {
        self.count += 1;
        self.failures += u64::from(launch.has_failed());
        add_known(&mut self.tax, launch.tax);
        for (phase, time) in launch.phases.iter().flat_map(|phases| phases.iter()) {
            self.phases[phase as usize].0 += time.unwrap_or_default().0;
        }
        self.recent.truncate(MAX_RECENT - 1);
        self.recent.push_front(Arc::new(launch));
    }

    fn row(&self, name: &[u8]) -> CommandRow {
        let largest = Phase::TAX.into_iter().max_by_key(|phase| self.phases[*phase as usize]);
        CommandRow {
            command: name.to_vec(),
            count: self.count,
            running: 0,
            failures: self.failures,
            tax: self.tax,
            critical: None,
            largest: largest.filter(|phase| self.phases[*phase as usize].0 > 0),
            recent: self.recent.iter().cloned().collect(),
        }
    }
}
