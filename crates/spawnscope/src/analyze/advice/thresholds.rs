//! Which launches are worth a rule's attention: those that are a habit, that took long, and whose work is small beside their tax.

use std::cmp::Reverse;

use super::context::RuleContext;
use crate::analyze::phases::{Phase, Piece, pieces};
use crate::analyze::replay::runnable;
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// Fewer launches than this are no habit of a script, and too few to tell how long another one would take.
pub(super) const HABIT: usize = 5;

/// The groups that are a habit, those that took the longest first, `most` of them: each finding is played.
pub(super) fn largest<K>(
    context: &RuleContext<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    most: usize,
) -> Vec<(K, Vec<u32>)> {
    let habits = groups.into_iter().filter(|(_, launches)| launches.len() >= HABIT);
    longest(context, habits, most)
}

/// The groups that took the longest, be they a habit or not.
pub(super) fn longest<K>(
    context: &RuleContext<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    most: usize,
) -> Vec<(K, Vec<u32>)> {
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|group| (Reverse(context.spent_on(&group.1)), group))
        .collect();
    groups.sort_by_key(|(spent, _)| *spent);
    groups.into_iter().take(most).map(|(_, group)| group).collect()
}

/// What a launch does of its own: its run without the time in which it could have gone on but had no CPU, which says nothing
/// of its work. Time asleep stays in, since that may be all that it is for.
pub(super) fn working(context: &RuleContext<'_, '_>, index: usize) -> Option<Nanos> {
    let launch = &context.forest().launches[index];
    let run = launch.phases.get(Phase::Run)?;
    let slices = context.whatif.timelines.slices(index as ThreadIndex);
    let unfinished = launch.is_unfinished().then_some(context.forest().end);
    let pieces = pieces(launch.origin, &launch.instants, &launch.execs, unfinished);
    let without_cpu = |piece: &Piece| {
        let within = |(from, to): (Nanos, Nanos)| to.min(piece.end).since(from.max(piece.start)).0;
        slices
            .iter()
            .filter_map(|slice| runnable(&slice))
            .map(within)
            .sum::<u64>()
    };
    let runs = pieces.iter().filter(|piece| piece.phase == Phase::Run);
    Some(run.since(Nanos(runs.map(without_cpu).sum())))
}

/// Whether a launch costs more than what it does: then it pays to do the same without one.
pub(super) fn is_mostly_tax(context: &RuleContext<'_, '_>, index: usize) -> bool {
    let launch = &context.forest().launches[index];
    working(context, index)
        .zip(launch.launching())
        .is_some_and(|(run, launching)| run <= launching)
}

/// The same for one that is fed through a pipe, and whose run is for the most part waiting for that.
pub(super) fn uses_less_than_its_tax(context: &RuleContext<'_, '_>, index: usize) -> bool {
    let launch = &context.forest().launches[index];
    let used = launch.cpu_phases.get(Phase::Run).or(launch.phases.get(Phase::Run));
    used.zip(launch.launching())
        .is_some_and(|(used, launching)| used <= launching)
}
