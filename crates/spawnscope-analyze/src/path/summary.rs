//! Sums over launches: phases, counts, tax. One type, `Summary`, is used for the whole recording
//! and for each row of the table. Also finds whether the tax of launches overlaps in time.

use crate::model::launch::Launch;
use crate::model::phases::{Phase, PhaseTimes};
use crate::model::tree::Forest;
use crate::path::critical_path::{Charges, CriticalPath};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub count: u64,
    /// Summed wall time from the parent's call to the reaping.
    pub total: Nanos,
    /// Number of launches with a known wall time.
    pub timed: u64,
    /// Wall time in all phases except `run`. `None` when no such phase is known.
    pub tax: Option<Nanos>,
    /// Time on the critical path. `None` when the path is unknown.
    pub critical: Option<Nanos>,
    /// The part of `critical` in all phases except `run`.
    pub critical_tax: Option<Nanos>,
    pub phases: PhaseSums,
    pub cpu_phases: PhaseSums,
    /// CPU time. `None` when it is unknown for all launches.
    pub cpu: Option<Nanos>,
    pub failed_execs: u64,
    pub forks_without_exec: u64,
    /// Number of launches that were still running at the end.
    pub unfinished: u64,
    /// Number of launches without a recorded creation.
    pub orphans: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, forest: &Forest<'_>, index: usize, path: Option<&CriticalPath>) {
        let launch = &forest.launches[index];
        self.count += 1;
        if let Some(total) = launch.total(forest.end) {
            self.timed += 1;
            self.total.0 += total.0;
        }
        let tax = launch.tax();
        add_known(&mut self.tax, tax);
        let charges = path.map(|path| &path.launches[index]);
        add_known(&mut self.critical, charges.map(Charges::total));
        // The path includes the overhead of recording, which `tax` does not.
        let critical_tax = charges.map(|charges| charges.tax().min(tax.unwrap_or(Nanos(u64::MAX))));
        add_known(&mut self.critical_tax, critical_tax);
        add_known(&mut self.cpu, launch.cpu.get());
        self.phases.add(&launch.phases, |phase| is_expected(launch, phase));
        self.cpu_phases.add(&launch.cpu_phases, |_| true);
        self.failed_execs += forest.failed_execs(index).len() as u64;
        self.forks_without_exec += u64::from(launch.is_fork_without_exec());
        self.unfinished += u64::from(launch.is_unfinished());
        self.orphans += u64::from(launch.origin == Origin::Orphan);
    }

    pub(crate) fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.total.0 += other.total.0;
        self.timed += other.timed;
        add_known(&mut self.tax, other.tax);
        add_known(&mut self.critical, other.critical);
        add_known(&mut self.critical_tax, other.critical_tax);
        add_known(&mut self.cpu, other.cpu);
        self.phases.merge(&other.phases);
        self.cpu_phases.merge(&other.cpu_phases);
        self.failed_execs += other.failed_execs;
        self.forks_without_exec += other.forks_without_exec;
        self.unfinished += other.unfinished;
        self.orphans += other.orphans;
    }

    /// Returns the mean wall time of a launch. `None` when it is unknown for all.
    pub fn mean(&self) -> Option<Nanos> {
        self.total.0.checked_div(self.timed).map(Nanos)
    }
}

/// Whether an unknown duration of this phase counts as missing. The phases in which the recorder
/// creates, holds or reaps the command do not count, nor do the last phases of an unfinished
/// launch.
fn is_expected(launch: &Launch<'_>, phase: Phase) -> bool {
    let is_phase_of_recorder = matches!(phase, Phase::Create | Phase::Queue | Phase::Setup | Phase::Reap);
    let by_recorder = launch.origin == Origin::Command && is_phase_of_recorder;
    let is_not_reached = launch.is_unfinished() && matches!(phase, Phase::Teardown | Phase::Reap);
    !by_recorder && !is_not_reached
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseSum {
    /// Sum of the known durations. `None` when the duration is unknown for all launches. Launches
    /// without this phase add zero.
    pub time: Option<Nanos>,
    /// Number of launches with this phase and a known duration.
    pub known: u64,
    /// Number of launches with this phase and an unknown duration.
    pub unknown: u64,
}

impl PhaseSum {
    /// Returns the mean over the launches with this phase and a known duration.
    pub fn mean(&self) -> Option<Nanos> {
        self.time?.0.checked_div(self.known).map(Nanos)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhaseSums([PhaseSum; 8]);

impl PhaseSums {
    pub fn get(&self, phase: Phase) -> PhaseSum {
        self.0[phase as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Phase, PhaseSum)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// Returns the phase that took longest. `None` when no phase has a known duration above zero.
    pub fn largest(&self) -> Option<(Phase, Nanos)> {
        let spent = self.iter().filter_map(|(phase, sum)| Some((phase, sum.time.filter(|time| time.0 > 0)?)));
        spent.max_by_key(|(_, time)| *time)
    }

    fn merge(&mut self, other: &PhaseSums) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            add_known(&mut sum.time, more.time);
            sum.known += more.known;
            sum.unknown += more.unknown;
        }
    }

    fn add(&mut self, times: &PhaseTimes, is_expected: impl Fn(Phase) -> bool) {
        for (phase, time) in times.iter() {
            let sum = &mut self.0[phase as usize];
            add_known(&mut sum.time, time);
            sum.known += u64::from(time.is_some() && times.has(phase));
            sum.unknown += u64::from(time.is_none() && is_expected(phase));
        }
    }
}

pub(crate) fn add_known(sum: &mut Option<Nanos>, more: Option<Nanos>) {
    if let Some(more) = more {
        *sum = Some(Nanos(sum.unwrap_or_default().0 + more.0));
    }
}

/// Minimum overlap, as a share of the tax, that is reported. Smaller overlaps are normal, because a
/// child's phases slightly overlap its parent's.
const MIN_OVERLAP: f64 = 0.05;

/// Whether the summed tax of all launches is clearly longer than the time in which any tax
/// occurred.
pub(crate) fn tax_overlaps(forest: &Forest<'_>) -> bool {
    let launches = forest.launches.iter().filter(|launch| launch.is_launch());
    let mut spans: Vec<(Nanos, Nanos)> = launches.flat_map(|launch| tax_spans(launch, forest.end)).collect();
    spans.sort_unstable();
    let (mut sum_ns, mut covered_ns, mut latest) = (0, 0, Nanos(0));
    for (start, end) in spans {
        sum_ns += end.since(start).0;
        covered_ns += end.since(start.max(latest)).0;
        latest = latest.max(end);
    }
    (sum_ns - covered_ns) as f64 > MIN_OVERLAP * sum_ns as f64
}

/// Returns the intervals of a launch outside of `run`.
fn tax_spans(launch: &Launch<'_>, recording_end: Nanos) -> Vec<(Nanos, Nanos)> {
    let mut pieces = launch.pieces(Some(recording_end));
    pieces.retain(|piece| piece.phase != Phase::Run && piece.end > piece.start);
    let mut spans: Vec<(Nanos, Nanos)> = Vec::with_capacity(2);
    for piece in pieces {
        match spans.last_mut() {
            Some((_, end)) if *end == piece.start => *end = piece.end,
            _ => spans.push((piece.start, piece.end)),
        }
    }
    spans
}
