//! Launches that are removed: remove, builtin.

use std::collections::{BTreeSet, HashSet};

use super::Context;
use crate::launch::Launch;
use crate::patterns::pipeline::is_captured;
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;
use spawnscope_data::statistics::median;

const MEBIBYTE: f64 = 1_048_576.0;
/// Minimum number of forks without exec to compute their median.
const ENOUGH_FORKS: usize = 5;
/// Share of a program's run that its fork needs when the shell does the work there: something between the start-up of the program, which goes,
/// and all of it. The spread is that of an even distribution from nothing to all.
const WORK_SHARE: f64 = 0.5;
const WORK_SPREAD: f64 = 0.29;

pub(super) fn remove(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = launches.to_vec();
    affected.retain(|launch| forest.launches[*launch as usize].origin != Origin::Command);
    affected.iter().for_each(|launch| adjustments.remove(forest, *launch));
    affected
}

/// Lets the parent, a shell, do the work of the program. The fork for a `$( )` or a pipeline stays, with its setup.
pub(super) fn builtin(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let forest = context.forest;
    let bare_end = end_of_bare_forks(forest);
    let company = with_company(forest, launches);
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        if each.origin == Origin::Command || each.execs.is_empty() {
            continue;
        }
        affected.push(launch);
        if !keeps_its_fork(context, launch, company.contains(&launch)) {
            adjustments.remove(forest, launch);
            continue;
        }
        adjustments.remove_within(forest, forest.children(launch as usize));
        for phase in [Phase::Exec, Phase::Load] {
            adjustments.scale(launch, phase, 0.0);
        }
        adjustments.scale(launch, Phase::Run, WORK_SHARE);
        let run = each.phases.get(Phase::Run).unwrap_or_default();
        adjustments.uncertain += WORK_SPREAD * run.0 as f64;
        let own = each.phases.get(Phase::Teardown).filter(|own| own.0 > 0);
        let end = bare_end.or_else(|| end_without_exec(context, each));
        if let Some((own, end)) = own.zip(end) {
            adjustments.scale(launch, Phase::Teardown, end / own.0 as f64);
        }
    }
    affected
}

/// Returns the median teardown of forks without exec. `None` when there are too few.
fn end_of_bare_forks(forest: &Forest<'_>) -> Option<f64> {
    let forks = || forest.launches.iter().filter(|launch| launch.is_fork_without_exec());
    let ends = forks().filter_map(|fork| fork.phases.get(Phase::Teardown));
    let median = median(ends.map(|end| end.0 as f64));
    median.filter(|_| forks().count() >= ENOUGH_FORKS)
}

/// Returns the teardown of a launch without an exec, which would have freed the page tables of the parent.
fn end_without_exec(context: Context<'_, '_>, launch: &Launch<'_>) -> Option<f64> {
    let end = launch.phases.get(Phase::Teardown)?.0 as f64;
    let tables = context.constants.page_free? * launch.parent_rss_bytes.get()? as f64 / MEBIBYTE;
    Some(end + tables)
}

/// Whether the fork stays. A command that runs alone needs no fork when the shell does the work. A command in a pipeline, or with captured
/// output (`$( )`), does.
fn keeps_its_fork(context: Context<'_, '_>, launch: u32, has_company: bool) -> bool {
    let Context { forest, timelines, .. } = context;
    let at = &forest.launches[launch as usize].instants;
    let is_known = forest.parent(launch as usize).is_some() && at.created.get().is_some() && at.reaped.get().is_some();
    !is_known || has_company || is_captured(forest, timelines, launch)
}

/// Returns those of `launches` that overlap another launch by the same parent.
fn with_company(forest: &Forest<'_>, launches: &[u32]) -> HashSet<u32> {
    let parents: BTreeSet<usize> = launches
        .iter()
        .filter_map(|launch| forest.parent(*launch as usize))
        .collect();
    let mut company = HashSet::new();
    for parent in parents {
        let siblings = forest.children(parent);
        // Siblings are in order of creation, so the latest end so far shows whether an earlier one still runs.
        let mut latest = Nanos(0);
        for (position, sibling) in siblings.iter().enumerate() {
            let at = &forest.launches[*sibling].instants;
            let next = siblings.get(position + 1);
            let next_begins = next.and_then(|next| forest.launches[*next].instants.created.get());
            let reaped = at.reaped.get().unwrap_or(Nanos(u64::MAX));
            if at.created.get().is_some_and(|created| created < latest) || next_begins.is_some_and(|next| next < reaped)
            {
                company.insert(*sibling as u32);
            }
            latest = latest.max(reaped);
        }
    }
    company
}
