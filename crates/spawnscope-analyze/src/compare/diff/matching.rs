//! Finds, for each group of launches in the older recordings, the group in the newer recordings
//! that does the same. Groups are matched by arguments and file first, since edits move lines; the
//! remaining ones by line, since edits change arguments; last by file, for loops that were
//! rewritten. Finally, groups that launch one program from one line are folded into one group.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::diff::Grouping;
use crate::compare::diff::run::{Key, Run, ScriptLine};
use crate::path::summary::Summary;

/// The groups of both sides that do the same. One side may have no group.
#[derive(Clone, Debug)]
pub(super) struct Pair<'r> {
    pub(super) keys: [Vec<&'r Key>; 2],
    /// The sums over the launches of these groups, for each run of each side. `None` for a run
    /// without such a launch.
    pub(super) sums: [Vec<Option<Summary>>; 2],
}

impl<'r> Pair<'r> {
    fn new(runs: [&'r [Run]; 2], keys: [Vec<&'r Key>; 2]) -> Pair<'r> {
        let sums = [0, 1].map(|side| {
            runs[side].iter().map(|run| sum_of(keys[side].iter().filter_map(|key| run.launches.get(*key)))).collect()
        });
        Pair { keys, sums }
    }
}

fn sum_of<'r>(mut sums: impl Iterator<Item = &'r Summary>) -> Option<Summary> {
    let mut sum = sums.next()?.clone();
    for more in sums {
        sum.merge(more);
    }
    Some(sum)
}

pub(super) fn pairs<'r>(before: &'r [Run], after: &'r [Run], grouping: Grouping) -> Vec<Pair<'r>> {
    let runs = [before, after];
    let [older, newer] = runs.map(|runs| runs.iter().flat_map(|run| run.launches.keys()).collect::<BTreeSet<&Key>>());
    let (mut matched, mut unmatched) = match_in_file([older, newer]);
    match_by_position(&mut unmatched, &mut matched, |key| {
        let script_line = key.script_line.as_ref()?;
        Some((script_line.file.as_slice(), script_line.line))
    });
    match_by_position(&mut unmatched, &mut matched, |key| Some((file(key.script_line.as_ref()?), None)));
    let [removed, added] = unmatched;
    matched.extend(removed.into_iter().map(|key| [vec![key], Vec::new()]));
    matched.extend(added.into_iter().map(|key| [Vec::new(), vec![key]]));
    if grouping == Grouping::Lines {
        matched = folded(matched);
    }
    matched.into_iter().map(|keys| Pair::new(runs, keys)).collect()
}

/// Folds groups of one program, one parent program and one line. Keeps groups without a line apart:
/// only their arguments distinguish them.
fn folded(matched: Vec<[Vec<&Key>; 2]>) -> Vec<[Vec<&Key>; 2]> {
    let mut lines: BTreeMap<_, [Vec<&Key>; 2]> = BTreeMap::new();
    let mut folded = Vec::new();
    for keys in matched {
        let [before, after] = keys.each_ref().map(|keys| keys.first());
        let first = before.or(after).filter(|key| key.script_line.is_some());
        let Some(key) = first else {
            folded.push(keys);
            continue;
        };
        let sides = [before.or(after), after.or(before)].map(|key| key.and_then(|key| key.script_line.as_ref()));
        let line = lines.entry((&key.command, &key.parent, sides)).or_default();
        for (side, keys) in line.iter_mut().zip(keys) {
            side.extend(keys);
        }
    }
    folded.extend(lines.into_values());
    folded
}

/// Matches groups with the same program and arguments in the same file. If there are as many on
/// both sides, all lines may have moved: they are matched in order. Otherwise, those whose line is
/// the same come first. Returns also the groups that remain.
fn match_in_file<'r>(sides: [BTreeSet<&'r Key>; 2]) -> (Vec<[Vec<&'r Key>; 2]>, [Vec<&'r Key>; 2]) {
    let mut alike: BTreeMap<_, [Vec<&Key>; 2]> = BTreeMap::new();
    for (side, keys) in sides.into_iter().enumerate() {
        keys.into_iter().for_each(|key| alike.entry(without_line(key)).or_default()[side].push(key));
    }
    let (mut matched, mut unmatched) = (Vec::new(), [Vec::new(), Vec::new()]);
    for [mut before, mut after] in alike.into_values() {
        let mut pair = |older: &'r Key, newer: &'r Key| matched.push([vec![older], vec![newer]]);
        if before.len() != after.len() {
            let same: BTreeSet<&Key> = before.iter().copied().filter(|key| after.binary_search(key).is_ok()).collect();
            before.retain(|key| !same.contains(key));
            after.retain(|key| !same.contains(key));
            same.into_iter().for_each(|key| pair(key, key));
        }
        let common = before.len().min(after.len());
        before.iter().zip(&after).for_each(|(older, newer)| pair(older, newer));
        unmatched[0].extend(before.drain(common..));
        unmatched[1].extend(after.drain(common..));
    }
    (matched, unmatched)
}

/// Returns what stays the same in the key of a group whose line moved.
fn without_line(key: &Key) -> impl Ord {
    let file = key.script_line.as_ref().map(|script_line| &script_line.file);
    (&key.command, &key.arguments, file, &key.parent)
}

/// Returns the file of a call site. Inline scripts (`-c`) have no file and their texts differ, so
/// all of them count as one file.
fn file(script_line: &ScriptLine) -> &[u8] {
    script_line.path.0.as_ref().map_or(b"", |_| &script_line.file)
}

/// Matches all groups of one program, one parent program and one position, regardless of their
/// arguments.
fn match_by_position<'r>(
    unmatched: &mut [Vec<&'r Key>; 2],
    matched: &mut Vec<[Vec<&'r Key>; 2]>,
    position: impl Fn(&'r Key) -> Option<(&'r [u8], Option<u32>)>,
) {
    let mut groups: BTreeMap<_, [Vec<&Key>; 2]> = BTreeMap::new();
    for (side, keys) in unmatched.iter_mut().enumerate() {
        for key in keys.drain(..) {
            let group = groups.entry((&key.command, position(key), &key.parent)).or_default();
            group[side].push(key);
        }
    }
    for group in groups.into_values() {
        if group.iter().all(|keys| !keys.is_empty()) {
            matched.push(group);
        } else {
            let [removed, added] = group;
            unmatched[0].extend(removed);
            unmatched[1].extend(added);
        }
    }
}
