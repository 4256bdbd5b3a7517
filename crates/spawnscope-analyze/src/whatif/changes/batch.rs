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
    let beyond = |launch: u32, run: f64| fixed.work_of(&context.forest.launches[launch as usize], run);
    let work_of = |launch: u32| run_of(launch).map_or(0.0, |run| beyond(launch, run.0 as f64));
    let (first, others) = (batch[0], &batch[1..]);
    let runs: Vec<RunParts> = batch.iter().map(|launch| RunParts::of(context, *launch)).collect();
    let sum = |of: fn(&RunParts) -> f64| runs.iter().map(of).sum::<f64>();
    let own = &runs[0];
    let work: f64 = batch
        .iter()
        .zip(&runs)
        .map(|(launch, run)| beyond(*launch, run.cpu))
        .sum();
    let merged = fixed.likely + work;
    adjustments.scale(first, Phase::Run, merged / own.cpu.max(1.0));
    // The first launch alone may have waited long for a CPU or a disk, so its waits do not represent those of all. Waits for a CPU that
    // other processes took stay in proportion to the work.
    let queues = sum(|run| run.queued) * merged / sum(|run| run.cpu).max(1.0);
    let factor = |all: f64, own: f64| if own > 0.0 { all / own } else { 1.0 };
    adjustments.scale_waits(
        first,
        [factor(queues, own.queued), factor(sum(|run| run.slept), own.slept)],
    );
    adjustments.uncertain += fixed.deviation() * others.len() as f64;
    for &other in others {
        adjustments.remove(context.forest, other);
        adjustments.moves_work(other, first, work_of(other));
    }
    // The first one saves nothing itself. Counted alone, it would look like spread.
    adjustments.count_together(&batch[..2]);
}

/// How a launch spent its run, in nanoseconds.
struct RunParts {
    cpu: f64,
    /// It was runnable without a CPU.
    queued: f64,
    /// It slept or waited.
    slept: f64,
}

impl RunParts {
    fn of(context: Context<'_, '_>, launch: u32) -> RunParts {
        let worked = working(context.forest, context.timelines, launch as usize).unwrap_or_default();
        let launch = &context.forest.launches[launch as usize];
        let run = launch.phases.get(Phase::Run).unwrap_or_default();
        // Without CPU times, all of it counts as CPU.
        let cpu = launch.cpu_phases.get(Phase::Run).unwrap_or(worked);
        RunParts {
            cpu: cpu.0 as f64,
            queued: run.since(worked).0 as f64,
            slept: worked.since(cpu).0 as f64,
        }
    }
}
