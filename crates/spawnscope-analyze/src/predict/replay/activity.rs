//! Activities: the launch and phase that the work of a thread belongs to. The work of a parent in
//! the call that creates a child belongs to `create` of the child. Its work while it only
//! supervises a single child belongs to the child, too.

use std::cell::Cell;

use super::concurrent;
use crate::model::launch::{Instants, Launch};
use crate::model::phases::Phase;
use crate::model::pieces::Piece;
use crate::model::timeline::{ThreadIndex, Timelines};
use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use spawnscope_data::event::{Mechanism, Nanos};

/// A part of the lifetime of a launch, encoded as a number: the kind of work and, for a process
/// with several execs, the exec that it follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stage(u16);

/// The kind of work in a stage: a phase, or the supervision of a child by its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActivityKind {
    Phase(Phase),
    /// Work of the parent for a child: the system calls before the creation, the time until the
    /// child ends if no other child is alive, and the system calls after the reaping.
    Supervise,
    /// Page faults of the parent after the creation of a child, on pages that both share.
    Faults,
}

const KIND_BITS: u16 = 4;
/// The exec number of work before the first exec.
const BEFORE_EXECS: usize = (u16::MAX >> KIND_BITS) as usize;
/// Number of activities, from the one that was found last onwards, that are checked before all are
/// searched.
const MAX_CHECKED: usize = 4;
/// Size of a small page in bytes.
const PAGE_BYTES: u64 = 4096;
/// The kinds of work that are not phases are numbered after the phases.
const SUPERVISE: u16 = 8;
const FAULTS: u16 = 9;

impl Stage {
    pub(super) const SUPERVISION: Stage = Stage(SUPERVISE);

    /// Number of bits of a packed stage.
    pub(super) const PACKED_BITS: u32 = 7;
    /// The packed exec number of work before the first exec. Few processes have as many execs.
    const PACKED_BEFORE_EXECS: u16 = 7;

    /// Packs the stage. `None` when it does not fit.
    pub(super) fn packed(self) -> Option<u32> {
        let (kind, exec) = (self.0 & ((1 << KIND_BITS) - 1), self.0 >> KIND_BITS);
        let exec = if self.is_before_execs() {
            Some(Stage::PACKED_BEFORE_EXECS)
        } else {
            Some(exec).filter(|exec| *exec < Stage::PACKED_BEFORE_EXECS)
        };
        Some(u32::from(exec? << KIND_BITS | kind))
    }

    pub(super) fn of_packed(packed: u32) -> Stage {
        let is_before = packed as u16 >> KIND_BITS == Stage::PACKED_BEFORE_EXECS;
        Stage(packed as u16 | if is_before { (BEFORE_EXECS as u16) << KIND_BITS } else { 0 })
    }

    /// Returns the stage for a phase after exec number `exec`, from 0.
    pub fn new(phase: Phase, exec: usize) -> Stage {
        let exec = exec.min(BEFORE_EXECS) as u16;
        Stage(exec << KIND_BITS | phase as u16)
    }

    /// Returns the stage that a piece of a launch belongs to. The work of a fork before its first
    /// exec is a stage of its own.
    pub(crate) fn of_piece(launch: &Launch<'_>, piece: &Piece) -> Stage {
        let first = launch.execs.first().and_then(|exec| exec.enter.get());
        let is_before = piece.phase == Phase::Run && first.is_some_and(|first| piece.start < first);
        let exec = if is_before { BEFORE_EXECS } else { launch.exec_at(piece.start).min(BEFORE_EXECS - 1) };
        Stage::new(piece.phase, exec)
    }

    /// Whether the stage is work of a fork before its first exec.
    pub fn is_before_execs(self) -> bool {
        usize::from(self.0 >> KIND_BITS) == BEFORE_EXECS
    }

    pub fn kind(self) -> ActivityKind {
        let kind = self.0 & ((1 << KIND_BITS) - 1);
        match Phase::ALL.get(kind as usize) {
            Some(phase) => ActivityKind::Phase(*phase),
            None => match kind {
                SUPERVISE => ActivityKind::Supervise,
                _ => ActivityKind::Faults,
            },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Activity {
    pub launch: u32,
    pub stage: Stage,
}

impl Activity {
    /// Whether the activity is this phase of the launch, after any exec.
    pub fn is(self, phase: Phase) -> bool {
        self.stage.kind() == ActivityKind::Phase(phase)
    }
}

/// The activities of one thread in chronological order. Each lasts until the next one starts.
#[derive(Clone, Debug)]
pub(super) struct Activities {
    changes: Vec<(Nanos, Activity)>,
    /// Index of the activity that was found last. The next one to be found is usually close to it.
    last: Cell<usize>,
}

impl Activities {
    /// Computes the activities of a thread. `fault_ns` is the duration of one page fault after a
    /// fork, in nanoseconds.
    pub(super) fn new(forest: &Forest<'_>, timelines: &Timelines, thread: ThreadIndex, fault_ns: f64) -> Activities {
        let launch = timelines.threads[thread as usize].launch;
        let own = own_activities(forest, launch);
        let for_children = work_for_children(forest, timelines, thread, fault_ns);
        let mut bounds: Vec<Nanos> = Vec::with_capacity(own.len() + 2 * for_children.len());
        bounds.extend(own.iter().map(|(at, _)| *at));
        bounds.extend(for_children.iter().flat_map(|(start, end, _)| [*start, *end]));
        // Both parts are sorted, so the merge sort needs only one pass.
        bounds.sort();
        bounds.dedup();
        let mut changes: Vec<(Nanos, Activity)> = Vec::with_capacity(bounds.len());
        let (mut own_begun, mut child_begun) = (0, 0);
        for at in bounds {
            own_begun += own[own_begun..].iter().take_while(|(start, _)| *start <= at).count();
            child_begun += for_children[child_begun..].iter().take_while(|(start, ..)| *start <= at).count();
            let for_child = for_children[..child_begun].last().filter(|(_, end, _)| at < *end);
            let activity = for_child
                .map(|(.., activity)| *activity)
                .or_else(|| own[..own_begun].last().map(|(_, activity)| *activity));
            if let Some(activity) = activity.filter(|activity| changes.last().is_none_or(|(_, last)| last != activity))
            {
                changes.push((at, activity));
            }
        }
        if changes.is_empty() {
            changes.push((Nanos(0), running(launch)));
        }
        let last = Cell::new(0);
        Activities { changes, last }
    }

    pub(super) fn at(&self, at: Nanos) -> Activity {
        self.changes[self.index_at(at)].1
    }

    /// Returns the activities between two instants with their durations.
    pub(super) fn between(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (Nanos, Activity)> + '_ {
        let mut index = self.index_at(from);
        let mut at = from;
        std::iter::from_fn(move || {
            let (_, activity) = *self.changes.get(index).filter(|_| at < to)?;
            index += 1;
            let end = self.changes.get(index).map_or(to, |(next, _)| (*next).min(to));
            let span = end.since(at);
            at = end;
            Some((span, activity))
        })
    }

    fn index_at(&self, at: Nanos) -> usize {
        let last = self.last.get();
        let near = (last..self.changes.len()).take(MAX_CHECKED).find(|index| {
            let next = self.changes.get(index + 1);
            self.changes[*index].0 <= at && next.is_none_or(|(next, _)| at < *next)
        });
        let index = near.unwrap_or_else(|| {
            let begun = self.changes.partition_point(|(start, _)| *start <= at);
            begun.saturating_sub(1)
        });
        self.last.set(index);
        index
    }
}

fn running(launch: u32) -> Activity {
    let stage = Stage::new(Phase::Run, 0);
    Activity { launch, stage }
}

/// Returns the phases of the launch itself, without `create` and `reap`, which are time of its
/// parent. Time in unknown phases counts as work.
fn own_activities(forest: &Forest<'_>, launch: u32) -> Vec<(Nanos, Activity)> {
    let each = &forest.launches[launch as usize];
    let pieces = each.pieces(Some(forest.end));
    let mut activities = Vec::with_capacity(1 + 2 * pieces.len());
    activities.push((Nanos(0), running(launch)));
    for piece in pieces {
        if matches!(piece.phase, Phase::Create | Phase::Reap) {
            continue;
        }
        let exec = each.exec_at(piece.start);
        let stage = Stage::of_piece(each, &piece);
        activities.push((piece.start, Activity { launch, stage }));
        activities.push((piece.end, Activity { launch, stage: Stage::new(Phase::Run, exec) }));
    }
    activities
}

/// What a thread does from one instant to another.
pub(super) type Interval = (Nanos, Nanos, Activity);

/// Returns the intervals in which a thread works for the children that it created, ordered by time
/// and without overlap.
fn work_for_children(forest: &Forest<'_>, timelines: &Timelines, thread: ThreadIndex, fault_ns: f64) -> Vec<Interval> {
    let launch = timelines.threads[thread as usize].launch;
    // Each thread of a pool waits for its own children.
    let is_creator = |child: &usize| timelines.threads[*child].creator.get().unwrap_or(launch) == thread;
    let children: Vec<usize> = forest.children(launch as usize).iter().copied().filter(is_creator).collect();
    let library = children.first().map_or(Nanos(0), |child| library_code(forest, *child, fault_ns));
    let reaped = |child: usize| reaped(forest, timelines, child);
    let mut work = concurrent::work(forest, timelines, thread, &children);
    let mut push = |from: Nanos, to: Nanos, child: usize, stage: Stage| {
        work.push((from, to, Activity { launch: child as u32, stage }));
    };
    for (position, &child) in children.iter().enumerate() {
        let at = &forest.launches[child].instants;
        let Some((create, created)) = creation(timelines, at, child) else { continue };
        push(Nanos(at.prepare.get().unwrap_or(create).0.saturating_sub(library.0)), create, child, Stage::SUPERVISION);
        push(create, created, child, Stage::new(Phase::Create, 0));
        let mut done = created;
        if let Some(reaped) = reaped(child).filter(|_| is_alone(forest, &children, position, reaped)) {
            let ended = at.zombie.get().unwrap_or(reaped).clamp(created, reaped.max(created));
            push(done, ended, child, Stage::SUPERVISION);
            push(ended, reaped, child, Stage::new(Phase::Reap, 0));
            done = reaped;
        }
        let next = children.get(position + 1).copied();
        let tidied = next.and_then(|next| forest.launches[next].instants.parent_tidied.get()).unwrap_or(done).max(done);
        push(done, tidied, child, Stage::SUPERVISION);
        let faults = match next {
            Some(next) => faults_between(forest, child, next),
            None if thread == launch => faults_until_exit(forest, child, launch as usize),
            None => 0.0,
        };
        let faulted = Nanos(tidied.0 + (faults * fault_ns) as u64);
        push(tidied, faulted, child, Stage(FAULTS));
        push(faulted, Nanos(faulted.0 + library.0), child, Stage::SUPERVISION);
    }
    without_overlap(work)
}

/// Orders intervals by their start, and lets each begin after the end of those before it.
fn without_overlap(mut work: Vec<Interval>) -> Vec<Interval> {
    work.sort_by_key(|(from, ..)| *from);
    let mut latest = Nanos(0);
    work.retain_mut(|(from, to, _)| {
        *from = latest.max(*from);
        latest = latest.max(*to);
        from < to
    });
    work
}

/// Returns how long the library of the runtime that makes a launch computes for it before its first
/// system call for the launch, and as long again after the last one: objects for streams and
/// callbacks. The unit is a page fault, which is measured on each machine. This is what programs
/// that made 100 to 350 launches saved beyond the replay when they made none, or what they need
/// between launches in a loop of nothing else. Shells, Perl, PHP, Lua and `system` need less than
/// can be measured.
fn library_code(forest: &Forest<'_>, launch: usize, fault_ns: f64) -> Nanos {
    let faults = match Runtime::of_parent(forest, launch as u32) {
        Runtime::Node | Runtime::Java => 115.0,
        Runtime::Python | Runtime::Go | Runtime::Emacs => 60.0,
        Runtime::Tcl | Runtime::Raku => 45.0,
        Runtime::Ruby => 35.0,
        _ => 0.0,
    };
    Nanos((faults * fault_ns) as u64)
}

/// Returns when the creation of a child began and ended. If the collector did not see its
/// beginning, that is assumed.
fn creation(timelines: &Timelines, at: &Instants, child: usize) -> Option<(Nanos, Nanos)> {
    let created = at.created.get()?;
    let assumed = || {
        let creation = timelines.unknown.as_ref()?.creation(child as u32);
        Some(Nanos(created.0.saturating_sub(creation.supposed.0 + creation.stopped.0)))
    };
    Some((at.create.get().or_else(assumed)?, created))
}

/// Returns when a child was reaped. If the collector does not record that, it was reaped when a
/// wait for it was over.
pub(super) fn reaped(forest: &Forest<'_>, timelines: &Timelines, child: usize) -> Option<Nanos> {
    let found = || *timelines.unknown.as_ref()?.reaped.get(child)?;
    forest.launches[child].instants.reaped.get().or_else(found)
}

/// Returns how many page faults of a parent between two of its launches came from sharing pages
/// with the child: all faults except those for new memory. Zero after vfork, which copies no page
/// tables.
fn faults_between(forest: &Forest<'_>, child: usize, next: usize) -> f64 {
    let (child, next) = (&forest.launches[child], &forest.launches[next]);
    if !shared_pages(child) {
        return 0.0;
    }
    let grown = next.parent_rss_bytes.get().zip(child.parent_rss_bytes.get());
    let new_pages = grown.map_or(0, |(after, before)| after.saturating_sub(before) / PAGE_BYTES);
    f64::from(next.counts.parent_faults.get().unwrap_or_default()) - new_pages as f64
}

/// Returns how many page faults of a parent after its last launch, up to its exit, came from
/// sharing pages with the child. There cannot be more of them than shared pages. If the resident
/// set at the exit is unknown, because some kernels free the memory earlier, no growth is
/// subtracted.
fn faults_until_exit(forest: &Forest<'_>, child: usize, parent: usize) -> f64 {
    let (child, parent) = (&forest.launches[child], &forest.launches[parent]);
    let (Some(faults), Some(shared)) = (parent.counts.exit_faults.get(), child.parent_rss_bytes.get()) else {
        return 0.0;
    };
    if !shared_pages(child) {
        return 0.0;
    }
    let grown = parent.counts.exit_rss_bytes.get().unwrap_or_default().saturating_sub(shared);
    u64::from(faults).saturating_sub(grown / PAGE_BYTES).min(shared / PAGE_BYTES) as f64
}

/// Whether a launch copied its parent's page tables and shared the pages.
pub(in crate::predict) fn shared_pages(child: &Launch<'_>) -> bool {
    !matches!(child.mechanism, Some(Mechanism::Vfork | Mechanism::PosixSpawn) | None)
}

/// Whether a launch does not overlap another launch by its parent.
/// `reaped` returns when a child was reaped.
pub(crate) fn is_alone(
    forest: &Forest<'_>,
    children: &[usize],
    position: usize,
    reaped: impl Fn(usize) -> Option<Nanos>,
) -> bool {
    let birth = forest.launches[children[position]].birth();
    let before = position.checked_sub(1).map(|before| reaped(children[before]));
    let reaped = reaped(children[position]);
    let next = children.get(position + 1).map(|next| forest.launches[*next].birth());
    reaped.is_some()
        && before.is_none_or(|before| before.is_some() && before <= birth)
        && next.is_none_or(|next| reaped <= next)
}
