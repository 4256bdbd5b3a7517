//! Evidence about launches with unknown arguments. Rules that read arguments cannot include such
//! launches, so their predicted savings are too small.

use std::collections::HashSet;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::model::tree::Forest;
use spawnscope_data::units;

/// Rules that select launches by their arguments.
const RULES: [&str; 6] = ["builtin", "in-language", "many-per-launch", "needless-shell", "once", "pipeline"];

/// Adds how many more launches of the same programs by the same processes may belong to the
/// finding.
pub(super) fn add_evidence(context: &RuleContext<'_, '_>, finding: Finding) -> Finding {
    if !RULES.contains(&finding.rule) {
        return finding;
    }
    let forest = context.forest();
    let included: HashSet<u32> = finding.launches.iter().copied().collect();
    let included_kinds: HashSet<(Option<usize>, &[u8])> =
        finding.launches.iter().map(|index| parent_and_program(forest, *index)).collect();
    let left_out = (0..forest.launches.len() as u32)
        .filter(|index| has_unknown_arguments(forest, *index))
        .filter(|index| included_kinds.contains(&parent_and_program(forest, *index)) && !included.contains(index))
        .count();
    if left_out == 0 {
        return finding;
    }
    finding.evidence(format!(
        "{} may belong to this finding, but the saving covers only launches with known arguments",
        units::counted(left_out as u64, "more launch", "more launches")
    ))
}

/// Returns the parent and the program of a launch.
fn parent_and_program<'a>(forest: &Forest<'a>, index: u32) -> (Option<usize>, &'a [u8]) {
    let launch = &forest.launches[index as usize];
    (forest.parent(index as usize), launch.command.name)
}

fn has_unknown_arguments(forest: &Forest<'_>, index: u32) -> bool {
    let exec = forest.launches[index as usize].execs.last();
    exec.is_some_and(|exec| exec.argv_cut && exec.argv().is_empty())
}
