//! The report of `spawnscope whatif` as plain data: the predicted wall, the changed launches, and
//! the new critical path.

use std::cmp::Reverse;

use super::changes::Change;
use super::constants::Constants;
use super::{AppliedChange, Prediction, Takeover, WhatIf};
use crate::model::launch::Command;
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use crate::path::critical_path::{CriticalPath, critical_path};
use crate::path::spent::{Spent, where_the_wall_went};
use crate::patterns::pipeline::is_bare_fork;
use crate::predict::replay::{Parameters, Replay, is_reliable, unreliable_text};
use crate::sites::select::{SelectError, Selector};
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::{Info, Recording};
use spawnscope_data::units::counted;

#[derive(Clone, Debug)]
pub struct RequestedChange {
    pub change: Change,
    pub text: String,
    /// Selects the launches that the change applies to. `None` selects all launches.
    pub selector: Option<Selector>,
}

impl RequestedChange {
    pub fn of_all(text: impl Into<String>, change: Change) -> RequestedChange {
        RequestedChange { change, text: text.into(), selector: None }
    }
}

#[derive(Clone, Debug)]
pub struct WhatIfReport {
    pub collector: String,
    pub runs: usize,
    pub prediction: Prediction,
    pub changes: Vec<ChangeEffect>,
    pub where_the_wall_went: Vec<(Spent, Nanos)>,
    /// The forks that remain although all their launches are removed: the most frequent name and
    /// its count.
    pub forks_left: Option<(Vec<u8>, u64)>,
    /// What takes over, if the changes save far less than they remove from the critical path.
    pub takeover: Option<Takeover>,
    /// The programs on the new critical path, the longest time first.
    pub critical_after: Vec<CriticalProgram>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeEffect {
    pub text: String,
    pub change: Change,
    pub launches: u64,
    pub selected: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalProgram {
    pub label: Vec<u8>,
    pub critical: Nanos,
    /// The part of this time that is not `run`.
    pub tax: Nanos,
}

#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    #[error("no launch matches `{0}`")]
    NothingSelected(String),
    #[error("no launch matches `{0}`")]
    NoLineSelected(String),
    /// The line only calls a function that requests launches.
    #[error(
        "no launch matches `{requested}`; that line calls functions that requested {launches}, most of them at {call_site} \
         (select these with `line={call_site}`)"
    )]
    OnlyCalls { requested: String, launches: String, call_site: String },
    #[error(transparent)]
    Selection(#[from] SelectError),
    /// The recording was made with `-p` or `-a`, or the recorder was killed.
    #[error(
        "this recording contains no complete command, so there is no wall to predict: record one with `spawnscope record -- CMD`"
    )]
    NoWall,
    #[error(
        "no prediction: {}; record the command to its end, or with fewer lost events",
        unreliable_text(*.0)
    )]
    Unreliable(f64),
    /// The collector did not see what processes waited for.
    #[error(
        "no prediction: this recording does not contain what processes waited for, so it cannot be replayed; record with eBPF \
         (`sudo spawnscope record -- CMD`)"
    )]
    NoWaits,
    #[error("this recording is still in progress: the wall time is known when the command has ended")]
    IsLive,
}

/// Replays the recording with the requested changes.
///
/// # Errors
/// Fails if a selection matches no launch, or if there is no wall to predict.
pub fn whatif_report(
    recording: &Recording,
    forest: &Forest<'_>,
    timelines: &Timelines,
    requested: &[RequestedChange],
) -> Result<WhatIfReport, WhatIfError> {
    let parameters = Parameters::of(recording).ok_or_else(|| no_wall(&recording.info))?;
    if !recording.info.sees_scheduler() && !timelines.is_reconstructed() {
        return Err(WhatIfError::NoWaits);
    }
    let resolved = requested.iter().map(|requested| resolve(requested, forest));
    let changes: Vec<AppliedChange> = resolved.collect::<Result<_, WhatIfError>>()?;
    let replay = Replay::new(forest, timelines, &parameters).ok_or(WhatIfError::NoWall)?;
    if !is_reliable(replay.error()) {
        return Err(WhatIfError::Unreliable(replay.error()));
    }
    let whatif = WhatIf { forest, timelines, replay: &replay, constants: &Constants::of(recording, forest) };
    let prediction = whatif.predict(&changes);
    let path = whatif.critical_path(&changes);
    let [saved, ..] = prediction.saving();
    let takeover = critical_path(forest, timelines, parameters.wall)
        .and_then(|recorded| whatif.takeover(&changes, saved, &recorded, recording));
    let changed = requested.iter().zip(&changes).zip(&prediction.changed);
    let effect = |((requested, applied), affected): ((&RequestedChange, &AppliedChange), &Vec<u32>)| ChangeEffect {
        text: requested.text.clone(),
        change: requested.change,
        launches: affected.len() as u64,
        selected: applied.launches.len() as u64,
    };
    Ok(WhatIfReport {
        collector: recording.info.collector.clone(),
        runs: 1,
        forks_left: forks_left(forest, requested, &prediction),
        changes: changed.map(effect).collect(),
        prediction,
        takeover,
        where_the_wall_went: where_the_wall_went(&path, recording),
        critical_after: critical_programs(&path, forest),
    })
}

/// Combines the reports of several recordings of one command. The numbers are combined; all other
/// parts are those of the recording with the median prediction. `None` if there are none.
pub fn of_several(mut reports: Vec<WhatIfReport>) -> Option<WhatIfReport> {
    let predictions: Vec<Prediction> = reports.iter().map(|report| report.prediction.clone()).collect();
    let prediction = Prediction::of_several(&predictions)?;
    let runs = reports.len();
    let median = reports.iter().position(|report| report.prediction.predicted == prediction.predicted)?;
    Some(WhatIfReport { prediction, runs, ..reports.swap_remove(median) })
}

fn no_wall(info: &Info) -> WhatIfError {
    if info.is_live && !info.command.is_empty() { WhatIfError::IsLive } else { WhatIfError::NoWall }
}

fn resolve(requested: &RequestedChange, forest: &Forest<'_>) -> Result<AppliedChange, WhatIfError> {
    let mut launches = Vec::new();
    if let Some(selector) = &requested.selector {
        launches = selector.select(forest)?;
        if launches.is_empty() && selector.is_by_line() {
            return Err(no_line(requested, selector, forest));
        }
        if launches.is_empty() {
            return Err(WhatIfError::NothingSelected(requested.text.clone()));
        }
    }
    Ok(AppliedChange { change: requested.change, launches })
}

fn no_line(requested: &RequestedChange, selector: &Selector, forest: &Forest<'_>) -> WhatIfError {
    let text = requested.text.clone();
    match selector.called_from(forest) {
        Some((call_site, count)) => {
            WhatIfError::OnlyCalls { requested: text, launches: counted(count, "launch", "launches"), call_site }
        }
        None => WhatIfError::NoLineSelected(text),
    }
}

/// Returns the most frequent forks without exec that remain although all their launches are
/// removed. A fork that only wrote the input of a removed launch to a pipe does not count as a
/// launch.
fn forks_left(forest: &Forest<'_>, requested: &[RequestedChange], prediction: &Prediction) -> Option<(Vec<u8>, u64)> {
    let changed = requested.iter().zip(&prediction.changed);
    let removed = changed.filter(|(requested, _)| requested.change == Change::Remove);
    let removed: HashSet<u32> = removed.flat_map(|(_, launches)| launches).copied().collect();
    let parents: HashSet<usize> = removed.iter().filter_map(|launch| forest.parent(*launch as usize)).collect();
    let mut remaining: HashMap<Vec<u8>, u64> = HashMap::default();
    for parent in parents {
        let launch = &forest.launches[parent];
        let remains = launch.is_fork_without_exec() && !removed.contains(&(parent as u32));
        let mut children = forest.children(parent).iter();
        if remains && children.all(|child| removed.contains(&(*child as u32)) || is_bare_fork(forest, *child)) {
            *remaining.entry(launch.command.label()).or_default() += 1;
        }
    }
    remaining.into_iter().max_by_key(|(label, count)| (*count, Reverse(label.clone())))
}

fn critical_programs(path: &CriticalPath, forest: &Forest<'_>) -> Vec<CriticalProgram> {
    let mut programs: HashMap<Command<'_>, (u64, u64)> = HashMap::default();
    for (launch, charges) in forest.launches.iter().zip(&path.launches) {
        let sums = programs.entry(*launch.command).or_default();
        sums.0 += charges.total().0;
        sums.1 += charges.tax().0;
    }
    let on_path = programs.into_iter().filter(|(_, (critical, _))| *critical > 0);
    let programs = on_path.map(|(command, (critical, tax))| CriticalProgram {
        label: command.label(),
        critical: Nanos(critical),
        tax: Nanos(tax),
    });
    let mut programs: Vec<CriticalProgram> = programs.collect();
    programs.sort_by(|a, b| (Reverse(a.critical), &a.label).cmp(&(Reverse(b.critical), &b.label)));
    programs
}
