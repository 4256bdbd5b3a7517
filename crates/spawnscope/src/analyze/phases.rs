//! Divides the life of one launch into the eight phases, in wall time and in CPU time.
//! Phases tile the launch exactly; a phase with an unknown boundary is unknown and charged to no neighbour, one that the
//! launch does not have is zero and counts for nothing.

use super::Origin;
use super::compact::Compact;
use super::launch::{Exec, Instants};
use crate::event::Nanos;
use crate::record::reader::{ExecRow, LaunchRow};

/// One of the eight parts of a launch, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The parent's call until the child exists: page tables of a large parent.
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
    /// All of them, in order.
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

    /// Those that make up the launch tax: all but `run`.
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

/// A span for each phase; `None` where it is unknown, zero where the launch has no such phase. Kept as nanoseconds plus two, so that there are
/// numbers for both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseTimes(Compact<8>);

const UNKNOWN: u64 = 0;
/// The launch has no such phase: without an exec there is neither `exec` nor `load`.
const ABSENT: u64 = 1;
/// What stands for a span of no time.
const NO_TIME: u64 = 2;

impl PhaseTimes {
    /// The span of one phase.
    #[must_use]
    pub fn get(&self, phase: Phase) -> Option<Nanos> {
        match self.0.get(phase as usize) {
            UNKNOWN => None,
            ABSENT => Some(Nanos(0)),
            span => Some(Nanos(span - NO_TIME)),
        }
    }

    /// Whether the launch has this phase at all, be its span known or not.
    #[must_use]
    pub fn has(&self, phase: Phase) -> bool {
        self.0.get(phase as usize) != ABSENT
    }

    /// Phases with their spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Phase, Option<Nanos>)> + '_ {
        Phase::ALL.into_iter().map(|phase| (phase, self.get(phase)))
    }

    /// The sum over those of `phases` that are known; `None` when none is.
    #[must_use]
    pub fn sum(&self, phases: impl IntoIterator<Item = Phase>) -> Option<Nanos> {
        phases
            .into_iter()
            .filter_map(|phase| self.get(phase))
            .reduce(|sum, span| Nanos(sum.0 + span.0))
    }
}

/// One piece of a launch on the time line: a phase may come as several, when a process execs more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The phase it belongs to.
    pub phase: Phase,
    /// Its beginning.
    pub start: Nanos,
    /// Its end, never before its beginning.
    pub end: Nanos,
}

/// A point at which one phase ends; the next one begins there.
#[derive(Clone, Copy)]
struct Cut {
    ends: Phase,
    at: Option<Nanos>,
}

/// Wall time of a launch by phase. `unfinished` is the end of the recording, which closes the open phase of one that
/// was still running.
pub(super) fn wall_times(origin: Origin, at: &Instants, execs: &[Exec<'_>], unfinished: Option<Nanos>) -> PhaseTimes {
    let (first, cuts) = wall_cuts(origin, at, execs, unfinished);
    let absent = absent_phases(origin, execs.iter().map(|exec| exec.has_loader));
    sum_of_pieces(first, &cuts, absent)
}

/// The known pieces of a launch in order, for a time line.
#[must_use]
pub fn pieces(origin: Origin, at: &Instants, execs: &[Exec<'_>], unfinished: Option<Nanos>) -> Vec<Piece> {
    let (first, cuts) = wall_cuts(origin, at, execs, unfinished);
    known_pieces(first, &cuts).collect()
}

/// The boundaries of a launch: where its first phase begins, and the end of each phase in order.
fn wall_cuts(
    origin: Origin,
    at: &Instants,
    execs: &[Exec<'_>],
    unfinished: Option<Nanos>,
) -> (Option<Nanos>, Vec<Cut>) {
    let mut cuts = Vec::with_capacity(6 + 3 * execs.len());
    let first = match (origin, execs) {
        // What the command does between its release and its exec is the recorder's: it restores signals and waits to be
        // let go. The wall begins at the release all the same, for that is where the recorder begins to count.
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
            // What a process does between two of its execs is work.
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
        // The command's parent is the recorder, whose waiting is no one's cost.
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

/// CPU time of a launch by phase, from the counters of its threads at the boundaries.
pub(super) fn cpu_times(row: &LaunchRow, execs: &[&ExecRow]) -> PhaseTimes {
    // Counters start at zero with the process, except that the recorder's own work precedes the command's.
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

/// Where `load` ends, by the clock or by a CPU's counter: a static program has none, and is ready when its exec returns.
pub(super) fn end_of_load(has_loader: Option<bool>, returned: Option<Nanos>, loaded: Option<Nanos>) -> Option<Nanos> {
    if has_loader == Some(false) { returned } else { loaded }
}

/// The phases that a launch does not have, given for each of its execs whether the program has a loader.
fn absent_phases(origin: Origin, mut has_loader: impl ExactSizeIterator<Item = Option<bool>>) -> &'static [Phase] {
    let has_exec = has_loader.len() > 0;
    let is_static = has_loader.all(|has_loader| has_loader == Some(false));
    match (has_exec, is_static, origin) {
        (true, true, _) => &[Phase::Load],
        (true, false, _) => &[],
        // The command's set-up is not absent but the recorder's.
        (false, _, Origin::Command) => &[Phase::Exec, Phase::Load],
        (false, ..) => &[Phase::Setup, Phase::Exec, Phase::Load],
    }
}

/// Adds up the pieces of each phase that is not absent; one unknown piece makes its whole phase unknown.
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

/// The pieces with both boundaries known, brought into order: two CPUs stamp neighbouring events a little apart, so
/// a boundary may lie before its forerunner or after the last one. The first and the last are kept, the others give way.
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
