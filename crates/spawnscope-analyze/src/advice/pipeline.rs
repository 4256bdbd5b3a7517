//! The shell forks around a launch: the fork that feeds it through a pipe, and the subshell that only runs it. Also whether the shell reads
//! its output. `x=$(echo "$y" | sed s/a/b/)` is three launches, and all of them disappear when the shell does the work itself.

use crate::Origin;
use crate::tree::Forest;
use crate::whatif::WhatIf;
use crate::whatif::changes::is_captured;

/// A launch and the forks that exist only for it.
#[derive(Clone, Debug)]
pub(super) struct PipelineUnit {
    /// The launches that disappear, with all their descendants, when the shell does this launch's work.
    pub(super) unit: Vec<u32>,
    /// Forks of the shell in `unit`: the feeder, and the subshell.
    pub(super) forks: Vec<u32>,
    /// Whether a fork of the shell writes the standard input of the launch.
    pub(super) is_fed: bool,
    /// Whether the shell reads the output of the launch.
    pub(super) is_captured: bool,
}

impl PipelineUnit {
    /// Returns the unit of the launch at `position` among the children of one process.
    pub(super) fn of(whatif: &WhatIf<'_, '_>, siblings: &[usize], position: usize) -> PipelineUnit {
        let forest = whatif.forest;
        let launch = siblings[position];
        let parent = forest
            .parent(launch)
            .filter(|parent| forest.launches[*parent].is_fork_without_exec());
        // In a subshell with just these two children, the fork can only be the feeder.
        let is_alone = parent.is_some() && siblings.len() == 2;
        let is_feeder =
            |before: &usize| is_bare_leaf(forest, *before) && (is_alone || run_side_by_side(forest, *before, launch));
        let before = position.checked_sub(1).map(|before| siblings[before]);
        let feeder = before.filter(is_feeder);
        let mut unit: Vec<u32> = feeder.into_iter().chain([launch]).map(|index| index as u32).collect();
        let is_read = |index: usize| is_captured(forest, whatif.timelines, index as u32);
        // A subshell that reads the output uses it, and continues after the launch.
        let is_read_directly = is_read(launch);
        let subshell = parent.filter(|_| siblings.len() == unit.len() && !is_read_directly);
        if let Some(subshell) = subshell {
            unit = vec![subshell as u32];
        }
        PipelineUnit {
            unit,
            forks: feeder.into_iter().chain(subshell).map(|index| index as u32).collect(),
            is_fed: feeder.is_some(),
            is_captured: is_read_directly || subshell.is_some_and(is_read),
        }
    }
}

/// Whether a launch is a fork that never execs and launches nothing.
pub(super) fn is_bare_leaf(forest: &Forest<'_>, index: usize) -> bool {
    let launch = &forest.launches[index];
    launch.origin == Origin::Launched && launch.execs.is_empty() && forest.children(index).is_empty()
}

/// Whether `second` was created before `first`, the older one, was reaped.
fn run_side_by_side(forest: &Forest<'_>, first: usize, second: usize) -> bool {
    let ended = forest.launches[first].instants.reaped.get();
    let began = forest.launches[second].instants.created.get();
    ended.zip(began).is_some_and(|(ended, began)| began < ended)
}
