//! Launches of one program that are merged. What each of them repeats before it begins its work is saved; the work stays.

use std::collections::BTreeMap;

use super::Context;
use super::start_up::{Fixed, StartUps};
use crate::patterns::chains::did_other_work;
use crate::patterns::work::working;
use crate::phases::Phase;
use crate::whatif::adjustments::Adjustments;

/// Merges up to `size` launches of one program by one parent into the first of them. The fixed part of a run is paid once; the work beyond
/// it stays. A process that did other work before it became the program is skipped.
pub(super) fn batch(context: Context<'_, '_>, launches: &[u32], size: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let Context { forest, timelines, .. } = context;
    let mut groups: BTreeMap<(usize, &[u8]), Vec<u32>> = BTreeMap::new();
    let only_that = |launch: &&u32| !did_other_work(forest, timelines, **launch);
    for &launch in launches.iter().filter(only_that) {
        let parent = forest.parent(launch as usize);
        if let Some(parent) = parent.filter(|_| working(forest, timelines, launch as usize).is_some()) {
            let name = forest.launches[launch as usize].command.name;
            groups.entry((parent, name)).or_default().push(launch);
        }
    }
    let start_ups = StartUps::of(context, groups.values().flatten());
    let mut affected = Vec::new();
    for group in groups.values() {
        for batch in group.chunks(size.max(1) as usize).filter(|batch| batch.len() > 1) {
            let fixed = start_ups.fixed(batch);
            merge(context, batch, fixed, adjustments);
            affected.extend(batch);
        }
    }
    affected
}

/// Merges launches into the first of them.
fn merge(context: Context<'_, '_>, batch: &[u32], fixed: Fixed, adjustments: &mut Adjustments) {
    let run_of = |launch: u32| working(context.forest, context.timelines, launch as usize);
    let work_of = |launch: u32| run_of(launch).map_or(0.0, |run| (run.0 as f64 - fixed.likely).max(0.0));
    let (first, others) = (batch[0], &batch[1..]);
    let work: f64 = batch.iter().map(|launch| work_of(*launch)).sum();
    let own = run_of(first).unwrap_or_default().0.max(1) as f64;
    let merged = fixed.likely + work;
    adjustments.scale(first, Phase::Run, merged / own);
    // Waits for a CPU that other processes took stay in proportion to the work of all. The first launch alone may have waited long.
    let queued = |launch: u32| {
        let run = context.forest.launches[launch as usize].phases.get(Phase::Run);
        run.unwrap_or_default().since(run_of(launch).unwrap_or_default()).0 as f64
    };
    let worked: f64 = batch
        .iter()
        .filter_map(|launch| run_of(*launch))
        .map(|run| run.0 as f64)
        .sum();
    let all_queued: f64 = batch.iter().map(|launch| queued(*launch)).sum();
    if queued(first) > 0.0 && worked > 0.0 {
        adjustments.scale_queue(first, all_queued * merged / worked / queued(first));
    }
    adjustments.uncertain += fixed.deviation() * others.len() as f64;
    for &other in others {
        adjustments.remove(context.forest, other);
        adjustments.moves_work(other, first, work_of(other));
    }
    // The first one saves nothing itself. Counted alone, it would look like spread.
    adjustments.count_together(&batch[..2]);
}
