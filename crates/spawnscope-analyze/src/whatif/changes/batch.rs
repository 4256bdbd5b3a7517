//! Launches of one program that are merged. What each of them repeats before it begins its work is saved; the work stays.

use std::collections::BTreeMap;

use super::Context;
use super::start_up::{Fixed, StartUps};
use crate::patterns::chains::did_other_work;
use crate::patterns::work::work_time;
use crate::phases::Phase;
use crate::whatif::adjustments::Adjustments;

/// Merges up to `size` launches of one program into the first of them: those by one parent, and those that are alone with their parents,
/// such as one in each of many shells. The fixed part of a run is paid once; the work beyond it stays. A process that did other work before it
/// became the program is skipped.
pub(super) fn batch(context: Context<'_, '_>, launches: &[u32], size: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let groups = groups(context, launches);
    let start_ups = StartUps::of(context, groups.iter().flatten());
    let mut affected = Vec::new();
    for group in &groups {
        for batch in group.chunks(size.max(1) as usize).filter(|batch| batch.len() > 1) {
            let fixed = start_ups.fixed(batch);
            merge(context, batch, fixed, adjustments);
            affected.extend(batch);
        }
    }
    affected
}

/// Groups launches that can be merged, in order of creation: by program, and by the nearest ancestor that has several of them.
fn groups(context: Context<'_, '_>, launches: &[u32]) -> Vec<Vec<u32>> {
    let Context { forest, timelines, .. } = context;
    let mut groups: Groups<'_> = BTreeMap::new();
    for &launch in launches
        .iter()
        .filter(|launch| !did_other_work(forest, timelines, **launch))
    {
        let parent = forest.parent(launch as usize);
        if let Some(parent) = parent.filter(|_| work_time(forest, timelines, launch as usize).is_some()) {
            let name = forest.launches[launch as usize].command.name;
            groups.entry((parent, name)).or_default().push(launch);
        }
    }
    // Each round takes single launches one generation up, so there are at most as many as the tree is deep.
    while let Some(risen) = rise(context, &mut groups) {
        for (key, more) in risen {
            groups.entry(key).or_default().extend(more);
        }
    }
    let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Launches by an ancestor and the name of their program.
type Groups<'a> = BTreeMap<(usize, &'a [u8]), Vec<u32>>;

/// Takes the launches that are alone with their ancestor out of the groups, for the ancestor of that. `None` if there are none.
fn rise<'a>(context: Context<'_, 'a>, groups: &mut Groups<'a>) -> Option<Groups<'a>> {
    let mut risen: Groups<'a> = BTreeMap::new();
    groups.retain(|(ancestor, name), group| {
        let above = context.forest.parent(*ancestor).filter(|_| group.len() == 1);
        if let Some(above) = above {
            risen.entry((above, *name)).or_default().append(group);
        }
        above.is_none()
    });
    (!risen.is_empty()).then_some(risen)
}

/// Merges launches into the first of them.
fn merge(context: Context<'_, '_>, batch: &[u32], fixed: Fixed, adjustments: &mut Adjustments) {
    let run_of = |launch: u32| work_time(context.forest, context.timelines, launch as usize);
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
        adjustments.move_work(other, first, work_of(other));
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
        let worked = work_time(context.forest, context.timelines, launch as usize).unwrap_or_default();
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
