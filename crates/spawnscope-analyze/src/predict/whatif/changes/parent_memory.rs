//! Changes to the cost of large parents. A fork copies the parent's page tables, and the exec or
//! exit of the child frees the copies.

use crate::model::grouped::grouped;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use spawnscope_data::statistics::median;

/// Entries per page table, which is the number of small pages in a huge page
/// (Documentation/admin-guide/mm/transhuge.rst).
const PAGES_IN_HUGE_PAGE: f64 = 512.0;

/// Reduces `create` to the cost of vfork, and makes the parent wait for the exec. Launches without
/// an exec cannot use vfork.
pub(super) fn vfork(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let each = context.launch(launch);
    // A child created by vfork must do nothing before its exec but prepare it.
    let works_before = each.instants.worked_until.get().is_some();
    let may_use_vfork = each.copies_page_tables() && !each.execs.is_empty() && !works_before;
    let Some(create) = context.constants.vfork_create.filter(|_| may_use_vfork) else { return false };
    reduce_create(context, launch, create, adjustments);
    adjustments.wait_for_exec(launch);
    true
}

/// Reduces `create` to the cost of a parent with huge pages, in which one page table entry replaces
/// 512.
pub(super) fn huge_pages(context: WhatIf<'_, '_>, launch: u32, adjustments: &mut Adjustments) -> bool {
    let each = context.launch(launch);
    let create = create_ns(context, launch).unwrap_or_default();
    let small = context.constants.fork_create.filter(|small| each.copies_page_tables() && create > *small);
    if let Some(small) = small {
        reduce_create(context, launch, small + (create - small) / PAGES_IN_HUGE_PAGE, adjustments);
    }
    small.is_some()
}

/// The first `1 / FIRST_LAUNCHES_DIVISOR` of a parent's launches show their cost before its memory
/// grew.
const FIRST_LAUNCHES_DIVISOR: usize = 10;

/// Reduces `create` of every launch to the median of the first tenth of its parent's launches.
pub(super) fn steady_parent(context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let copying = launches.iter().filter(|launch| context.launch(**launch).copies_page_tables());
    let by_parent = grouped(copying.filter_map(|launch| Some((context.forest.parent(*launch as usize)?, *launch))));
    let mut affected = Vec::new();
    for launches in by_parent.into_values() {
        let first = &launches[..launches.len().div_ceil(FIRST_LAUNCHES_DIVISOR)];
        let at_first = median(first.iter().filter_map(|launch| create_ns(context, *launch)));
        let Some(at_first) = at_first else { continue };
        for launch in launches {
            if create_ns(context, launch).is_some_and(|create| create > at_first) {
                reduce_create(context, launch, at_first, adjustments);
                affected.push(launch);
            }
        }
    }
    affected.sort_unstable();
    affected
}

/// Returns the duration of `create`. If it was not recorded, that is what it is assumed to be.
fn create_ns(context: WhatIf<'_, '_>, launch: u32) -> Option<f64> {
    let supposed = || Some(context.timelines.unknown.as_ref()?.creation(launch).supposed);
    let recorded = context.launch(launch).phases.get(Phase::Create);
    recorded.or_else(supposed).map(|create| create.0 as f64)
}

/// Reduces `create` to this duration, and accordingly the time that the child takes to free the
/// copies.
fn reduce_create(context: WhatIf<'_, '_>, launch: u32, create: f64, adjustments: &mut Adjustments) {
    let each = context.launch(launch);
    // Another change may have reduced `create` already.
    let current = create_ns(context, launch).unwrap_or_default() * adjustments.remaining_share(launch, Phase::Create);
    if current <= create {
        return;
    }
    adjustments.scale(launch, Phase::Create, create / current);
    let freed = free_time(each, current - create, context);
    adjustments.uncertainty_ns += create * context.constants.spread + freed * context.constants.free_spread;
    let free_phase = if each.execs.is_empty() { Phase::Teardown } else { Phase::Exec };
    let span = each.phases.ns(free_phase);
    if span > 0.0 {
        let min = usual_exec(context).min(span * MIN_EXEC_SHARE);
        adjustments.scale(launch, free_phase, (span - freed).max(min) / span);
    }
}

/// Maximum CPU time of an exec by a small process, in nanoseconds.
const MAX_EXEC_CPU: f64 = 1e6;
/// Maximum time for freeing a page table, as a multiple of the time for copying it.
const MAX_FREE_PER_COPY: f64 = 1.5;
/// Minimum share of an exec or exit that remains, if that is less than the usual exec of a small
/// process.
const MIN_EXEC_SHARE: f64 = 0.5;

fn usual_exec(context: WhatIf<'_, '_>) -> f64 {
    context.constants.exec.unwrap_or(MAX_EXEC_CPU).min(MAX_EXEC_CPU)
}

/// Returns how long it takes to free page tables whose copying took `copied` nanoseconds. The
/// measured ratio is for small page tables. Large page tables do not fit into a cache, so if the
/// exec used more CPU time than this ratio predicts, the recorded time is used.
fn free_time(launch: &Launch<'_>, copied: f64, context: WhatIf<'_, '_>) -> f64 {
    let constants = context.constants;
    let exec = launch.cpu_phases.get(Phase::Exec).or(launch.phases.get(Phase::Exec));
    let recorded = (exec.unwrap_or_default().0 as f64 - usual_exec(context)).min(copied * MAX_FREE_PER_COPY);
    recorded.max(copied * constants.free_per_copy.unwrap_or_default())
}
