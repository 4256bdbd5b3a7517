//! Merges launches of one program. The start-up that each of them repeats is saved; their work
//! stays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::start_up::{FixedPart, StartUps};
use super::work::{RunParts, keep_work, work_time};
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::patterns::chains::did_other_work;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use foldhash::HashSet;

/// Merges up to `size` launches of one program into the first of them. The launches have the same
/// parent or, if they are the only ones of their parents (such as one in each of many shells), the
/// same more distant ancestor. The fixed part of a run remains once; all other work stays. Skips
/// processes that did other work before they executed the program.
pub(super) fn batch(context: WhatIf<'_, '_>, launches: &[u32], size: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let groups = groups(context, launches);
    let start_ups = StartUps::of(context, groups.iter().flatten());
    let mut affected = Vec::new();
    for group in &groups {
        for batch in batches(context.forest, group, size.max(1) as usize).filter(|batch| batch.len() > 1) {
            let batch = &batch[..];
            let fixed = start_ups.fixed_part(batch);
            match repeated_children(context.forest, batch) {
                // One process still launches what each of them did, one after the other.
                Some(repeated) => {
                    adjustments.remove_within(context.forest, &repeated);
                    for launch in &batch[1..] {
                        keep_work(context, *launch, fixed, 0.0, adjustments);
                    }
                }
                None => merge(context, batch, fixed, adjustments),
            }
            affected.extend(batch);
        }
    }
    affected
}

/// Divides the launches of a group into batches of at most `size`. If several launches ran at the
/// same time, as with `xargs -P 2`, so do as many batches: they get the launches in turns.
fn batches(forest: &Forest<'_>, group: &[u32], size: usize) -> impl Iterator<Item = Vec<u32>> {
    let (mut ends, mut most) = (BinaryHeap::new(), 1);
    for launch in group.iter().map(|launch| &forest.launches[*launch as usize]) {
        while ends.peek().is_some_and(|Reverse(end)| Some(*end) <= launch.start()) {
            ends.pop();
        }
        ends.push(Reverse(launch.end().unwrap_or(forest.end)));
        most = most.max(ends.len());
    }
    let at_once = most.min(group.len().div_ceil(size));
    let blocks = group.chunks(size * at_once);
    blocks.flat_map(move |block| {
        (0..at_once).map(move |turn| block.iter().skip(turn).step_by(at_once).copied().collect())
    })
}

/// Returns the children of all launches of a batch but the first that do the same as a child of the
/// first: they are launched once, such as the gzip of tar. All others are launched as before, such
/// as the dpkg-deb of dpkg. `None` if there are no others.
fn repeated_children(forest: &Forest<'_>, batch: &[u32]) -> Option<Vec<usize>> {
    let children = |launch: &u32| forest.children(*launch as usize).iter().copied();
    let argv = |child: usize| forest.launches[child].execs.last().map(|exec| exec.argv());
    let of_first: HashSet<&[u8]> = children(&batch[0]).filter_map(argv).collect();
    let (repeated, others): (Vec<usize>, Vec<usize>) = batch[1..]
        .iter()
        .flat_map(children)
        .partition(|child| argv(*child).is_some_and(|argv| of_first.contains(argv)));
    (!others.is_empty()).then_some(repeated)
}

/// Groups launches that can be merged, in order of creation: by program, and by the nearest
/// ancestor that has several of them.
pub(super) fn groups(context: WhatIf<'_, '_>, launches: &[u32]) -> Vec<Vec<u32>> {
    let WhatIf { forest, timelines, .. } = context;
    let mut groups: Groups<'_> = BTreeMap::new();
    for &launch in launches.iter().filter(|launch| !did_other_work(forest, timelines, **launch)) {
        let parent = forest.parent(launch as usize);
        if let Some(parent) = parent.filter(|_| work_time(forest, timelines, launch as usize).is_some()) {
            let name = forest.launches[launch as usize].command.name;
            groups.entry((parent, name)).or_default().push(launch);
        }
    }
    // Each round moves single launches up by one generation, so there are at most as many rounds as
    // the tree has levels.
    while let Some(moved) = move_up(context, &mut groups) {
        for (key, more) in moved {
            groups.entry(key).or_default().extend(more);
        }
    }
    let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

type Groups<'a> = BTreeMap<(usize, &'a [u8]), Vec<u32>>;

/// Removes groups of a single launch. Returns them as groups of the next higher ancestor, or `None`
/// if there are none.
fn move_up<'a>(context: WhatIf<'_, 'a>, groups: &mut Groups<'a>) -> Option<Groups<'a>> {
    let mut moved: Groups<'a> = BTreeMap::new();
    groups.retain(|(ancestor, name), group| {
        let higher = context.forest.parent(*ancestor).filter(|_| group.len() == 1);
        if let Some(higher) = higher {
            moved.entry((higher, *name)).or_default().append(group);
        }
        higher.is_none()
    });
    (!moved.is_empty()).then_some(moved)
}

fn merge(context: WhatIf<'_, '_>, batch: &[u32], fixed: FixedPart, adjustments: &mut Adjustments) {
    let WhatIf { forest, timelines, .. } = context;
    let (first, others) = (batch[0], &batch[1..]);
    let runs: Vec<RunParts> = batch.iter().map(|launch| RunParts::of(context, *launch)).collect();
    let first_run = &runs[0];
    let (mut work, mut all) = (0.0, RunParts::default());
    for (launch, run) in batch.iter().zip(&runs) {
        work += fixed.work_of(&forest.launches[*launch as usize], run.cpu);
        all.cpu += run.cpu;
        all.queued += run.queued;
        all.slept += run.slept;
    }
    let merged = fixed.likely + work;
    adjustments.scale(first, Phase::Run, merged / first_run.cpu.max(1.0));
    // The first launch may have waited unusually long for a CPU or a disk, so the waits of all
    // launches are used. Waits for a CPU are scaled in proportion to the work.
    let waits = [(all.queued * merged / all.cpu.max(1.0), first_run.queued), (all.slept, first_run.slept)];
    let factors = waits.map(|(all, first)| if first > 0.0 { all / first } else { 1.0 });
    adjustments.scale_waits(first, factors);
    for &other in others {
        let run = work_time(forest, timelines, other as usize);
        let work = run.map_or(0.0, |run| fixed.work_of(&forest.launches[other as usize], run.0 as f64));
        fixed.add_uncertainty(work, adjustments);
        adjustments.remove(forest, other);
        adjustments.move_work(other, first, work);
    }
}
