//! Launches of one program that are merged. What each of them repeats before it begins its work is saved; the work stays.

use std::collections::{BTreeMap, HashMap};

use super::Context;
use crate::launch::Launch;
use crate::patterns::chains::did_other_work;
use crate::patterns::runtimes::Runtime;
use crate::patterns::work::working;
use crate::phases::Phase;
use crate::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;

/// Merges up to `size` launches of one program by one parent into the first of them. The fixed part of a run is paid once; the work beyond
/// it stays. A process that did other work before it became the program is skipped.
pub(super) fn batch(context: Context<'_, '_>, launches: &[u32], size: u32, adjustments: &mut Adjustments) -> Vec<u32> {
    let Context { forest, timelines, .. } = context;
    let run_of = |launch: u32| working(forest, timelines, launch as usize);
    let mut runs: HashMap<&[u8], Vec<Nanos>> = HashMap::new();
    let mut groups: BTreeMap<(usize, &[u8]), Vec<u32>> = BTreeMap::new();
    let only_that = |launch: &&u32| !did_other_work(forest, timelines, **launch);
    for &launch in launches.iter().filter(only_that) {
        let each = &forest.launches[launch as usize];
        if let (Some(parent), Some(run)) = (forest.parent(launch as usize), run_of(launch)) {
            runs.entry(each.command.name).or_default().push(run);
            groups.entry((parent, each.command.name)).or_default().push(launch);
        }
    }
    let least: HashMap<&[u8], LeastRun> = runs
        .into_iter()
        .map(|(name, runs)| (name, LeastRun::of(runs)))
        .collect();
    let mut affected = Vec::new();
    for ((_, program), group) in groups {
        for batch in group.chunks(size.max(1) as usize).filter(|batch| batch.len() > 1) {
            let begin = median(batch.iter().map(|launch| begin_of(&forest.launches[*launch as usize])));
            let start_up = StartUp::of(&forest.launches[batch[0] as usize]);
            let guess = Fixed::of(least[program], &start_up, begin.unwrap_or_default());
            let fixed = Fixed::recorded(context, batch, least[program], begin.unwrap_or_default()).unwrap_or(guess);
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
    let worked: f64 = batch.iter().filter_map(|launch| run_of(*launch)).map(|run| run.0 as f64).sum();
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

/// Returns the exec and load of a launch.
fn begin_of(launch: &Launch<'_>) -> f64 {
    let phase = |phase| launch.phases.get(phase).unwrap_or_default().0 as f64;
    phase(Phase::Exec) + phase(Phase::Load)
}

/// The fixed part of a program's run that each launch pays before it begins its work, in nanoseconds. Recordings since version 9 show when
/// a program first uses an argument or its input. Otherwise it is only known that the work is not after the shortest run.
#[derive(Clone, Copy)]
struct Fixed {
    likely: f64,
    /// The least and the most that it may be.
    range: [f64; 2],
}

/// A program also prepares after it first uses an argument, and it ends: memory for reading, code that runs for the first time, output. As a
/// multiple of its exec and load: usual and most. Of 27 programs of coreutils and the like, on empty input, 25 took 0.02 to 0.11.
const PREPARED_LATER: [f64; 2] = [0.055, 0.12];
/// Uncertainty of the recorded start-up, as a share of it.
const START_UP_SPREAD: f64 = 0.1;
/// Minimum share of the launches of a batch for which the start-up is recorded.
const RECORDED: f64 = 0.5;

/// From this ratio of median to shortest run, the shortest run did almost no work.
const DIFFERENT: f64 = 1.5;
/// Below this ratio of median to shortest run, launches do equal work, and the runs do not separate the fixed part from the work.
const ALIKE: f64 = 1.1;
/// Share of work in the shortest run where all runs are alike. 0.05 to 0.35 for coreutils programs on small files.
const WORK_OF_ALIKE: f64 = 0.3;

/// The shortest run of a program.
#[derive(Clone, Copy)]
struct LeastRun {
    least: f64,
    /// The part of it that is not work, if the program starts as slowly as that.
    not_work: f64,
}

impl LeastRun {
    fn of(mut runs: Vec<Nanos>) -> LeastRun {
        runs.sort_unstable();
        let (least, median) = (runs[0].0 as f64, runs[runs.len() / 2].0 as f64);
        let alike = ((DIFFERENT - median / least.max(1.0)) / (DIFFERENT - ALIKE)).clamp(0.0, 1.0);
        LeastRun {
            least,
            not_work: least * (1.0 - WORK_OF_ALIKE * alike),
        }
    }
}

/// The start-up of a program between its loader and its work, as a multiple of its exec and load.
struct StartUp {
    usual: f64,
    most: f64,
}

impl StartUp {
    /// Programs in machine code: locales, memory, options. Of 30 programs of coreutils and the like, on empty input, 25 took 0.3 to 0.8
    /// times as long as their exec and load, and all but one less than twice as long.
    const COMPILED: StartUp = StartUp { usual: 0.5, most: 2.0 };
    /// perl, which loads little of its library by itself: 1 to 1.1.
    const PERL: StartUp = StartUp { usual: 1.0, most: 2.5 };
    /// Other interpreters, which load a library of their language: python3 14 to 20, node 22.
    const INTERPRETED: StartUp = StartUp {
        usual: 15.0,
        most: 25.0,
    };

    fn of(launch: &Launch<'_>) -> StartUp {
        let runs = launch.execs.last().map(|exec| Runtime::named(exec.runs()));
        match runs {
            Some(Runtime::Perl) => StartUp::PERL,
            None | Some(Runtime::Native | Runtime::Shell) => StartUp::COMPILED,
            Some(_) => StartUp::INTERPRETED,
        }
    }
}

impl Fixed {
    /// Estimates the fixed part of a run. It is at most the shortest run, and at most the longest plausible start-up.
    fn of(run: LeastRun, start_up: &StartUp, begin: f64) -> Fixed {
        Fixed {
            likely: run.not_work.min(start_up.usual * begin),
            range: [0.0, run.least.min(start_up.most * begin)],
        }
    }

    /// Returns the fixed part from the start-ups that the recording has. `None` if there are too few.
    fn recorded(context: Context<'_, '_>, batch: &[u32], run: LeastRun, begin: f64) -> Option<Fixed> {
        let start_up = |launch: &u32| context.forest.launches[*launch as usize].start_up.get();
        let known: Vec<f64> = batch.iter().filter_map(start_up).map(|span| span.0 as f64).collect();
        let is_enough = known.len() as f64 >= RECORDED * batch.len() as f64;
        let start_up = median(known).filter(|_| is_enough)?;
        let later = PREPARED_LATER.map(|later| later * begin);
        let at_most = |fixed: f64| fixed.min(run.least);
        Some(Fixed {
            likely: at_most(start_up + later[0]),
            range: [
                at_most(start_up * (1.0 - START_UP_SPREAD)),
                at_most(start_up * (1.0 + START_UP_SPREAD) + later[1]),
            ],
        })
    }

    /// Returns the standard deviation: the interval from the least to the most is as wide as the one that holds 95 % of a normal distribution.
    fn deviation(self) -> f64 {
        let [least, most] = self.range;
        (most - least) / 4.0
    }
}
