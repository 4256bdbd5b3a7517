//! The eight phases of a launch, and a duration for each. `pieces` computes the durations.

use crate::model::compact::CompactNumbers;
use spawnscope_data::event::Nanos;

spawnscope_data::named_enum! {
    /// One of the eight parts of a launch, in the order in which they happen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Phase {
        /// From the parent's call until the child exists. A fork copies the parent's page tables in
        /// this phase.
        Create = "create",
        /// The child waits for its first CPU.
        Queue = "queue",
        /// From the child's first run until it enters the first successful exec. If it launches
        /// other processes before, from the last of them on.
        Setup = "setup",
        /// Inside successful `execve` calls.
        Exec = "exec",
        Load = "load",
        Run = "run",
        /// From the beginning of the exit until the parent can reap the child.
        Teardown = "teardown",
        /// From the end of teardown until the parent's wait returns.
        Reap = "reap",
    }
}

impl Phase {
    /// The phases of the launch tax: all but `run`.
    pub const TAX: [Phase; 7] =
        [Phase::Create, Phase::Queue, Phase::Setup, Phase::Exec, Phase::Load, Phase::Teardown, Phase::Reap];

    /// The phases of the launch cost: those of the launch tax, without the waits for a CPU and for
    /// the parent.
    pub(crate) const COST: [Phase; 5] = [Phase::Create, Phase::Setup, Phase::Exec, Phase::Load, Phase::Teardown];
}

/// Maximum overhead of recording, as a share of a phase or of a stretch on the CPU.
pub(crate) const MAX_OVERHEAD_SHARE: f64 = 0.95;

/// The duration of each phase: `None` if it is unknown, zero if the launch has no such phase.
/// Durations are stored as nanoseconds plus two, to reserve a number for each of these cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes(CompactNumbers<8>);

const UNKNOWN: u64 = 0;
/// The stored number for a launch without this phase: without an exec it has neither `exec` nor
/// `load`.
const ABSENT: u64 = 1;
/// The stored number of a duration of zero.
const NO_TIME: u64 = 2;

impl PhaseTimes {
    /// Stores one duration for each phase. A launch does not have the phases in `absent`.
    pub(crate) fn new(durations: [Option<Nanos>; Phase::ALL.len()], absent: &[Phase]) -> PhaseTimes {
        let mut times = PhaseTimes::default();
        for (index, duration) in durations.into_iter().enumerate() {
            let number = duration.map_or(UNKNOWN, |span| span.0.saturating_add(NO_TIME));
            times.0.set(index, number);
        }
        for phase in absent {
            times.0.set(*phase as usize, ABSENT);
        }
        times
    }

    /// Returns the durations with `setup` added to `run`, and the duration of `setup` unknown.
    pub(crate) fn with_setup_in_run(&self) -> PhaseTimes {
        let mut times = self.clone();
        let both = self.get(Phase::Setup).zip(self.get(Phase::Run));
        let run = both.map_or(UNKNOWN, |(setup, run)| (setup.0 + run.0).saturating_add(NO_TIME));
        times.0.set(Phase::Setup as usize, UNKNOWN);
        times.0.set(Phase::Run as usize, run);
        times
    }

    /// Takes the time in which the collector stopped a process off the duration of a phase, which
    /// lasts at least as long as it used a CPU.
    pub(crate) fn take_off(&mut self, phase: Phase, stopped: Nanos, cpu: Option<Nanos>) {
        if let Some(span) = self.get(phase).filter(|_| self.has(phase)) {
            let rest = span.since(stopped).max(span.min(cpu.unwrap_or_default()));
            self.0.set(phase as usize, rest.0.saturating_add(NO_TIME));
        }
    }

    pub fn get(&self, phase: Phase) -> Option<Nanos> {
        match self.0.get(phase as usize) {
            UNKNOWN => None,
            ABSENT => Some(Nanos(0)),
            span => Some(Nanos(span - NO_TIME)),
        }
    }

    /// Returns the nanoseconds of a phase; zero if they are unknown.
    pub(crate) fn ns(&self, phase: Phase) -> f64 {
        self.get(phase).unwrap_or_default().0 as f64
    }

    /// Whether the launch has this phase, even if its duration is unknown.
    pub fn has(&self, phase: Phase) -> bool {
        self.0.get(phase as usize) != ABSENT
    }

    pub fn iter(&self) -> impl Iterator<Item = (Phase, Option<Nanos>)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// Returns the sum of the known durations of `phases`. `None` when none is known.
    pub fn sum(&self, phases: impl IntoIterator<Item = Phase>) -> Option<Nanos> {
        phases.into_iter().filter_map(|phase| self.get(phase)).reduce(|sum, span| Nanos(sum.0 + span.0))
    }
}
