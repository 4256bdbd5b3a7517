//! Everything that `spawnscope whatif` says, as plain data: the predicted wall, what was changed, and what is critical then.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::changes::Change;
use super::constants::Constants;
use super::{Fix, Prediction, WhatIf};
use crate::analyze::critical_path::CriticalPath;
use crate::analyze::launch::Command;
use crate::analyze::replay::{Replay, Setting, is_believable, unbelievable};
use crate::analyze::report::{Spent, where_the_wall_went};
use crate::analyze::select::{SelectError, Selector};
use crate::analyze::timeline::Timelines;
use crate::analyze::tree::Forest;
use crate::event::Nanos;
use crate::record::reader::Recording;
use crate::units::counted;

/// A change as it was asked for.
#[derive(Clone, Debug)]
pub struct RequestedChange {
    /// What is done.
    pub change: Change,
    /// As it was typed.
    pub text: String,
    /// For which launches; all of them without one.
    pub selector: Option<Selector>,
}

impl RequestedChange {
    /// A change that is not of some launches only.
    #[must_use]
    pub fn of_all(text: impl Into<String>, change: Change) -> RequestedChange {
        RequestedChange {
            change,
            text: text.into(),
            selector: None,
        }
    }
}

/// What changes would bring.
#[derive(Clone, Debug)]
pub struct WhatIfReport {
    /// The wall, and the interval it is likely to lie in.
    pub prediction: Prediction,
    /// Every change, with the number of launches that it holds for and of those that were selected.
    pub changes: Vec<Changed>,
    /// What the wall would be spent on.
    pub where_the_wall_went: Vec<(Spent, Nanos)>,
    /// Forks that only ran what is removed and stay, by their name, and how many.
    pub forks_left: Option<(Vec<u8>, u64)>,
    /// The programs on the critical path then, the longest first.
    pub critical_after: Vec<Critical>,
}

/// A change that was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// As it was typed.
    pub text: String,
    /// What it is.
    pub change: Change,
    /// Launches that are different.
    pub launches: u64,
    /// Launches that were selected.
    pub selected: u64,
}

/// A program on the critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Critical {
    /// Its name as people see it.
    pub label: Vec<u8>,
    /// Its time on the path.
    pub critical: Nanos,
    /// The part of it that is not `run`.
    pub tax: Nanos,
}

/// Why nothing can be predicted.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// A selection that no launch fits.
    #[error(
        "`{0}` selects no launch of this recording; `spawnscope report --by command --top 0` lists the programs, `spawnscope tree` their arguments"
    )]
    NothingSelected(String),
    /// The same, by the line that asked for a launch.
    #[error("`{0}` selects no launch of this recording; `spawnscope report --by line --top 0` lists the lines")]
    NoLineSelected(String),
    /// The line only calls a function that asked for launches.
    #[error(
        "`{asked}` selects no launch of this recording: that line calls what asked for {launches}, most of them at {call_site}: select them by `line={call_site}`; `spawnscope flame --by caller` shows who calls whom"
    )]
    OnlyCalls {
        /// As it was typed.
        asked: String,
        /// How many, in words.
        launches: String,
        /// The place that asked for most of them.
        call_site: String,
    },
    /// A selection by what the recording does not hold.
    #[error(transparent)]
    Selection(#[from] SelectError),
    /// `-p`, `-a`, or a recorder that was cut off.
    #[error(
        "this recording has no command that began and ended in it, so that there is no wall to predict: record one with `spawnscope record -- CMD`"
    )]
    NoWall,
    /// The replay misses the wall by that share of it.
    #[error(
        "no prediction: {}; record the command up to its end, or with fewer losses",
        unbelievable(*.0)
    )]
    Unbelievable(f64),
    /// The recorder is still at work.
    #[error("this recording is still being made: the wall is known when the command has ended")]
    IsLive,
}

/// Tries the changes.
///
/// # Errors
/// When a selection selects nothing, or there is no wall to predict.
pub fn whatif_report(
    recording: &Recording,
    forest: &Forest<'_>,
    timelines: &Timelines,
    asked: &[RequestedChange],
) -> Result<WhatIfReport, WhatIfError> {
    let no_wall = || {
        if recording.info.is_live && !recording.info.command.is_empty() {
            WhatIfError::IsLive
        } else {
            WhatIfError::NoWall
        }
    };
    let setting = Setting::of(recording).ok_or_else(no_wall)?;
    let fixes: Result<Vec<Fix>, WhatIfError> = asked.iter().map(|asked| resolve(asked, forest)).collect();
    let fixes = fixes?;
    let replay = Replay::new(forest, timelines, &setting).ok_or(WhatIfError::NoWall)?;
    if !is_believable(replay.error()) {
        return Err(WhatIfError::Unbelievable(replay.error()));
    }
    let whatif = WhatIf {
        forest,
        timelines,
        replay: &replay,
        constants: &Constants::of(recording, forest),
    };
    let prediction = whatif.predict(&fixes);
    let path = whatif.critical_path(&fixes);
    let removed = asked.iter().zip(&prediction.changed);
    let removed = removed.filter(|(asked, _)| asked.change == Change::Remove);
    let removed: HashSet<u32> = removed.flat_map(|(_, held)| held).copied().collect();
    let changed = asked.iter().zip(&fixes).zip(&prediction.changed);
    Ok(WhatIfReport {
        forks_left: forks_left(forest, &removed),
        changes: changed
            .map(|((asked, fix), held)| changed_by(asked, fix, held))
            .collect(),
        prediction,
        where_the_wall_went: where_the_wall_went(&path, recording),
        critical_after: critical_programs(&path, forest),
    })
}

fn resolve(asked: &RequestedChange, forest: &Forest<'_>) -> Result<Fix, WhatIfError> {
    let launches = match &asked.selector {
        Some(selector) => selector.select(forest)?,
        None => Vec::new(),
    };
    match &asked.selector {
        Some(selector) if launches.is_empty() && selector.is_by_line() => {
            return Err(no_line(asked, selector, forest));
        }
        Some(_) if launches.is_empty() => return Err(WhatIfError::NothingSelected(asked.text.clone())),
        _ => {}
    }
    Ok(Fix {
        change: asked.change,
        launches,
    })
}

/// Why a line selects nothing.
fn no_line(asked: &RequestedChange, selector: &Selector, forest: &Forest<'_>) -> WhatIfError {
    let text = asked.text.clone();
    match selector.called_from(forest) {
        Some((call_site, count)) => WhatIfError::OnlyCalls {
            asked: text,
            launches: counted(count, "launch", "launches"),
            call_site,
        },
        None => WhatIfError::NoLineSelected(text),
    }
}

/// Forks without exec that stay although all that they ran is removed: by their name, those that are most. What was forked to feed
/// that stays with them.
fn forks_left(forest: &Forest<'_>, removed: &HashSet<u32>) -> Option<(Vec<u8>, u64)> {
    let is_idle = |index: usize| {
        let is_bare = forest.launches[index].is_fork_without_exec() && forest.children(index).is_empty();
        removed.contains(&(index as u32)) || is_bare
    };
    let parents: HashSet<usize> = removed
        .iter()
        .filter_map(|launch| forest.parent(*launch as usize))
        .collect();
    let mut left: HashMap<Vec<u8>, u64> = HashMap::new();
    for parent in parents {
        let launch = &forest.launches[parent];
        let stays = launch.is_fork_without_exec() && !removed.contains(&(parent as u32));
        if stays && forest.children(parent).iter().all(|child| is_idle(*child)) {
            *left.entry(launch.command.label()).or_default() += 1;
        }
    }
    left.into_iter()
        .max_by_key(|(label, count)| (*count, Reverse(label.clone())))
}

fn changed_by(asked: &RequestedChange, fix: &Fix, held: &[u32]) -> Changed {
    Changed {
        text: asked.text.clone(),
        change: asked.change,
        launches: held.len() as u64,
        selected: fix.launches.len() as u64,
    }
}

fn critical_programs(path: &CriticalPath, forest: &Forest<'_>) -> Vec<Critical> {
    let mut programs: HashMap<Command<'_>, (u64, u64)> = HashMap::new();
    for (launch, charges) in forest.launches.iter().zip(&path.launches) {
        let sums = programs.entry(*launch.command).or_default();
        sums.0 += charges.total().0;
        sums.1 += charges.tax().0;
    }
    let critical = |(command, (critical, tax)): (Command<'_>, (u64, u64))| Critical {
        label: command.label(),
        critical: Nanos(critical),
        tax: Nanos(tax),
    };
    let on_path = programs.into_iter().filter(|(_, (critical, _))| *critical > 0);
    let mut programs: Vec<Critical> = on_path.map(critical).collect();
    programs.sort_by(|a, b| (Reverse(a.critical), &a.label).cmp(&(Reverse(b.critical), &b.label)));
    programs
}
