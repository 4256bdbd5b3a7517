//! The eight phases of a launch, and a duration for each. A phase that the launch does not have is zero and does not count. `pieces` computes
//! the durations.

use crate::compact::Compact;
use spawnscope_data::event::Nanos;

/// One of the eight parts of a launch, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// From the parent's call until the child exists. Copies the page tables of a large parent.
    Create,
    /// The child waits for its first CPU.
    Queue,
    /// The child's first run, or the end of what it launched itself, until it enters the exec that succeeds.
    Setup,
    /// Inside successful `execve` calls.
    Exec,
    /// The dynamic loader.
    Load,
    /// The useful work.
    Run,
    /// From the beginning of the exit until the parent may reap.
    Teardown,
    /// Until the parent's wait returns.
    Reap,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 8] = [
        Phase::Create,
        Phase::Queue,
        Phase::Setup,
        Phase::Exec,
        Phase::Load,
        Phase::Run,
        Phase::Teardown,
        Phase::Reap,
    ];

    /// The phases of the launch tax: all but `run`.
    pub const TAX: [Phase; 7] = [
        Phase::Create,
        Phase::Queue,
        Phase::Setup,
        Phase::Exec,
        Phase::Load,
        Phase::Teardown,
        Phase::Reap,
    ];

    /// Its name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Phase::Create => "create",
            Phase::Queue => "queue",
            Phase::Setup => "setup",
            Phase::Exec => "exec",
            Phase::Load => "load",
            Phase::Run => "run",
            Phase::Teardown => "teardown",
            Phase::Reap => "reap",
        }
    }
}

/// The duration of each phase. `None` where unknown, zero where the launch has no such phase. Stored as nanoseconds plus two, to reserve
/// values for both cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes(Compact<8>);

const UNKNOWN: u64 = 0;
/// The launch has no such phase: without an exec there is neither `exec` nor `load`.
const ABSENT: u64 = 1;
/// A duration of zero.
const NO_TIME: u64 = 2;

impl PhaseTimes {
    /// Returns these durations, by phase, for a launch without the phases in `absent`.
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

    /// Returns the durations with `setup` as a part of `run`. Its own is unknown then.
    pub(crate) fn with_setup_in_run(&self) -> PhaseTimes {
        let mut times = self.clone();
        let both = self.get(Phase::Setup).zip(self.get(Phase::Run));
        let run = both.map_or(UNKNOWN, |(setup, run)| (setup.0 + run.0).saturating_add(NO_TIME));
        times.0.set(Phase::Setup as usize, UNKNOWN);
        times.0.set(Phase::Run as usize, run);
        times
    }

    /// Returns the duration of one phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Option<Nanos> {
        match self.0.get(phase as usize) {
            UNKNOWN => None,
            ABSENT => Some(Nanos(0)),
            span => Some(Nanos(span - NO_TIME)),
        }
    }

    /// Whether the launch has this phase, with a known duration or not.
    #[must_use]
    pub fn has(&self, phase: Phase) -> bool {
        self.0.get(phase as usize) != ABSENT
    }

    /// Iterates over the phases with their durations, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Option<Nanos>)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// Returns the sum of the known durations of `phases`. `None` when none is known.
    #[must_use]
    pub fn sum(&self, phases: impl IntoIterator<Item = Phase>) -> Option<Nanos> {
        phases
            .into_iter()
            .filter_map(|phase| self.get(phase))
            .reduce(|sum, span| Nanos(sum.0 + span.0))
    }
}
