//! The report: everything that `spawnscope report` says, as plain data. Owns what is counted and how it is grouped;
//! words, colours and JSON keys are `present`'s.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::advice::Advices;
use super::causes::Causes;
use super::critical_path::CriticalPath;
use super::drift::{Drift, drifts};
use super::external_wait::ExternalWait;
use super::failures::{Failure, failures};
use super::groups::{Group, groups};
use super::launch::Outcome;
use super::overlap::tax_overlaps;
use super::path_search::PathSearches;
use super::phases::Phase;
use super::summary::Summary;
use super::tree::Forest;
use super::waits::attribution::AttributedWaits;
use crate::event::{Loss, Missing, Nanos, Pid};
use crate::parallel;
use crate::record::reader::{Contradictions, Origin, Recording, Scope};

/// What one row of the table stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// Launches of one program.
    #[default]
    Command,
    /// Launches made by one program.
    Parent,
    /// Launches that one line of a script, or one place in a program, asked for.
    Line,
    /// The same by function.
    Caller,
}

/// What a recording amounts to.
#[derive(Clone, Debug)]
pub struct Report {
    /// The command's argv; empty without a command.
    pub command: Vec<Vec<u8>>,
    /// What was followed.
    pub scope: Scope,
    /// The process that was followed (`-p`), with its name.
    pub followed: Option<(Pid, Vec<u8>)>,
    /// Name of the collector.
    pub collector: String,
    /// CPUs online at the start.
    pub cpus: u32,
    /// From the start to the command's end or the recording's; up to the last event when the recorder was cut off.
    pub wall: Nanos,
    /// How the command ended; `None` without a command.
    pub exit: Option<Outcome>,
    /// How the recording ended; `None` when the recorder was cut off.
    pub ended: Option<String>,
    /// Whether a recorder is still writing it.
    pub is_live: bool,
    /// Sums over all launches.
    pub all: Summary,
    /// Whether the tax of several launches fell into the same time, so that their sum is no part of the wall.
    pub overlaps: bool,
    /// The wall by what it was spent on along the critical path, the longest first; empty when the path is not known.
    pub where_the_wall_went: Vec<(Spent, Nanos)>,
    /// By how much the recording, played again unchanged, misses the wall, as a share of it; `None` when it was not played.
    pub replay_error: Option<f64>,
    /// What threads waited for that processes did, the longest first; empty when the slices were not looked at.
    pub waits: Vec<AttributedWaits>,
    /// What is worth changing.
    pub advices: Advices,
    /// What `groups` are.
    pub group_by: GroupBy,
    /// One entry for each row of the table, the dearest first: by launch tax, lines by time on the critical path.
    pub groups: Vec<Group>,
    /// Commands that were still running at the end, the most frequent first.
    pub still_running: Vec<(Vec<u8>, u64)>,
    /// Programs looked for in vain along PATH.
    pub path_searches: PathSearches,
    /// Failed execs that no PATH search explains, the most frequent errno first.
    pub failures: Vec<Failure>,
    /// Parents whose launches became slower, the worst first.
    pub drifts: Vec<Drift>,
    /// Events that were dropped.
    pub lost: Vec<Loss>,
    /// What this machine did not let the collector see.
    pub missing: Vec<Missing>,
    /// What of the recording cannot be true.
    pub contradictions: Contradictions,
}

impl Report {
    /// Whether the recorder ended without finishing the recording.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.ended.is_none() && !self.is_live
    }

    /// Events that were dropped, of all kinds.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        self.lost.iter().map(|loss| loss.events).sum()
    }
}

/// What a part of the wall was spent on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Launch tax: everything of a launch but `run`.
    Tax,
    /// The programs' own work.
    Run,
    /// Programs that could have worked but had no CPU.
    RunQueue,
    /// Something that is not recorded; with the name of the process, where that is known.
    ExternalWait(ExternalWait, Option<Vec<u8>>),
}

/// Sums up a recording, without its slices: the critical path is then unknown.
#[must_use]
pub fn report(recording: &Recording, group_by: GroupBy) -> Report {
    report_on(recording, &Forest::grow(recording), None, group_by)
}

fn still_running(forest: &Forest<'_>) -> Vec<(Vec<u8>, u64)> {
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for launch in forest
        .launches
        .iter()
        .filter(|launch| launch.is_launch() && launch.is_unfinished())
    {
        *counts.entry(launch.command.label()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(one, times), (other, more)| more.cmp(times).then_with(|| one.cmp(other)));
    counts
}

fn sum_of_all(forest: &Forest<'_>, path: Option<&CriticalPath>) -> Summary {
    let mut sum = Summary::default();
    for (index, launch) in forest.launches.iter().enumerate() {
        if launch.is_launch() {
            sum.add(forest, index, path);
        }
    }
    sum
}

/// Sums up a recording whose launches are joined, and whose causes may have been found.
#[must_use]
pub fn report_on(recording: &Recording, forest: &Forest<'_>, causes: Option<&Causes>, group_by: GroupBy) -> Report {
    let path = causes.map(|causes| &causes.path);
    let ((all, overlaps), groups) = parallel::both(
        || (sum_of_all(forest, path), tax_overlaps(forest)),
        || groups(forest, path, group_by),
    );
    let (path_searches, failures) = failures(forest);
    let info = &recording.info;
    Report {
        command: info.command.clone(),
        scope: info.scope,
        followed: (info.scope == Scope::Process).then(|| followed(forest)).flatten(),
        collector: info.collector.clone(),
        cpus: info.cpus,
        wall: info.wall.unwrap_or(info.last),
        exit: forest
            .launches
            .iter()
            .find(|launch| launch.origin == Origin::Command)
            .map(|launch| launch.outcome),
        ended: info.wall.and(info.ended.clone()),
        is_live: info.is_live,
        all,
        overlaps,
        replay_error: causes.map(|causes| causes.replay_error),
        advices: causes.map(|causes| causes.advices.clone()).unwrap_or_default(),
        where_the_wall_went: path
            .map(|path| where_the_wall_went(path, recording))
            .unwrap_or_default(),
        waits: Vec::new(),
        group_by,
        groups,
        still_running: still_running(forest),
        path_searches,
        failures,
        drifts: causes.map_or_else(|| drifts(forest), |causes| causes.drifts.clone()),
        lost: info.lost.iter().filter(|loss| loss.events > 0).cloned().collect(),
        missing: info.missing.clone(),
        contradictions: info.contradictions.clone(),
    }
}

pub(super) fn where_the_wall_went(path: &CriticalPath, recording: &Recording) -> Vec<(Spent, Nanos)> {
    let queue = Nanos(path.launches.iter().map(|charges| charges.run_queue().0).sum());
    let run = Nanos(path.launches.iter().map(|charges| charges.get(Phase::Run).0).sum());
    let name_of = |what: &ExternalWait| what.process().map(|name| recording.texts.get(name).to_vec());
    let mut external_wait: Vec<(Spent, Nanos)> = Vec::new();
    for (what, time) in &path.external_wait {
        // The same name may stand under several numbers.
        let spent = Spent::ExternalWait(*what, name_of(what));
        let same = |(other, _): &&mut (Spent, Nanos)| match (other, &spent) {
            (Spent::ExternalWait(ExternalWait::Process(_), a), Spent::ExternalWait(ExternalWait::Process(_), b))
            | (Spent::ExternalWait(ExternalWait::Scanner(_), a), Spent::ExternalWait(ExternalWait::Scanner(_), b)) => {
                a == b
            }
            _ => false,
        };
        match external_wait.iter_mut().find(same) {
            Some((_, sum)) => sum.0 += time.0,
            None => external_wait.push((spent, *time)),
        }
    }
    let mut all = vec![(Spent::Tax, path.tax()), (Spent::Run, run), (Spent::RunQueue, queue)];
    all.extend(external_wait);
    all.retain(|(_, time)| time.0 > 0);
    all.sort_by_key(|(_, time)| Reverse(*time));
    all
}

/// The process of `-p`: the first that existed before.
fn followed(forest: &Forest<'_>) -> Option<(Pid, Vec<u8>)> {
    let launch = forest.launches.iter().find(|launch| launch.origin == Origin::Existed)?;
    Some((launch.pid?, launch.command.label()))
}
