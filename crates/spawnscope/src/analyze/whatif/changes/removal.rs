//! Launches that do not happen, or not as often: remove, builtin, batch.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{Context, chains};
use crate::analyze::Origin;
use crate::analyze::launch::Launch;
use crate::analyze::phases::Phase;
use crate::analyze::timeline::Timelines;
use crate::analyze::tree::Forest;
use crate::analyze::whatif::adjustments::Adjustments;
use crate::event::Nanos;
use crate::statistics::median;

/// System calls with which a shell reads what a `$( )` writes, by x86-64's numbers: read, pread64, readv.
const READS: [u16; 3] = [0, 17, 19];
const MEBIBYTE: f64 = 1_048_576.0;
/// Forks without exec that make a median of their own worth using.
const ENOUGH_FORKS: usize = 5;

pub(super) fn remove(forest: &Forest<'_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let mut held = launches.to_vec();
    held.retain(|launch| forest.launches[*launch as usize].origin != Origin::Command);
    held.iter().for_each(|launch| adjustments.remove(forest, *launch));
    held
}

/// The program's work is done by its parent, a shell. What a `$( )` or a pipeline forks is still forked, and sets itself up.
pub(super) fn builtin(context: Context<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let forest = context.forest;
    let bare_end = end_of_bare_forks(forest);
    let company = with_company(forest, launches);
    let mut held = Vec::new();
    for &launch in launches {
        let each = &forest.launches[launch as usize];
        if each.origin == Origin::Command || each.execs.is_empty() {
            continue;
        }
        held.push(launch);
        if !keeps_its_fork(context, launch, company.contains(&launch)) {
            adjustments.remove(forest, launch);
            continue;
        }
        adjustments.remove_within(forest, forest.children(launch as usize));
        for phase in [Phase::Exec, Phase::Load, Phase::Run] {
            adjustments.scale(launch, phase, 0.0);
        }
        let own = each.phases.get(Phase::Teardown).filter(|own| own.0 > 0);
        let end = bare_end.or_else(|| end_without_exec(context, each));
        if let Some((own, end)) = own.zip(end) {
            adjustments.scale(launch, Phase::Teardown, end / own.0 as f64);
        }
    }
    held
}

/// What the ends of forks without exec take in this recording; nothing when there are hardly any.
fn end_of_bare_forks(forest: &Forest<'_>) -> Option<f64> {
    let forks = || forest.launches.iter().filter(|launch| launch.is_fork_without_exec());
    let ends = forks().filter_map(|fork| fork.phases.get(Phase::Teardown));
    let median = median(ends.map(|end| end.0 as f64));
    median.filter(|_| forks().count() >= ENOUGH_FORKS)
}

/// What an end takes when no exec before it has given back the parent's page tables.
fn end_without_exec(context: Context<'_, '_>, launch: &Launch<'_>) -> Option<f64> {
    let end = launch.phases.get(Phase::Teardown)?.0 as f64;
    let tables = context.constants.page_free? * launch.parent_rss_bytes.get()? as f64 / MEBIBYTE;
    Some(end + tables)
}

/// Whether what a launch writes is read by its parent while it runs, as the shell does for `$( )`.
#[must_use]
pub fn is_captured(forest: &Forest<'_>, timelines: &Timelines, launch: u32) -> bool {
    let at = &forest.launches[launch as usize].instants;
    let (Some(parent), Some(created), Some(reaped)) =
        (forest.parent(launch as usize), at.created.get(), at.reaped.get())
    else {
        return false;
    };
    let creator = timelines.threads[launch as usize]
        .creator
        .get()
        .unwrap_or(parent as u32);
    is_read_by(timelines, creator, created, reaped)
}

/// A command that runs by itself needs no fork when the shell does it. One that others run beside (a pipeline), or whose
/// output is read (`$( )`), does.
fn keeps_its_fork(context: Context<'_, '_>, launch: u32, has_company: bool) -> bool {
    let Context { forest, timelines, .. } = context;
    let at = &forest.launches[launch as usize].instants;
    let is_known = forest.parent(launch as usize).is_some() && at.created.get().is_some() && at.reaped.get().is_some();
    !is_known || has_company || is_captured(forest, timelines, launch)
}

/// Those of `launches` that another launch of their parent runs beside.
fn with_company(forest: &Forest<'_>, launches: &[u32]) -> HashSet<u32> {
    let parents: BTreeSet<usize> = launches
        .iter()
        .filter_map(|launch| forest.parent(*launch as usize))
        .collect();
    let mut company = HashSet::new();
    for parent in parents {
        let siblings = forest.children(parent);
        // They are in order of creation: what began before and is not over is told by the latest end so far.
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

/// Whether a thread waited in read between two instants.
fn is_read_by(timelines: &Timelines, thread: u32, from: Nanos, to: Nanos) -> bool {
    let slices = timelines.slices(thread);
    let first = slices.partition_point(|slice| slice.off < from);
    let mut between = slices.split_at(first).1.iter().take_while(|slice| slice.off < to);
    between.any(|slice| slice.syscall.is_some_and(|call| READS.contains(&call)))
}

/// Of each so many launches of one program by one parent, the first does the work of all: the fixed part of a run is paid once, and
/// what each did beyond that is work that stays. A process that did other work before it became the program is none of these.
pub(super) fn batch(context: Context<'_, '_>, launches: &[u32], size: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let Context { forest, timelines, .. } = context;
    let run_of = |launch: u32| forest.launches[launch as usize].phases.get(Phase::Run);
    let mut runs: HashMap<&[u8], Vec<Nanos>> = HashMap::new();
    let mut groups: BTreeMap<(usize, &[u8]), Vec<u32>> = BTreeMap::new();
    let only_that = |launch: &&u32| !chains::did_other_work(forest, timelines, **launch);
    for &launch in launches.iter().filter(only_that) {
        let each = &forest.launches[launch as usize];
        if let (Some(parent), Some(run)) = (forest.parent(launch as usize), run_of(launch)) {
            runs.entry(each.command.name).or_default().push(run);
            groups.entry((parent, each.command.name)).or_default().push(launch);
        }
    }
    let fixed: HashMap<&[u8], Fixed> = runs.into_iter().map(|(name, runs)| (name, Fixed::of(runs))).collect();
    let mut held = Vec::new();
    for ((_, program), group) in groups {
        for batch in group.chunks(size.max(1) as usize).filter(|batch| batch.len() > 1) {
            let fixed = fixed[program].bounded(&forest.launches[batch[0] as usize]);
            let runs = batch.iter().filter_map(|launch| run_of(*launch));
            let work: f64 = runs.map(|run| (run.0 as f64 - fixed.likely).max(0.0)).sum();
            let own = run_of(batch[0]).unwrap_or_default().0.max(1);
            adjustments.scale(batch[0], Phase::Run, (fixed.likely + work) / own as f64);
            adjustments.uncertain += (fixed.most - fixed.likely) / 2.0 * (batch.len() - 1) as f64;
            batch[1..].iter().for_each(|launch| adjustments.remove(forest, *launch));
            adjustments.count_together(batch);
            held.extend(batch);
        }
    }
    held
}

/// The part of a program's run that each launch of it pays, in nanoseconds.
#[derive(Clone, Copy)]
struct Fixed {
    likely: f64,
    most: f64,
}

/// Where runs differ by so much, from the least to the median, the least of them did next to no work.
const DIFFERENT: f64 = 1.5;
/// Where they differ by no more than this, as launches with equal work do, they do not tell the fixed part from the work.
const ALIKE: f64 = 1.1;
/// Of the least of runs that are alike, this share is work: 0.05 to 0.35 with coreutils' programs on small files.
const WORK_OF_ALIKE: f64 = 0.3;
/// No program takes more times as long to begin than to be executed and loaded; python3 does about so.
const MOST_STARTS: f64 = 25.0;

impl Fixed {
    /// No more than the least run.
    fn of(mut runs: Vec<Nanos>) -> Fixed {
        runs.sort_unstable();
        let (least, median) = (runs[0].0 as f64, runs[runs.len() / 2].0 as f64);
        let alike = ((DIFFERENT - median / least.max(1.0)) / (DIFFERENT - ALIKE)).clamp(0.0, 1.0);
        Fixed {
            likely: least * (1.0 - WORK_OF_ALIKE * alike),
            most: least,
        }
    }

    /// No more than a program takes to begin.
    fn bounded(self, launch: &Launch<'_>) -> Fixed {
        let phase = |phase| launch.phases.get(phase).unwrap_or_default().0 as f64;
        let most = MOST_STARTS * (phase(Phase::Exec) + phase(Phase::Load));
        Fixed {
            likely: self.likely.min(most),
            most: self.most.min(most),
        }
    }
}
