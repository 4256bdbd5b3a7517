//! Thresholds that select the launches a rule considers: groups that are frequent, that took long, and whose work is small compared with
//! their launch tax.

use std::cmp::Reverse;

use crate::advice::context::RuleContext;
use crate::patterns::work;
use crate::phases::Phase;
use spawnscope_data::event::Nanos;

/// A smaller group of launches is not a pattern in a script, and is too small to predict the duration of another launch.
pub(super) const MIN_REPETITIONS: usize = 5;

/// Returns the `most` groups that took the longest among those with at least `MIN_REPETITIONS` launches. The number is limited because each finding
/// is replayed.
pub(super) fn largest<K>(
    context: &RuleContext<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    most: usize,
) -> Vec<(K, Vec<u32>)> {
    let frequent_groups = groups
        .into_iter()
        .filter(|(_, launches)| launches.len() >= MIN_REPETITIONS);
    longest(context, frequent_groups, most)
}

/// Returns the `most` groups that took the longest, of any size.
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

/// Returns the work of a launch: its run phase without the time in which it was runnable but had no CPU. Sleeping counts, since it may be
/// the purpose of the program.
pub(super) fn working(context: &RuleContext<'_, '_>, index: usize) -> Option<Nanos> {
    work::working(context.forest(), context.timelines(), index)
}

/// Whether the launching takes longer than the work, with the recorded start-up of the program. Such a launch is worth replacing.
pub(super) fn is_mostly_tax(context: &RuleContext<'_, '_>, index: usize) -> bool {
    let launch = &context.forest().launches[index];
    let start_up = launch.start_up.get().unwrap_or_default();
    working(context, index)
        .zip(launch.launching())
        .is_some_and(|(run, launching)| run.since(start_up) <= Nanos(launching.0 + start_up.0))
}

/// Like [`is_mostly_tax`], for a launch that is fed through a pipe and spends most of its run waiting for input: compares its CPU time.
pub(super) fn uses_less_than_its_tax(context: &RuleContext<'_, '_>, index: usize) -> bool {
    let launch = &context.forest().launches[index];
    let used = launch.cpu_phases.get(Phase::Run).or(launch.phases.get(Phase::Run));
    let start_up = launch.start_up.get().unwrap_or_default();
    used.zip(launch.launching())
        .is_some_and(|(used, launching)| used.since(start_up) <= Nanos(launching.0 + start_up.0))
}
