//! What a large parent costs: fork copies its page tables, and the child's exec or exit gives the copies back.

use super::Context;
use crate::analyze::phases::Phase;
use crate::analyze::whatif::edits::Edits;
use crate::event::Mechanism;

/// Entries of a page table: as many small pages are one huge page (Documentation/admin-guide/mm/transhuge.rst).
const PAGES_IN_HUGE_PAGE: f64 = 512.0;

/// Creation at the cost of vfork; the parent then waits for the exec. A launch without one cannot be made so.
pub(super) fn vfork(context: Context<'_, '_>, launches: &[u32], edits: &mut Edits) -> Vec<u32> {
    let Some(create) = context.constants.vfork_create else {
        return Vec::new();
    };
    let mut held = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        let copies = matches!(
            each.mechanism,
            Some(Mechanism::Fork | Mechanism::Clone | Mechanism::Clone3)
        );
        if copies && !each.execs.is_empty() {
            create_at(context, launch, create, edits);
            edits.wait_for(launch);
            held.push(launch);
        }
    }
    held
}

/// Page tables of huge pages have one entry for 512.
pub(super) fn huge_pages(context: Context<'_, '_>, launches: &[u32], edits: &mut Edits) -> Vec<u32> {
    let Some(least) = context.constants.fork_create else {
        return Vec::new();
    };
    let mut held = Vec::new();
    for &launch in launches {
        let each = &context.forest.launches[launch as usize];
        let create = each.phases.get(Phase::Create).unwrap_or_default().0 as f64;
        let copies = matches!(
            each.mechanism,
            Some(Mechanism::Fork | Mechanism::Clone | Mechanism::Clone3)
        );
        if copies && create > least {
            create_at(context, launch, least + (create - least) / PAGES_IN_HUGE_PAGE, edits);
            held.push(launch);
        }
    }
    held
}

/// Shortens `create`, and by as much as goes with it what the child pays to give the copies back.
fn create_at(context: Context<'_, '_>, launch: u32, create: f64, edits: &mut Edits) {
    let each = &context.forest.launches[launch as usize];
    let Some(own) = each.phases.get(Phase::Create).map(|own| own.0 as f64) else {
        return;
    };
    if own <= create {
        return;
    }
    edits.uses_constants = true;
    edits.scale(launch, Phase::Create, create / own);
    let freed = (own - create) * context.constants.free_per_copy.unwrap_or_default();
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
        edits.scale(launch, pays, 1.0 - (freed / paid).min(MOST_FREED));
    }
}

/// An exec never gets cheaper than this share of itself by a smaller image to give back.
const MOST_FREED: f64 = 0.9;
