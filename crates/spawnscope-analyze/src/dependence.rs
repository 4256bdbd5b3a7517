//! The part of the wall that depends on a command: the time that would be saved without any of its
//! launches, including their waits, sleeps and permission scans. The launch tax of a command may be
//! small while most of the wall depends on it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::slice;

use crate::groups::Group;
use crate::launch::Command;
use crate::patterns::shells::is_shell;
use crate::tree::Forest;
use crate::whatif::changes::Change;
use crate::whatif::{AppliedChange, Prediction, WhatIf};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

/// The part of the wall that depends on the launches of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Display name of the command, as in the report's table: `git`, or `(bash)` for forks of bash.
    pub label: Vec<u8>,
    /// Number of the command's launches.
    pub count: u64,
    /// The saving without these launches: expected value, lower and upper end of the confidence interval.
    pub saving: [Nanos; 3],
    /// Whether another command in the list explains most of what depends on this one, and this one is
    /// a shell, a launcher such as `env`, or launched once or twice around nearly the whole run.
    pub is_wrapper: bool,
    /// The wrapper that most of the wall depends on, if more depends on it than on this command, and most launches of this command are its
    /// descendants.
    pub launched_through: Option<Vec<u8>>,
}

/// Maximum number of commands whose launches are removed in a replay.
const MAX_REPLAYED: usize = 8;
/// The same for large recordings, whose replays take longer.
const MAX_REPLAYED_IF_LARGE: usize = 5;
/// A recording with at least this many launches is large.
const MIN_LARGE_LAUNCHES: usize = 20_000;
/// Commands that run during less than this share of the wall are not replayed: little can depend on them.
const MIN_SHARE: f64 = 0.02;
/// Programs that only launch the commands in their arguments or input.
const LAUNCHERS: [&[u8]; 18] = [
    b"chroot",
    b"env",
    b"find",
    b"flock",
    b"gmake",
    b"make",
    b"nice",
    b"ninja",
    b"nohup",
    b"parallel",
    b"script",
    b"setsid",
    b"stdbuf",
    b"sudo",
    b"time",
    b"timeout",
    b"unshare",
    b"xargs",
];
/// A command other than a shell or launcher is a wrapper only if it has at most this many launches,
/// nearly the whole wall depends on it, and another command explains most of this.
const MAX_WRAPPER_LAUNCHES: u64 = 2;
/// Minimum share of the wall that counts as nearly the whole.
const NEARLY_ALL: f64 = 0.9;
/// A command is a wrapper only if at least this share of what depends on it also depends on another
/// command.
const MAJORITY: f64 = 0.5;

/// A command with its launches, and the time during which at least one of them existed.
#[derive(Default)]
struct Candidate {
    launches: Vec<u32>,
    /// Nanoseconds during which at least one of the launches existed.
    covered: u64,
    /// The latest end of the launches so far.
    latest_end: Nanos,
}

/// Returns the commands that run longest, each with a fix that removes its launches.
pub(crate) fn removals_of_commands<'a>(whatif: &WhatIf<'_, 'a>) -> Vec<(Command<'a>, AppliedChange)> {
    let candidates = candidates(whatif.forest, whatif.replay.measured);
    candidates.into_iter().map(|(command, launches)| (command, removal(launches))).collect()
}

/// Returns what depends on each of these commands, the largest part of the wall first.
/// `predictions` has one entry for each removal.
pub(crate) fn dependence(
    whatif: &WhatIf<'_, '_>,
    removals: &[(Command<'_>, AppliedChange)],
    predictions: &[Prediction],
) -> Vec<Dependence> {
    let mut all = Vec::with_capacity(removals.len());
    for ((command, fix), prediction) in removals.iter().zip(predictions) {
        all.push(Dependence {
            label: command.label(),
            count: fix.launches.len() as u64,
            saving: prediction.saving(),
            is_wrapper: false,
            launched_through: None,
        });
    }
    let names: Vec<&[u8]> = removals.iter().map(|(command, _)| command.name).collect();
    mark_wrappers(&mut all, &names, whatif);
    set_launched_through(&mut all, removals, whatif.forest);
    all.retain(|each| each.saving[0] > Nanos(0));
    all.sort_by(|a, b| (Reverse(a.saving[0]), &a.label).cmp(&(Reverse(b.saving[0]), &b.label)));
    all
}

/// Predicts, for each of several sets of launches, the saving without these launches: expected value, lower and upper end of the confidence
/// interval.
pub(crate) fn savings_without(whatif: &WhatIf<'_, '_>, sets: &[&[u32]]) -> Vec<[Nanos; 3]> {
    let fixes: Vec<AppliedChange> = sets.iter().map(|launches| removal(launches.to_vec())).collect();
    let fixes: Vec<&[AppliedChange]> = fixes.iter().map(slice::from_ref).collect();
    let predictions = whatif.predict_each(&fixes);
    predictions.iter().map(Prediction::saving).collect()
}

fn removal(launches: Vec<u32>) -> AppliedChange {
    let change = Change::Remove;
    AppliedChange { change, launches }
}

/// Returns the commands that run longest, with their launches. Launches are in order of creation,
/// so one pass can measure how much of the wall they cover.
fn candidates<'a>(forest: &Forest<'a>, wall: Nanos) -> Vec<(Command<'a>, Vec<u32>)> {
    let mut commands: HashMap<Command<'a>, Candidate> = HashMap::new();
    for (index, launch) in (0..).zip(&forest.launches) {
        if !launch.is_launch() || launch.origin == Origin::Command || launch.parent.get().is_none() {
            continue;
        }
        let each = commands.entry(*launch.command).or_default();
        each.launches.push(index);
        if let (Some(start), Some(total)) = (launch.start(), launch.total(forest.end)) {
            let end = Nanos(start.0 + total.0);
            each.covered += end.since(start.max(each.latest_end)).0;
            each.latest_end = each.latest_end.max(end);
        }
    }
    let mut commands: Vec<(Command<'a>, Candidate)> = commands.into_iter().collect();
    commands.retain(|(_, each)| each.covered as f64 >= MIN_SHARE * wall.0 as f64);
    commands.sort_by_key(|(command, each)| (Reverse(each.covered), command.name, command.forked));
    let max_replayed = if forest.launches.len() < MIN_LARGE_LAUNCHES { MAX_REPLAYED } else { MAX_REPLAYED_IF_LARGE };
    commands.truncate(max_replayed);
    commands.into_iter().map(|(command, each)| (command, each.launches)).collect()
}

/// Marks wrappers: shells, launchers, and commands that are launched once or twice around nearly the
/// whole run, if another command explains most of what depends on them.
fn mark_wrappers(all: &mut [Dependence], names: &[&[u8]], whatif: &WhatIf<'_, '_>) {
    let nearly_all = whatif.unrecorded().0 as f64 * NEARLY_ALL;
    let maybe_wrappers = all.iter().zip(names).map(|(each, name)| {
        let is_around_all = each.count <= MAX_WRAPPER_LAUNCHES && each.saving[0].0 as f64 >= nearly_all;
        is_shell(name) || LAUNCHERS.contains(name) || is_around_all
    });
    let maybe_wrappers: Vec<bool> = maybe_wrappers.collect();
    let others = all.iter().zip(&maybe_wrappers).filter(|(_, maybe)| !**maybe);
    let largest = others.map(|(each, _)| each.saving[0]).max().unwrap_or_default();
    for (each, maybe_wrapper) in all.iter_mut().zip(maybe_wrappers) {
        each.is_wrapper = maybe_wrapper && largest.0 as f64 >= MAJORITY * each.saving[0].0 as f64;
    }
}

/// Sets through which wrapper the commands were launched. Considers only the wrapper that most of the wall depends on.
fn set_launched_through(all: &mut [Dependence], removals: &[(Command<'_>, AppliedChange)], forest: &Forest<'_>) {
    let wrappers = all.iter().zip(removals).filter(|(each, _)| each.is_wrapper);
    let Some((wrapper, (_, removal))) = wrappers.max_by_key(|(each, _)| each.saving[0]) else {
        return;
    };
    let (label, saving) = (wrapper.label.clone(), wrapper.saving[0]);
    for (each, (_, fix)) in all.iter_mut().zip(removals) {
        let descendants = fix.launches.iter().filter(|launch| has_ancestor_in(forest, **launch, &removal.launches));
        let descendants = descendants.count();
        if !each.is_wrapper && each.saving[0] < saving && descendants as f64 > MAJORITY * fix.launches.len() as f64 {
            each.launched_through = Some(label.clone());
        }
    }
}

/// Sets in each group how much of the wall depends on its command. Moves the groups with a known
/// dependence to the front, the largest first.
pub(super) fn rank_by_dependence(groups: &mut [Group], dependence: &[Dependence]) {
    let by_label: HashMap<&[u8], Nanos> =
        dependence.iter().map(|each| (each.label.as_slice(), each.saving[0])).collect();
    for group in &mut *groups {
        group.depends = by_label.get(group.label.as_slice()).copied();
    }
    groups.sort_by_key(|group| Reverse(group.depends));
}

/// Whether an ancestor of a launch is one of `launches`, which are sorted.
fn has_ancestor_in(forest: &Forest<'_>, launch: u32, launches: &[u32]) -> bool {
    let mut ancestors = std::iter::successors(forest.parent(launch as usize), |ancestor| forest.parent(*ancestor));
    ancestors.any(|ancestor| launches.binary_search(&(ancestor as u32)).is_ok())
}
