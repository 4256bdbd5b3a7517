//! Changes to the machine: no waits for freed memory, a limit for the launch cost, and no
//! permission scanner.

use super::Context;
use crate::external_wait::{ExternalWait, external_wait_of};
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;

/// Maximum launch cost on a healthy machine. Launches of large dynamic programs take a few
/// milliseconds.
pub const QUICK_LAUNCH: Nanos = Nanos(10_000_000);

/// Removes `teardown`, so that a launch ends with its work.
pub(super) fn without_teardown(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = launches.to_vec();
    affected.retain(|launch| {
        let teardown = forest.launches[*launch as usize].phases.get(Phase::Teardown);
        teardown.is_some_and(|teardown| teardown.0 > 0)
    });
    affected.iter().for_each(|launch| adjustments.scale(*launch, Phase::Teardown, 0.0));
    affected
}

/// Reduces the launch cost to `QUICK_LAUNCH`, every phase by the same share.
pub(super) fn quick_launch(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut affected = Vec::new();
    for &launch in launches {
        let cost = forest.launches[launch as usize].launch_cost().unwrap_or_default();
        if cost > QUICK_LAUNCH {
            let remains = QUICK_LAUNCH.0 as f64 / cost.0 as f64;
            adjustments.uncertainty_ns += QUICK_LAUNCH.0 as f64 / 2.0;
            Phase::COST.iter().for_each(|phase| adjustments.scale(launch, *phase, remains));
            affected.push(launch);
        }
    }
    affected
}

/// Removes all waits for a permission scanner, of every launch, because a scanner affects all
/// launches.
pub(super) fn without_scanner(context: Context<'_, '_>, adjustments: &mut Adjustments) -> Vec<u32> {
    adjustments.no_scan = true;
    let mut affected = Vec::new();
    for (thread, each) in (0..).zip(&context.timelines.threads) {
        let slices = context.timelines.slices(thread).iter();
        let scanned = slices.filter(|slice| matches!(external_wait_of(slice), ExternalWait::Scanner(_)));
        let waited: u64 = scanned.filter_map(|slice| Some(slice.wake_span.or(slice.off_span)?.0)).sum();
        if waited > 0 {
            adjustments.add_saving(each.launch, waited as f64);
            affected.push(each.launch);
        }
    }
    affected.sort_unstable();
    affected.dedup();
    affected
}
