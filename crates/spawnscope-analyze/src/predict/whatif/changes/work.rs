//! Changes to where and when launches do their work: in the parent's process, in one long-lived
//! process, in parallel, or by another program.

use std::collections::BTreeMap;

use super::batch::groups;
use super::removal::WORK_SPREAD;
use super::start_up::{FixedPart, StartUps};
use crate::model::grouped::grouped;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::timeline::{ThreadIndex, Timelines, run_queue_span, runnable};
use crate::model::tree::Forest;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Origin;

/// Duration of one request and reply through pipes, in nanoseconds: two wake-ups and four system
/// calls.
const ROUND_TRIP_NS: f64 = 30_000.0;
/// Uncertainty of running launches in parallel, as a share of the saving. Caches, disks and locks
/// are not modelled.
const SPREAD_OF_JOBS: f64 = 0.2;

/// Keeps only the work of a launch, without the start-up of its program, plus `more` nanoseconds.
/// Returns the nanoseconds of work.
pub(super) fn keep_work(
    context: WhatIf<'_, '_>,
    launch: u32,
    fixed: FixedPart,
    more: f64,
    adjustments: &mut Adjustments,
) -> f64 {
    for phase in Phase::TAX {
        adjustments.scale(launch, phase, 0.0);
    }
    adjustments.drop_supervision(launch);
    keep_run(context, launch, fixed, more, adjustments)
}

/// Removes the start-up of a program from its run, and adds `more` nanoseconds. Returns the
/// nanoseconds of work that remain. Waits for a CPU are in proportion to the work. What a program
/// sleeps is its purpose, or a wait for its children, and remains.
pub(super) fn keep_run(
    context: WhatIf<'_, '_>,
    launch: u32,
    fixed: FixedPart,
    more: f64,
    adjustments: &mut Adjustments,
) -> f64 {
    let run = RunParts::of(context, launch);
    let work = fixed.work_of(context.launch(launch), run.cpu);
    if run.cpu > 0.0 {
        let remains = (work + more) / run.cpu;
        adjustments.scale(launch, Phase::Run, remains);
        adjustments.scale_waits(launch, [remains, 1.0]);
        fixed.add_uncertainty(work, adjustments);
    }
    work
}

/// How a launch spent its run, in nanoseconds.
#[derive(Default)]
pub(super) struct RunParts {
    pub(super) cpu: f64,
    pub(super) queued: f64,
    pub(super) slept: f64,
}

impl RunParts {
    /// Sums the parts over all threads, but the first thread of a process with several often only
    /// waits for the others, and their timers are no work: it has not slept.
    pub(super) fn of(context: WhatIf<'_, '_>, launch: u32) -> RunParts {
        let WhatIf { forest, timelines, .. } = context;
        let worked = work_time(forest, timelines, launch as usize).unwrap_or_default();
        let each = context.launch(launch);
        let run = each.phases.get(Phase::Run).unwrap_or_default();
        // If the CPU time is unknown, all work counts as CPU time.
        let cpu = each.cpu_phases.get(Phase::Run).unwrap_or(worked).0 as f64;
        let queued = run.since(worked).0 as f64;
        match timelines.multithreaded.get(&launch) {
            None => RunParts { cpu, queued, slept: worked.0 as f64 - cpu.min(worked.0 as f64) },
            Some(threads) => {
                let others = threads.iter().filter(|thread| **thread != launch);
                let waits = others.flat_map(|thread| timelines.slices(*thread).iter());
                let waited = waits.filter_map(|slice| Some(run_queue_span(&slice)?.0 as f64));
                RunParts { cpu, queued: queued + waited.sum::<f64>(), slept: 0.0 }
            }
        }
    }
}

pub(super) fn in_process(context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let forest = context.forest;
    let mut affected = launches.to_vec();
    affected.retain(|launch| context.launch(*launch).origin != Origin::Command);
    let start_ups = StartUps::of(context, &affected);
    for group in by_program(forest, &affected).values() {
        let fixed = start_ups.fixed_part(group);
        for &launch in group {
            keep_work(context, launch, fixed, 0.0, adjustments);
        }
    }
    affected
}

pub(super) fn by_program<'a>(forest: &Forest<'a>, launches: &[u32]) -> BTreeMap<&'a [u8], Vec<u32>> {
    grouped(launches.iter().map(|launch| (forest.launches[*launch as usize].command.name, *launch)))
}

fn by_parent_and_program<'a>(forest: &Forest<'a>, launches: &[u32]) -> BTreeMap<(usize, &'a [u8]), Vec<u32>> {
    let key = |launch: usize| Some((forest.parent(launch)?, forest.launches[launch].command.name));
    grouped(launches.iter().filter_map(|launch| Some((key(*launch as usize)?, *launch))))
}

/// Starts each program once per parent, and sends the work of its further launches to that process.
/// A fork that only led to one of them, as a shell makes for `$(echo x | sed ...)`, is not made.
pub(super) fn coprocess(context: WhatIf<'_, '_>, launches: &[u32], adjustments: &mut Adjustments) -> Vec<u32> {
    let start_ups = StartUps::of(context, launches);
    let mut affected = Vec::new();
    for group in groups(context, launches).into_iter().filter(|group| group.len() > 1) {
        let fixed = start_ups.fixed_part(&group);
        for &launch in &group[1..] {
            keep_work(context, launch, fixed, ROUND_TRIP_NS, adjustments);
            remove_forks_between(context, group[0], launch, adjustments);
        }
        affected.extend(group);
    }
    affected.sort_unstable();
    affected
}

/// Removes the forks without exec that led to a launch but not to the first one, and their children
/// of this kind. Their other launches remain, and half of their own work.
fn remove_forks_between(context: WhatIf<'_, '_>, first: u32, launch: u32, adjustments: &mut Adjustments) {
    let forest = context.forest;
    let ancestors = |launch: u32| std::iter::successors(forest.parent(launch as usize), |above| forest.parent(*above));
    let is_fork = |launch: usize| forest.launches[launch].is_fork_without_exec();
    let is_between = |fork: &usize| is_fork(*fork) && !ancestors(first).any(|above| above == *fork);
    for fork in ancestors(launch).take_while(is_between) {
        let feeders = forest.children(fork).iter().filter(|child| is_fork(**child));
        for fork in feeders.chain([&fork]).map(|fork| *fork as u32) {
            let work = keep_work(context, fork, FixedPart::default(), 0.0, adjustments);
            adjustments.scale(fork, Phase::Run, 0.5);
            adjustments.uncertainty_ns += work * WORK_SPREAD;
        }
    }
}

/// Runs launches of a program, which one process made one after the other, `jobs` at a time. They
/// take as long as the busiest of `jobs` slots, but at least their CPU time divided by the number
/// of CPUs. Launches that waited for a CPU although they ran one after the other shared the CPUs
/// with other programs.
pub(super) fn jobs(context: WhatIf<'_, '_>, launches: &[u32], jobs: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let forest = context.forest;
    let mut affected = Vec::new();
    let mut is_parallel = vec![false; forest.launches.len()];
    // Parents come before their children. A loop inside a launch that already runs in parallel is
    // not changed.
    for ((parent, _), group) in by_parent_and_program(forest, launches) {
        if is_parallel[parent] {
            continue;
        }
        let serial = serial_launches(forest, &group);
        let spans: Vec<u64> = serial.iter().map(|launch| span_without_stops(context, *launch).0).collect();
        let total: u64 = spans.iter().sum();
        if serial.len() < 2 || total == 0 {
            continue;
        }
        // Other programs may take no more of the CPUs than before, or their share from each job.
        let [worked, waited] = cpu_usage(context, &serial);
        let [fast, slow] = [0.0, waited / (waited + worked).max(1.0)].map(|share_of_others| {
            let free_cpus = (f64::from(context.replay.cpus) * (1.0 - share_of_others)).max(1.0);
            let span = (span_in_slots(&spans, jobs) as f64).max(worked / free_cpus);
            (span / total as f64).min(1.0)
        });
        let remains = f64::midpoint(fast, slow);
        for &launch in &serial {
            for step in forest.walk(&[launch as usize]) {
                is_parallel[step.index] = true;
                Phase::ALL.into_iter().for_each(|phase| adjustments.scale(step.index as u32, phase, remains));
            }
        }
        let spread = ((1.0 - remains) * SPREAD_OF_JOBS).hypot((slow - fast) / 2.0);
        adjustments.uncertainty_ns += total as f64 * spread;
        affected.extend(serial);
    }
    affected.sort_unstable();
    affected
}

/// Returns how long a launch takes without the stops of the recorder, but no less than it works.
fn span_without_stops(context: WhatIf<'_, '_>, launch: u32) -> Nanos {
    let total = context.launch(launch).total(context.forest.end).unwrap_or_default();
    let worked = Nanos(cpu_usage(context, &[launch])[0] as u64);
    total.since(context.forest.stopped_below(launch as usize)).max(worked.min(total))
}

/// Returns the launches of one process that start after all earlier ones have ended.
fn serial_launches(forest: &Forest<'_>, group: &[u32]) -> Vec<u32> {
    let mut latest = Nanos(0);
    let mut serial = Vec::new();
    for &launch in group {
        let each = &forest.launches[launch as usize];
        let end = each.end().unwrap_or(forest.end);
        if each.start().is_some_and(|start| start >= latest) {
            serial.push(launch);
        }
        latest = latest.max(end);
    }
    serial
}

/// Returns how long launches and their descendants had a CPU, and waited for one, in nanoseconds.
pub(crate) fn cpu_usage(context: WhatIf<'_, '_>, launches: &[u32]) -> [f64; 2] {
    let tops: Vec<usize> = launches.iter().map(|launch| *launch as usize).collect();
    let (mut worked, mut waited) = (0.0, 0.0);
    for step in context.forest.walk(&tops) {
        worked += cpu_time(context.launch(step.index as u32)).0 as f64;
        let waits = context.timelines.slices(step.index as ThreadIndex);
        waited += waits.iter().filter_map(|slice| Some(run_queue_span(&slice)?.0 as f64)).sum::<f64>();
    }
    [worked, waited]
}

/// Returns the CPU time of a launch. Some collectors do not see that of the teardown, which hardly
/// waits.
fn cpu_time(launch: &Launch<'_>) -> Nanos {
    launch.cpu.get().unwrap_or_else(|| {
        let until_exit = launch.cpu_phases.sum(Phase::ALL).unwrap_or_default();
        Nanos(until_exit.0 + launch.phases.get(Phase::Teardown).unwrap_or_default().0)
    })
}

/// Returns how long spans of work take if each starts in the first free slot of `slots`.
fn span_in_slots(spans: &[u64], slots: u32) -> u64 {
    let mut free = vec![0; spans.len().min(slots.max(1) as usize)];
    for span in spans {
        if let Some(first) = free.iter_mut().min() {
            *first += span;
        }
    }
    free.into_iter().max().unwrap_or_default()
}

/// Returns the length of the run phase of a launch, without the time in which it waited for a CPU.
/// Sleep counts as work, since it may be the purpose of the program.
pub(crate) fn work_time(forest: &Forest<'_>, timelines: &Timelines, index: usize) -> Option<Nanos> {
    let all = || (0..forest.launches.len()).map(|index| find_work_time(forest, timelines, index).into()).collect();
    timelines.work_times.get_or_init(all)[index].get()
}

fn find_work_time(forest: &Forest<'_>, timelines: &Timelines, index: usize) -> Option<Nanos> {
    let launch = &forest.launches[index];
    let run = launch.phases.get(Phase::Run)?;
    let mut runs = launch.pieces(Some(forest.end));
    runs.retain(|piece| piece.phase == Phase::Run);
    let mut queued = 0;
    for slice in timelines.slices(index as ThreadIndex).iter() {
        if let Some((from, to)) = runnable(&slice) {
            queued += runs.iter().map(|piece| to.min(piece.end).since(from.max(piece.start)).0).sum::<u64>();
        }
    }
    Some(run.since(Nanos(queued)))
}
