//! Changes that remove launches: remove, builtin.

use std::collections::BTreeSet;

use super::start_up::StartUps;
use super::work::{by_program, keep_run, keep_work};
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::patterns::pipeline::is_captured;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use foldhash::HashSet;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;
use spawnscope_data::statistics::median;

/// Minimum number of forks without exec whose median is used.
const MIN_FORKS: usize = 5;
/// Standard deviation of a shell's work in place of a program's, as a share of the program's: that
/// of a uniform distribution between zero and one. Most shells take less time than a program, for
/// the same work, but do not read large files faster.
pub(super) const WORK_SPREAD: f64 = 0.29;

pub(super) fn remove(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let is_removed = context.launch(launch).origin != Origin::Command;
    if is_removed {
        adjustments.remove(context.forest, launch);
    }
    is_removed
}

/// Lets the parent, a shell, do the work of the program, without the program's start-up. A fork for
/// `$( )` or a pipeline stays, with its setup and its end.
pub(super) fn builtin(context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let forest = context.forest;
    let fork_teardown = teardown_of_forks(forest);
    let concurrent = concurrent_launches(forest, launches);
    let mut affected = launches.to_vec();
    affected.retain(|launch| {
        let each = context.launch(*launch);
        each.origin != Origin::Command && !each.execs.is_empty()
    });
    let groups = by_program(forest, &affected);
    let start_ups = StartUps::of(context, &affected);
    for group in groups.values() {
        let fixed = start_ups.fixed_part(group);
        for &launch in group {
            let end = fork_teardown.or_else(|| teardown_without_exec(context, context.launch(launch)));
            let work = if keeps_fork(context, launch, concurrent.contains(&launch)) {
                keep_fork(context, launch, end, adjustments);
                keep_run(context, launch, fixed, 0.0, adjustments)
            } else {
                keep_work(context, launch, fixed, 0.0, adjustments)
            };
            adjustments.remove_within(forest, forest.children(launch as usize));
            adjustments.uncertainty_ns += WORK_SPREAD * work;
        }
    }
    affected
}

/// Keeps the creation and the end of a launch as those of a fork without an exec.
fn keep_fork(context: WhatIf<'_, '_>, launch: u32, teardown: Option<f64>, adjustments: &mut Adjustments) {
    for phase in [Phase::Exec, Phase::Load] {
        adjustments.scale(launch, phase, 0.0);
    }
    let recorded = context.launch(launch).phases.ns(Phase::Teardown);
    if let Some(teardown) = teardown.filter(|_| recorded > 0.0) {
        adjustments.scale(launch, Phase::Teardown, teardown / recorded);
    }
}

/// Returns the median teardown of forks without exec. `None` if there are too few.
fn teardown_of_forks(forest: &Forest<'_>) -> Option<f64> {
    let forks: Vec<_> = forest.launches.iter().filter(|launch| launch.is_fork_without_exec()).collect();
    let ends = forks.iter().filter_map(|fork| fork.phases.get(Phase::Teardown));
    let median = median(ends.map(|end| end.0 as f64));
    median.filter(|_| forks.len() >= MIN_FORKS)
}

/// Returns the teardown that a launch would have without its exec: it would also free the page
/// tables that its fork copied.
fn teardown_without_exec(context: WhatIf<'_, '_>, launch: &Launch<'_>) -> Option<f64> {
    let end = launch.phases.get(Phase::Teardown)?.0 as f64;
    let create = launch.phases.get(Phase::Create)?.0 as f64;
    let copied = (create - context.constants.vfork_create.unwrap_or_default()).max(0.0);
    Some(end + copied * context.constants.free_per_copy?)
}

/// Whether the fork stays. If the shell does the work, a command needs a fork only in a pipeline or
/// if its output is captured (`$( )`).
fn keeps_fork(context: WhatIf<'_, '_>, launch: u32, is_concurrent: bool) -> bool {
    let WhatIf { forest, timelines, .. } = context;
    let at = &context.launch(launch).instants;
    let has_ended = context.launch(launch).end().is_some();
    let is_known = forest.parent(launch as usize).is_some() && at.created.get().is_some() && has_ended;
    !is_known || is_concurrent || is_captured(forest, timelines, launch)
}

/// Returns the children of the launches' parents that overlap another child of the same parent.
fn concurrent_launches(forest: &Forest<'_>, launches: &[u32]) -> HashSet<u32> {
    let parents: BTreeSet<usize> = launches.iter().filter_map(|launch| forest.parent(*launch as usize)).collect();
    let mut concurrent = HashSet::default();
    for parent in parents {
        let siblings = forest.children(parent);
        // Siblings are in order of creation, so the latest end so far shows whether an earlier
        // sibling still runs.
        let mut latest = Nanos(0);
        for (position, sibling) in siblings.iter().enumerate() {
            let launch = &forest.launches[*sibling];
            let next = siblings.get(position + 1);
            let next_begins = next.and_then(|next| forest.launches[*next].instants.created.get());
            let ended = launch.end().unwrap_or(Nanos(u64::MAX));
            let created = launch.instants.created.get();
            if created.is_some_and(|created| created < latest) || next_begins.is_some_and(|next| next < ended) {
                concurrent.insert(*sibling as u32);
            }
            latest = latest.max(ended);
        }
    }
    concurrent
}
