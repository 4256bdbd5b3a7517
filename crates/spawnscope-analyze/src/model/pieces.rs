//! Divides the life of one launch into phases, in wall time and in CPU time. Phases tile the launch
//! exactly. A phase with an unknown boundary is unknown, and its time is not charged to its
//! neighbours.

use crate::model::launch::{Exec, Instants, Launch, MaybeKnown};
use crate::model::phases::{Phase, PhaseTimes};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{ExecRow, LaunchRow, Origin};

/// A contiguous part of a phase. A phase has several pieces when a process execs more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub phase: Phase,
    pub start: Nanos,
    /// When the piece ends, never before its start.
    pub end: Nanos,
}

/// The boundary between a phase that ends and the next phase.
#[derive(Clone, Copy)]
struct Cut {
    ends: Phase,
    at: Option<Nanos>,
}

fn cut(ends: Phase, at: Option<Nanos>) -> Cut {
    Cut { ends, at }
}

/// Computes the wall time of a launch by phase. `unfinished` is set for an unfinished launch: the
/// end of the recording, at which its open phase ends.
pub(crate) fn wall_times(origin: Origin, at: &Instants, execs: &[Exec<'_>], unfinished: Option<Nanos>) -> PhaseTimes {
    let (first, cuts) = wall_cuts(origin, at, execs, unfinished);
    let absent = absent_phases(origin, execs.iter().map(|exec| exec.has_loader));
    sum_of_pieces(first, &cuts, absent)
}

impl Launch<'_> {
    /// Divides the time before the first exec: until `worked_until` it is `run`, and from then on
    /// `setup`. All CPU time until the exec counts as `run`, since the CPU counters were not read
    /// at that instant.
    pub(crate) fn divide_setup(&mut self, worked_until: Nanos, recording_end: Nanos) {
        self.instants.worked_until = Some(worked_until).into();
        let unfinished = self.is_unfinished().then_some(recording_end);
        self.phases = wall_times(self.origin, &self.instants, &self.execs, unfinished);
        self.cpu_phases = self.cpu_phases.with_setup_in_run();
    }

    /// Returns the known pieces of the launch, in order. The open phase of an unfinished launch
    /// ends at `recording_end`, and is unknown without it.
    pub fn pieces(&self, recording_end: Option<Nanos>) -> Vec<Piece> {
        let unfinished = recording_end.filter(|_| self.is_unfinished());
        let (first, cuts) = wall_cuts(self.origin, &self.instants, &self.execs, unfinished);
        let mut pieces = Vec::with_capacity(cuts.len());
        pieces.extend(known_pieces(first, &cuts));
        pieces
    }
}

/// Adds the boundaries before the first exec's `setup`, and returns the start of the first phase.
fn begin(origin: Origin, at: &Instants, execs: &[Exec<'_>], cuts: &mut Vec<Cut>) -> Option<Nanos> {
    match (origin, execs) {
        // Between its release and its exec, the command runs code of the recorder: it restores
        // signals and waits for the release. The wall still starts at the release, since the
        // recorder measures from there.
        (Origin::Command, [first_exec, ..]) => first_exec.enter.get(),
        (Origin::Command | Origin::Existed, _) => at.created.get(),
        (Origin::Launched | Origin::Orphan, _) => {
            // If the collector stopped the process at birth, this boundary is unknown, and so are
            // `create` and `queue`. If it does not know either when the process first ran, only
            // `queue` is unknown: it is a part of what follows.
            let has_no_queue = at.was_stopped_at_birth && at.first_run.get().is_none();
            let created = at.created.get().filter(|_| !at.was_stopped_at_birth || has_no_queue);
            cuts.push(cut(Phase::Create, created));
            if !has_no_queue {
                cuts.push(cut(Phase::Queue, at.first_run.get()));
            }
            at.create.get()
        }
    }
}

/// Returns the start of the first phase, and the boundaries at the end of each phase in order.
fn wall_cuts(
    origin: Origin,
    at: &Instants,
    execs: &[Exec<'_>],
    unfinished: Option<Nanos>,
) -> (Option<Nanos>, Vec<Cut>) {
    let mut cuts = Vec::with_capacity(6 + 3 * execs.len());
    let first = begin(origin, at, execs, &mut cuts);
    for (index, exec) in execs.iter().enumerate() {
        let before = match (index, origin) {
            (0, Origin::Command) => None,
            (0, Origin::Launched | Origin::Orphan) => {
                // A fork that launches other processes before its exec does work: in `(a; b)`, the
                // subshell launches `a` and then executes `b` itself.
                let worked = at.worked_until.get();
                cuts.extend(worked.map(|worked| cut(Phase::Run, Some(worked))));
                Some(Phase::Setup)
            }
            // Time between two execs of a process is work.
            _ => Some(Phase::Run),
        };
        cuts.extend(before.map(|ends| cut(ends, exec.enter.get())));
        cuts.push(cut(Phase::Exec, exec.returned.get()));
        cuts.push(cut(Phase::Load, exec.load_end.get()));
    }
    cuts.push(cut(Phase::Run, unfinished.or(at.exit.get())));
    if unfinished.is_none() {
        cuts.push(cut(Phase::Teardown, at.zombie.get()));
        // The parent of the command is the recorder, so its reaping does not count.
        let reaped = at.reaped.get().filter(|_| origin != Origin::Command);
        cuts.push(cut(Phase::Reap, reaped));
    }
    (first, cuts)
}

/// Computes the CPU time of a launch by phase, from the counters of its threads at the boundaries.
pub(crate) fn cpu_times(row: &LaunchRow, execs: &[&ExecRow]) -> PhaseTimes {
    // The counters of a new process start at zero, but those of the command include work of the
    // recorder.
    let first = (row.origin == Origin::Launched).then_some(Nanos(0));
    let mut cuts = Vec::with_capacity(1 + 3 * execs.len());
    for (index, exec) in execs.iter().enumerate() {
        cuts.push(cut(if index == 0 { Phase::Setup } else { Phase::Run }, exec.enter_cpu));
        cuts.push(cut(Phase::Exec, exec.return_cpu));
        cuts.push(cut(Phase::Load, end_of_load(exec.has_loader, exec.return_cpu, exec.load_cpu)));
    }
    cuts.push(cut(Phase::Run, row.exit_cpu));
    cuts.push(cut(Phase::Teardown, row.cpu));
    let absent = absent_phases(row.origin, execs.iter().map(|exec| exec.has_loader));
    sum_of_pieces(first, &cuts, absent)
}

/// Computes the CPU time of the run of a launch's last program.
pub(crate) fn last_run_cpu(row: &LaunchRow, execs: &[&ExecRow]) -> MaybeKnown {
    let loaded = execs.last().and_then(|exec| end_of_load(exec.has_loader, exec.return_cpu, exec.load_cpu));
    row.exit_cpu.zip(loaded).map(|(exit, loaded)| exit.since(loaded)).into()
}

/// Returns the end of `load`, in wall or CPU time. A static program has no loader, so its work
/// starts when its exec returns.
pub(crate) fn end_of_load(has_loader: Option<bool>, returned: Option<Nanos>, loaded: Option<Nanos>) -> Option<Nanos> {
    if has_loader == Some(false) { returned } else { loaded }
}

/// Returns the phases that a launch does not have. `has_loader` says for each exec whether the
/// program has a dynamic loader.
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

/// Sums the pieces of each phase that is not absent. One unknown piece makes the whole phase
/// unknown.
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
    PhaseTimes::new(sums, absent)
}

/// Returns the pieces with two known boundaries, in order. Clocks of two CPUs differ slightly, so a
/// boundary may be before its predecessor or after the last boundary. The first and the last
/// boundary keep their time; the others are moved between their neighbours.
fn known_pieces(first: Option<Nanos>, cuts: &[Cut]) -> impl Iterator<Item = Piece> + '_ {
    let last = cuts.iter().rev().find_map(|cut| cut.at);
    let mut latest = first.unwrap_or_default();
    let mut start = first;
    cuts.iter().filter_map(move |cut| {
        let end = cut.at.map(|at| at.min(last.unwrap_or(at)).max(latest));
        latest = end.unwrap_or(latest);
        let piece = start.zip(end).map(|(start, end)| Piece { phase: cut.ends, start, end });
        start = end;
        piece
    })
}
