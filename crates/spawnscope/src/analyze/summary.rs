//! Sums over many launches: phases, counts, tax. One `Summary` serves the whole recording and each row of its table.

use super::Origin;
use super::critical_path::{Charges, CriticalPath};
use super::launch::Launch;
use super::phases::{Phase, PhaseTimes};
use super::tree::Forest;
use crate::event::Nanos;

/// Sums over a set of launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Launches.
    pub count: u64,
    /// Wall time from each parent's call to the reaping.
    pub total: Nanos,
    /// Launches whose total is known.
    pub timed: u64,
    /// Wall time in everything but `run`; `None` when no such phase is known.
    pub tax: Option<Nanos>,
    /// Their time on the critical path; `None` when the path is not known.
    pub critical: Option<Nanos>,
    /// The part of it that is everything but `run`.
    pub critical_tax: Option<Nanos>,
    /// Wall time by phase.
    pub phases: PhaseSums,
    /// CPU time by phase.
    pub cpu_phases: PhaseSums,
    /// CPU time; `None` when no launch's is known.
    pub cpu: Option<Nanos>,
    /// `execve` calls that failed.
    pub failed_execs: u64,
    /// Launches that ran no program of their own.
    pub forks_without_exec: u64,
    /// Launches still running at the end.
    pub unfinished: u64,
    /// Launches whose creation was lost.
    pub orphans: u64,
}

impl Summary {
    /// Counts one more launch, the one at `index`.
    pub(super) fn add(&mut self, forest: &Forest<'_>, index: usize, path: Option<&CriticalPath>) {
        let launch = &forest.launches[index];
        self.count += 1;
        if let Some(total) = launch.total(forest.end) {
            self.timed += 1;
            self.total.0 += total.0;
        }
        add_known(&mut self.tax, launch.tax());
        let charges = path.map(|path| &path.launches[index]);
        add_known(&mut self.critical, charges.map(Charges::total));
        add_known(&mut self.critical_tax, charges.map(Charges::tax));
        add_known(&mut self.cpu, launch.cpu.get());
        self.phases.add(&launch.phases, |phase| is_owed(launch, phase));
        self.cpu_phases.add(&launch.cpu_phases, |_| true);
        self.failed_execs += forest.failed_execs(index).len() as u64;
        self.forks_without_exec += u64::from(launch.is_fork_without_exec());
        self.unfinished += u64::from(launch.is_unfinished());
        self.orphans += u64::from(launch.origin == Origin::Orphan);
    }

    /// Mean wall time of a launch; `None` when no launch's is known.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.timed).map(Nanos)
    }
}

/// Whether this launch could have had that phase: the command is made, held until its exec and reaped by the recorder,
/// which counts for nothing, and what still runs has not ended.
fn is_owed(launch: &Launch<'_>, phase: Phase) -> bool {
    let is_recorders = matches!(phase, Phase::Create | Phase::Queue | Phase::Setup | Phase::Reap);
    let by_recorder = launch.origin == Origin::Command && is_recorders;
    let yet_to_come = launch.is_unfinished() && matches!(phase, Phase::Teardown | Phase::Reap);
    !by_recorder && !yet_to_come
}

/// What is known of one phase over a set of launches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseSum {
    /// Sum over the launches where it is known; `None` when it is unknown for all. Launches without this phase add zero.
    pub time: Option<Nanos>,
    /// Launches that had this phase, its length being known.
    pub known: u64,
    /// Launches that had this phase without its length being known.
    pub unknown: u64,
}

impl PhaseSum {
    /// Mean over the launches that had this phase and where it is known.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        self.time?.0.checked_div(self.known).map(Nanos)
    }
}

/// Sums by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseSums([PhaseSum; 8]);

impl PhaseSums {
    /// What is known of one phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> PhaseSum {
        self.0[phase as usize]
    }

    /// Phases with what is known of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, PhaseSum)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// The phase that took longest; `None` when all that is known is nothing.
    #[must_use]
    pub fn largest(&self) -> Option<(Phase, Nanos)> {
        let spent = self
            .iter()
            .filter_map(|(phase, sum)| Some((phase, sum.time.filter(|time| time.0 > 0)?)));
        spent.max_by_key(|(_, time)| *time)
    }

    fn add(&mut self, times: &PhaseTimes, is_owed: impl Fn(Phase) -> bool) {
        for (phase, time) in times.iter() {
            let sum = &mut self.0[phase as usize];
            add_known(&mut sum.time, time);
            sum.known += u64::from(time.is_some() && times.has(phase));
            sum.unknown += u64::from(time.is_none() && is_owed(phase));
        }
    }
}

fn add_known(sum: &mut Option<Nanos>, more: Option<Nanos>) {
    if let Some(more) = more {
        *sum = Some(Nanos(sum.unwrap_or_default().0 + more.0));
    }
}
