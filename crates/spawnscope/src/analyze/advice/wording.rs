//! What several rules do alike: which launches are many enough to be a habit, which of many findings are told, and how
//! launches are selected on a command line.

use std::cmp::Reverse;

use super::ground::{Ground, name};
use crate::analyze::phases::{Phase, Piece, pieces};
use crate::analyze::replay::runnable;
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;
use crate::units;

/// Fewer launches than this are no habit of a script, and too few to tell how long another one would take.
pub(super) const HABIT: usize = 5;

/// The groups that are a habit, those that took the longest first, `most` of them: each finding is played.
pub(super) fn largest<K>(
    ground: &Ground<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    most: usize,
) -> Vec<(K, Vec<u32>)> {
    let habits = groups.into_iter().filter(|(_, launches)| launches.len() >= HABIT);
    longest(ground, habits, most)
}

/// The groups that took the longest, be they a habit or not.
pub(super) fn longest<K>(
    ground: &Ground<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    most: usize,
) -> Vec<(K, Vec<u32>)> {
    let mut groups: Vec<_> = groups
        .into_iter()
        .map(|group| (Reverse(ground.spent_on(&group.1)), group))
        .collect();
    groups.sort_by_key(|(spent, _)| *spent);
    groups.into_iter().take(most).map(|(_, group)| group).collect()
}

/// What a launch does of its own: its run without the time in which it could have gone on but had no CPU, which says nothing
/// of its work. Time asleep stays in, since that may be all that it is for.
pub(super) fn working(ground: &Ground<'_, '_>, index: usize) -> Option<Nanos> {
    let launch = &ground.forest().launches[index];
    let run = launch.phases.get(Phase::Run)?;
    let slices = ground.whatif.timelines.slices(index as ThreadIndex);
    let unfinished = launch.is_unfinished().then_some(ground.forest().end);
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
pub(super) fn is_mostly_tax(ground: &Ground<'_, '_>, index: usize) -> bool {
    let launch = &ground.forest().launches[index];
    working(ground, index)
        .zip(launch.launching())
        .is_some_and(|(run, launching)| run <= launching)
}

/// The same for one that is fed through a pipe, and whose run is for the most part waiting for that.
pub(super) fn uses_less_than_its_tax(ground: &Ground<'_, '_>, index: usize) -> bool {
    let launch = &ground.forest().launches[index];
    let used = launch.cpu_phases.get(Phase::Run).or(launch.phases.get(Phase::Run));
    used.zip(launch.launching())
        .is_some_and(|(used, launching)| used <= launching)
}

/// Columns of a line that a narrow page still shows as it is.
const NARROW: usize = 70;

/// What to write instead of something, in one line or two.
pub(super) fn instead(before: &str, after: &str) -> Vec<String> {
    let line = format!("  {before}  ->  {after}");
    if line.chars().count() <= NARROW {
        return vec![line];
    }
    vec![format!("  {before}"), format!("    ->  {after}")]
}

/// An option of `spawnscope whatif` for launches of a program by a parent, ready for a shell.
pub(super) fn option(change: &str, program: &[u8], parent: &[u8]) -> String {
    quoted(&format!("{change}={}", launches_of(program, parent)))
}

/// What selects the launches of a program by a parent.
pub(super) fn launches_of(program: &[u8], parent: &[u8]) -> String {
    format!("{},parent={}", literal(program), literal(parent))
}

/// A name as a glob that fits only itself.
pub(super) fn literal(bytes: &[u8]) -> String {
    let mut glob = String::new();
    for character in name(bytes).chars() {
        if matches!(character, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            glob.push('\\');
        }
        // A comma would begin another term.
        glob.push(if character == ',' { '?' } else { character });
    }
    glob
}

/// A word that a shell takes as it is.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_=,./:+@%".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// `1,234 launches`.
pub(super) fn launches(count: usize) -> String {
    units::counted(count as u64, "launch", "launches")
}
