//! The cost of a large parent: fork copies its page tables, and the exec or exit of the child frees the copies.

use std::collections::BTreeMap;

use super::Context;
use crate::launch::Launch;
use crate::phases::Phase;
use crate::whatif::adjustments::Adjustments;
use spawnscope_data::statistics::median;

/// Entries per page table, which is the number of small pages in a huge page (Documentation/admin-guide/mm/transhuge.rst).
const PAGES_IN_HUGE_PAGE: f64 = 512.0;

/// Creates launches at the cost of vfork; the parent then waits for the exec. Launches without exec cannot use vfork.
pub(super) fn vfork(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let Some(create) = context.constants.vfork_create else {
        return Vec::new();
    };
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        // Until its exec, a vfork must do nothing but prepare it.
        let works_before = each.instants.worked_until.get().is_some();
        if each.copies_page_tables() && !each.execs.is_empty() && !works_before {
            create_at(context, launch, create, adjustments);
            adjustments.wait_for_exec(launch);
            affected.push(launch);
        }
    }
    affected
}

/// Creates launches at the cost of a parent with huge pages: one page table entry replaces 512.
pub(super) fn huge_pages(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let Some(least) = context.constants.fork_create else {
        return Vec::new();
    };
    let mut affected = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        let create = each.phases.get(Phase::Create).unwrap_or_default().0 as f64;
        if each.copies_page_tables() && create > least {
            create_at(
                context,
                launch,
                least + (create - least) / PAGES_IN_HUGE_PAGE,
                adjustments,
            );
            affected.push(launch);
        }
    }
    affected
}

/// The first tenth of a parent's children counts as its first launches.
const FIRST: usize = 10;

/// Reduces the cost of every launch to that of the first tenth of its parent's launches.
pub(super) fn steady_parent(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut by_parent: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    for &launch in launches {
        if let Some(parent) = context.forest.parent(launch as usize)
            && context.forest.launches[launch as usize].copies_page_tables()
        {
            by_parent.entry(parent).or_default().push(launch);
        }
    }
    let create = |launch: &u32| context.forest.launches[*launch as usize].phases.get(Phase::Create);
    let mut affected = Vec::new();
    for launches in by_parent.into_values() {
        let first = &launches[..launches.len().div_ceil(FIRST)];
        let at_first = median(first.iter().filter_map(create).map(|create| create.0 as f64));
        let Some(at_first) = at_first else { continue };
        for launch in launches {
            if create(&launch).is_some_and(|create| create.0 as f64 > at_first) {
                create_at(context, launch, at_first, adjustments);
                affected.push(launch);
            }
        }
    }
    affected.sort_unstable();
    affected
}

/// Reduces `create`, and accordingly the time that the child takes to free the copies.
fn create_at(context: Context<'_, '_>, launch: u32, create: f64, adjustments: &mut Adjustments) {
    let each = &context.forest.launches[launch as usize];
    let Some(own) = each.phases.get(Phase::Create) else {
        return;
    };
    // Another change may have reduced it already.
    let own = own.0 as f64 * adjustments.remaining_share(launch, Phase::Create);
    if own <= create {
        return;
    }
    adjustments.scale(launch, Phase::Create, create / own);
    let freed = freed_by(each, own - create, context);
    adjustments.uncertain += create * context.constants.spread + freed * context.constants.free_spread;
    let pays = if each.execs.is_empty() {
        Phase::Teardown
    } else {
        Phase::Exec
    };
    if let Some(paid) = each
        .phases
        .get(pays)
        .map(|paid| paid.0 as f64)
        .filter(|paid| *paid > 0.0)
    {
        let least = usual_exec(context).min(paid * MIN_EXEC);
        adjustments.scale(launch, pays, (paid - freed).max(least) / paid);
    }
}

/// Upper limit of the CPU time for an exec of a small process, in nanoseconds.
const MAX_EXEC_CPU: f64 = 1e6;
/// Upper limit of freeing a page table, as a multiple of copying it.
const MAX_FREE_PER_COPY: f64 = 1.5;
/// Upper limit of the guaranteed remainder of an exec or exit, as a share of it.
const MIN_EXEC: f64 = 0.5;

/// Returns the CPU time of an exec of a small process.
fn usual_exec(context: Context<'_, '_>) -> f64 {
    context.constants.exec.unwrap_or(MAX_EXEC_CPU).min(MAX_EXEC_CPU)
}

/// Returns the time to free what took `copied` to copy. The ratio was measured with little memory. Large page tables do not fit into a
/// cache, so an exec that used more CPU time than predicted takes precedence.
fn freed_by(launch: &Launch<'_>, copied: f64, context: Context<'_, '_>) -> f64 {
    let constants = context.constants;
    let exec = launch.cpu_phases.get(Phase::Exec).unwrap_or_default().0 as f64;
    let seen = (exec - usual_exec(context)).min(copied * MAX_FREE_PER_COPY);
    seen.max(copied * constants.free_per_copy.unwrap_or_default())
}
