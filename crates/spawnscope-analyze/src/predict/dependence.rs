//! The part of the wall that depends on a command, or on a script line: the time that would be
//! saved without any of its launches, including their waits, sleeps and permission scans. The
//! launch tax of a command may be small while most of the wall depends on it. Also finds the
//! principal cause of the wall, whether or not it can be avoided.

use std::cmp::Reverse;
use std::slice;

use crate::model::launch::Command;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::path::critical_path::CriticalPath;
use crate::path::groups::{Group, GroupBy, label_of};
use crate::patterns::programs::has_property;
use crate::patterns::shells::is_shell;
use crate::predict::whatif::changes::Change;
use crate::predict::whatif::{AppliedChange, Prediction, WhatIf};
use crate::sites::callers::Callers;
use foldhash::HashMap;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

/// The part of the wall that depends on the launches of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependence {
    /// Display name of the command, as in the report's table: `git`, or `(bash)` for forks of bash.
    pub label: Vec<u8>,
    pub count: u64,
    /// The saving without these launches: expected value, lower and upper end of the confidence
    /// interval.
    pub saving: [Nanos; 3],
    /// Whether another command in the list explains most of what depends on this one, and this one
    /// is a shell, a launcher such as `env`, or launched once or twice around nearly the whole run.
    pub is_wrapper: bool,
    /// The wrapper that most of the wall depends on, if more depends on it than on this command,
    /// and most launches of this command are its descendants.
    pub launched_through: Option<Vec<u8>>,
}

/// Maximum number of commands whose launches are removed in a replay.
const MAX_REPLAYED: usize = 8;
/// The same for large recordings, whose replays take longer.
const MAX_REPLAYED_IF_LARGE: usize = 5;
/// A recording with at least this many launches is large.
const MIN_LARGE_LAUNCHES: usize = 20_000;
/// Commands that run during less than this share of the wall are not replayed: little can depend on
/// them.
const MIN_SHARE: f64 = 0.02;
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

fn removal(launches: Vec<u32>) -> AppliedChange {
    AppliedChange { change: Change::Remove, launches }
}

/// Returns the commands that run longest, each with a fix that removes its launches. Launches are
/// in order of creation, so one pass can measure how much of the wall they cover.
pub(crate) fn removals_of_commands<'a>(whatif: &WhatIf<'_, 'a>) -> Vec<(Command<'a>, AppliedChange)> {
    let (forest, wall) = (whatif.forest, whatif.replay.measured);
    let mut commands: HashMap<Command<'a>, Candidate> = HashMap::default();
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
    commands.into_iter().map(|(command, each)| (command, removal(each.launches))).collect()
}

/// Marks wrappers: shells, launchers, and commands that are launched once or twice around nearly
/// the whole run, if another command explains most of what depends on them.
fn mark_wrappers(all: &mut [Dependence], names: &[&[u8]], whatif: &WhatIf<'_, '_>) {
    let nearly_all = whatif.unrecorded().0 as f64 * NEARLY_ALL;
    let maybe_wrappers = all.iter().zip(names).map(|(each, name)| {
        let is_around_all = each.count <= MAX_WRAPPER_LAUNCHES && each.saving[0].0 as f64 >= nearly_all;
        is_shell(name) || has_property(name, "launcher") || is_around_all
    });
    let maybe_wrappers: Vec<bool> = maybe_wrappers.collect();
    let others = all.iter().zip(&maybe_wrappers).filter(|(_, maybe)| !**maybe);
    let largest = others.map(|(each, _)| each.saving[0]).max().unwrap_or_default();
    for (each, maybe_wrapper) in all.iter_mut().zip(maybe_wrappers) {
        each.is_wrapper = maybe_wrapper && largest.0 as f64 >= MAJORITY * each.saving[0].0 as f64;
    }
}

/// Sets through which wrapper the commands were launched. Considers only the wrapper that most of
/// the wall depends on.
fn set_launched_through(all: &mut [Dependence], removals: &[(Command<'_>, AppliedChange)], forest: &Forest<'_>) {
    let wrappers = all.iter().zip(removals).filter(|(each, _)| each.is_wrapper);
    let Some((wrapper, (_, removal))) = wrappers.max_by_key(|(each, _)| each.saving[0]) else { return };
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
pub(crate) fn rank_by_dependence(groups: &mut [Group], dependence: &[Dependence]) {
    let by_label: HashMap<&[u8], Nanos> =
        dependence.iter().map(|each| (each.label.as_slice(), each.saving[0])).collect();
    for group in &mut *groups {
        group.depends = by_label.get(group.label.as_slice()).copied();
    }
    groups.sort_by_key(|group| Reverse(group.depends));
}

/// Whether an ancestor of a launch is one of `launches`, which are sorted.
fn has_ancestor_in(forest: &Forest<'_>, launch: u32, launches: &[u32]) -> bool {
    let mut ancestors = forest.ancestors(launch as usize);
    ancestors.any(|ancestor| launches.binary_search(&(ancestor as u32)).is_ok())
}

/// Work of one command on the critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    pub label: Vec<u8>,
    pub count: u64,
    /// Time of its `run` phase on the critical path, excluding the processes it launched.
    pub time: Nanos,
}

/// A command that was launched once is a culprit only if at least this share of the wall depends on
/// it.
const MIN_CULPRIT_SHARE: f64 = 0.2;
/// The same for a command that was launched several times: fewer launches may do. Uncertain advice
/// about launches is worth a look if at least this share of the wall depends on them.
pub(crate) const DEPENDENT_SHARE: f64 = 0.1;

pub(crate) fn most_work(forest: &Forest<'_>, path: &CriticalPath) -> Option<Work> {
    let mut commands: HashMap<Command<'_>, (u64, u64)> = HashMap::default();
    for (launch, charges) in forest.launches.iter().zip(&path.launches) {
        if launch.is_launch() {
            let (count, time) = commands.entry(*launch.command).or_default();
            *count += 1;
            *time += charges.get(Phase::Run).0;
        }
    }
    let largest = commands.into_iter().max_by_key(|(command, (_, time))| (*time, command.name));
    largest.filter(|(_, (_, time))| *time > 0).map(|(command, (count, time))| Work {
        label: command.label(),
        count,
        time: Nanos(time),
    })
}

/// Returns the command that most of the wall depends on, except shells and other wrappers, which
/// only lead to other commands. `None` if its share of the wall is small or uncertain.
pub fn culprit(dependence: &[Dependence], unrecorded: Nanos) -> Option<&Dependence> {
    dependence.iter().find(|each| !each.is_wrapper).filter(|each| {
        let least = if each.count > 1 { DEPENDENT_SHARE } else { MIN_CULPRIT_SHARE };
        each.saving[1] > Nanos(0) && each.saving[0].0 as f64 >= least * unrecorded.0 as f64
    })
}

/// Launches of one program, or from one line, and the saving without them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// What the launches have in common: `Command` or `Line`.
    pub by: GroupBy,
    /// The label of the launches in a table that is grouped by `by`.
    pub label: Vec<u8>,
    pub launches: u64,
    /// Wall time saved: expected value, lower and upper end of the confidence interval.
    pub saving: [Nanos; 3],
}

/// Predicts the saving without the launches of a program or of a script line, for the `max_rows`
/// programs and the `max_rows` lines with the most time on the critical path. The recorded command
/// itself is not removed. Predictions that `dependence` already contains are reused.
pub fn removals(
    whatif: &WhatIf<'_, '_>,
    path: &CriticalPath,
    callers: &Callers,
    dependence: &[Dependence],
    max_rows: usize,
) -> Vec<Removal> {
    let mut removed = rows(whatif, path, callers, GroupBy::Command);
    removed.truncate(max_rows);
    if callers.has_any() {
        let lines = rows(whatif, path, callers, GroupBy::Line);
        removed.extend(lines.into_iter().take(max_rows));
    }
    let known: Vec<Option<[Nanos; 3]>> = removed.iter().map(|each| known_saving(each, dependence)).collect();
    let unknown = removed.iter().zip(&known).filter(|(_, known)| known.is_none());
    let fixes: Vec<AppliedChange> = unknown.map(|((_, _, launches), _)| removal(launches.clone())).collect();
    let predicted = whatif.predict_each(&fixes.iter().map(slice::from_ref).collect::<Vec<_>>());
    let mut predicted = predicted.iter().map(Prediction::saving);
    let savings = known.into_iter().map_while(|known| known.or_else(|| predicted.next()));
    let mut removals = Vec::with_capacity(removed.len());
    for ((by, label, launches), saving) in removed.iter().zip(savings) {
        removals.push(Removal { by: *by, label: label.clone(), launches: launches.len() as u64, saving });
    }
    removals
}

/// Returns the saving without a command if `dependence` contains it. A row with the same label and
/// number of launches is about the same launches.
fn known_saving((by, label, launches): &Row, dependence: &[Dependence]) -> Option<[Nanos; 3]> {
    let found = dependence
        .iter()
        .find(|each| each.label == *label && each.count == launches.len() as u64)
        .filter(|_| *by == GroupBy::Command);
    found.map(|each| each.saving)
}

/// What the launches have in common, their label, and the launches.
type Row = (GroupBy, Vec<u8>, Vec<u32>);

fn rows(whatif: &WhatIf<'_, '_>, path: &CriticalPath, callers: &Callers, by: GroupBy) -> Vec<Row> {
    let mut groups: HashMap<Vec<u8>, (Nanos, Vec<u32>)> = HashMap::default();
    for (index, launch) in whatif.forest.launches.iter().enumerate() {
        if launch.origin != Origin::Launched {
            continue;
        }
        let group = groups.entry(label_of(launch, callers.call_site_of(index), by)).or_default();
        group.0.0 += path.launches[index].total().0;
        group.1.push(index as u32);
    }
    let mut groups: Vec<_> = groups.into_iter().filter(|(_, (critical, _))| critical.0 > 0).collect();
    groups.sort_by_key(|(label, (critical, _))| (Reverse(*critical), label.clone()));
    groups.into_iter().map(|(label, (_, launches))| (by, label, launches)).collect()
}
