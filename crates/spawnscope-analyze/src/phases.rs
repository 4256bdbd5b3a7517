//! Divides the life of one launch into the eight phases, in wall time and in CPU time.
//! Phases tile the launch exactly. A phase with an unknown boundary is unknown, and its time is not charged to its neighbours. A phase that
//! the launch does not have is zero and does not count.

use super::Origin;
use super::compact::Compact;
use super::launch::{Exec, Instants};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{ExecRow, LaunchRow};

/// One of the eight parts of a launch, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// From the parent's call until the child exists. Copies the page tables of a large parent.
    Create,
    /// The child waits for its first CPU.
    Queue,
    /// The child's first run until it enters the exec that succeeds.
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

/// A contiguous part of a phase. A phase has several pieces when a process execs more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The phase it belongs to.
    pub phase: Phase,
    /// Its start.
    pub start: Nanos,
    /// Its end, never before its start.
    pub end: Nanos,
}

/// The end of a phase, where the next one starts.
#[derive(Clone, Copy)]
struct Cut {
    ends: Phase,
    at: Option<Nanos>,
}

/// Computes the wall time of a launch by phase. `unfinished` is the end of the recording, where the open phase of an unfinished launch
/// ends.
pub(super) fn wall_times(origin: Origin, at: &Instants, execs: &[Exec<'_>], unfinished: Option<Nanos>) -> PhaseTimes {
    let (first, cuts) = wall_cuts(origin, at, execs, unfinished);
    let absent = absent_phases(origin, execs.iter().map(|exec| exec.has_loader));
    sum_of_pieces(first, &cuts, absent)
}

/// Returns the known pieces of a launch, in order.
#[must_use]
pub fn pieces(origin: Origin, at: &Instants, execs: &[Exec<'_>], unfinished: Option<Nanos>) -> Vec<Piece> {
    let (first, cuts) = wall_cuts(origin, at, execs, unfinished);
    known_pieces(first, &cuts).collect()
}

/// Returns the start of the first phase, and the end of each phase in order.
fn wall_cuts(
    origin: Origin,
    at: &Instants,
    execs: &[Exec<'_>],
    unfinished: Option<Nanos>,
) -> (Option<Nanos>, Vec<Cut>) {
    let mut cuts = Vec::with_capacity(6 + 3 * execs.len());
    let first = match (origin, execs) {
        // Between its release and its exec, the command runs code of the recorder: it restores signals and waits for the release. The wall
        // still starts at the release, since the recorder measures from there.
        (Origin::Command, [first_exec, ..]) => first_exec.enter.get(),
        (Origin::Command | Origin::Existed, _) => at.created.get(),
        (Origin::Launched | Origin::Orphan, _) => {
            cuts.push(Cut {
                ends: Phase::Create,
                at: at.created.get(),
            });
            cuts.push(Cut {
                ends: Phase::Queue,
                at: at.first_run.get(),
            });
            at.create.get()
        }
    };
    for (index, exec) in execs.iter().enumerate() {
        let before = match (index, origin) {
            (0, Origin::Command) => None,
            (0, Origin::Launched | Origin::Orphan) => Some(Phase::Setup),
            // Time between two execs of a process is work.
            _ => Some(Phase::Run),
        };
        cuts.extend(before.map(|ends| Cut {
            ends,
            at: exec.enter.get(),
        }));
        cuts.push(Cut {
            ends: Phase::Exec,
            at: exec.returned.get(),
        });
        cuts.push(Cut {
            ends: Phase::Load,
            at: exec.loaded.get(),
        });
    }
    cuts.push(Cut {
        ends: Phase::Run,
        at: unfinished.or(at.exit.get()),
    });
    if unfinished.is_none() {
        cuts.push(Cut {
            ends: Phase::Teardown,
            at: at.zombie.get(),
        });
        // The parent of the command is the recorder, so its reaping does not count.
        cuts.push(Cut {
            ends: Phase::Reap,
            at: if origin == Origin::Command {
                None
            } else {
                at.reaped.get()
            },
        });
    }
    (first, cuts)
}

/// Computes the CPU time of a launch by phase, from the counters of its threads at the boundaries.
pub(super) fn cpu_times(row: &LaunchRow, execs: &[&ExecRow]) -> PhaseTimes {
    // Counters start at zero with the process. Only for the command, work of the recorder comes before.
    let first = if row.origin == Origin::Launched {
        Some(Nanos(0))
    } else {
        None
    };
    let mut cuts = Vec::with_capacity(1 + 3 * execs.len());
    for (index, exec) in execs.iter().enumerate() {
        cuts.push(Cut {
            ends: if index == 0 { Phase::Setup } else { Phase::Run },
            at: exec.enter_cpu,
        });
        cuts.push(Cut {
            ends: Phase::Exec,
            at: exec.return_cpu,
        });
        cuts.push(Cut {
            ends: Phase::Load,
            at: end_of_load(exec.has_loader, exec.return_cpu, exec.load_cpu),
        });
    }
    cuts.push(Cut {
        ends: Phase::Run,
        at: row.exit_cpu,
    });
    cuts.push(Cut {
        ends: Phase::Teardown,
        at: row.cpu,
    });
    let absent = absent_phases(row.origin, execs.iter().map(|exec| exec.has_loader));
    sum_of_pieces(first, &cuts, absent)
}

/// Returns the end of `load`, in wall or CPU time. A static program has no loader, and is ready when its exec returns.
pub(super) fn end_of_load(has_loader: Option<bool>, returned: Option<Nanos>, loaded: Option<Nanos>) -> Option<Nanos> {
    if has_loader == Some(false) { returned } else { loaded }
}

/// Returns the phases that a launch does not have. `has_loader` contains for each exec whether the program has a loader.
fn absent_phases(origin: Origin, mut has_loader: impl ExactSizeIterator<Item = Option<bool>>) -> &'static [Phase] {
    let has_exec = has_loader.len() > 0;
    let is_static = has_loader.all(|has_loader| has_loader == Some(false));
    match (has_exec, is_static, origin) {
        (true, true, _) => &[Phase::Load],
        (true, false, _) => &[],
        // The setup of the command is not absent, but belongs to the recorder.
        (false, _, Origin::Command) => &[Phase::Exec, Phase::Load],
        (false, ..) => &[Phase::Setup, Phase::Exec, Phase::Load],
    }
}

/// Sums the pieces of each phase that is not absent. One unknown piece makes the whole phase unknown.
fn sum_of_pieces(first: Option<Nanos>, cuts: &[Cut], absent: &[Phase]) -> PhaseTimes {
    let mut sums: [Option<Nanos>; 8] = Default::default();
    for piece in known_pieces(first, cuts) {
        let sum = &mut sums[piece.phase as usize];
        *sum = Some(Nanos(sum.unwrap_or_default().0 + piece.end.since(piece.start).0));
    }
    let mut start = first;
    for cut in cuts {
        if start.is_none() || cut.at.is_none() {
            sums[cut.ends as usize] = None;
        }
        start = cut.at;
    }
    let mut times = PhaseTimes::default();
    for (place, sum) in sums.into_iter().enumerate() {
        times
            .0
            .set(place, sum.map_or(UNKNOWN, |span| span.0.saturating_add(NO_TIME)));
    }
    for phase in absent {
        times.0.set(*phase as usize, ABSENT);
    }
    times
}

/// Returns the pieces with two known boundaries, in order. Clocks of two CPUs differ slightly, so a boundary may be before its predecessor
/// or after the last one. The first and last are kept, the others are moved.
fn known_pieces(first: Option<Nanos>, cuts: &[Cut]) -> impl Iterator<Item = Piece> + '_ {
    let last = cuts.iter().rev().find_map(|cut| cut.at);
    let mut latest = first.unwrap_or_default();
    let mut start = first;
    cuts.iter().filter_map(move |cut| {
        let end = cut.at.map(|at| at.min(last.unwrap_or(at)).max(latest));
        latest = end.unwrap_or(latest);
        let piece = start.zip(end).map(|(start, end)| Piece {
            phase: cut.ends,
            start,
            end,
        });
        start = end;
        piece
    })
}
