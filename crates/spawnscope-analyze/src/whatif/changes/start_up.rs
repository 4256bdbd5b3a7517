//! What a program does before and after its work, which each launch of it repeats: a batch, a library or a coprocess pays it once or never.

use std::collections::HashMap;

use super::Context;
use crate::launch::Launch;
use crate::patterns::runtimes::Runtime;
use crate::patterns::work::work_time;
use crate::phases::Phase;
use crate::tree::Forest;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;

/// The shortest runs of programs.
pub(super) struct StartUps<'c, 'a> {
    forest: &'c Forest<'a>,
    least: HashMap<&'a [u8], LeastRun>,
}

impl<'c, 'a> StartUps<'c, 'a> {
    /// Collects the runs of launches, which may be of several programs.
    pub(super) fn of<'l>(context: Context<'c, 'a>, launches: impl IntoIterator<Item = &'l u32>) -> StartUps<'c, 'a> {
        let Context { forest, timelines, .. } = context;
        let mut runs: HashMap<&[u8], Vec<Nanos>> = HashMap::new();
        for &launch in launches {
            let each = &forest.launches[launch as usize];
            if let Some(run) = work_time(forest, timelines, launch as usize).filter(|_| !each.execs.is_empty()) {
                runs.entry(each.command.name).or_default().push(run);
            }
        }
        let least = runs.into_iter().map(|(name, runs)| (name, LeastRun::of(runs)));
        StartUps {
            forest,
            least: least.collect(),
        }
    }

    /// Returns the fixed part of a run of launches of one program. Zero for a fork without exec.
    pub(super) fn fixed(&self, batch: &[u32]) -> Fixed {
        let launch = |index: &u32| &self.forest.launches[*index as usize];
        let first = batch.first().map(launch);
        let Some((first, run)) = first.and_then(|first| Some((first, *self.least.get(first.command.name)?))) else {
            return Fixed::NONE;
        };
        let begin = median(batch.iter().map(|index| begin_of(launch(index)))).unwrap_or_default();
        let start_up = StartUp::of(first);
        Fixed::recorded(self.forest, batch, run, &start_up, begin).unwrap_or_else(|| Fixed::of(run, &start_up, begin))
    }
}

/// Returns the exec and load of a launch.
fn begin_of(launch: &Launch<'_>) -> f64 {
    let phase = |phase| launch.phases.get(phase).unwrap_or_default().0 as f64;
    phase(Phase::Exec) + phase(Phase::Load)
}

/// The fixed part of a program's run that each launch pays before it begins its work, in nanoseconds. Recordings since version 9 show when
/// a program first uses an argument or its input. Otherwise it is only known that the work is not after the shortest run.
#[derive(Clone, Copy)]
pub(super) struct Fixed {
    pub(super) likely: f64,
    /// The least and the most that it may be.
    range: [f64; 2],
    /// How to compute it from the recorded start-up of a launch, if the recording has those of most launches.
    recorded: Option<AfterStartUp>,
}

/// The fixed part of a run after the recorded start-up: a share of that, and a time in nanoseconds.
#[derive(Clone, Copy)]
struct AfterStartUp {
    share: f64,
    begin: f64,
}

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

/// The start-up of a program between its loader and its work, as a multiple of its exec and load, and what else it does once. The launch
/// of a program with one file was compared with one more file in the same launch, for 19 programs (`docs/design/causes.md`).
struct StartUp {
    usual: f64,
    most: f64,
    /// What a program does once after it first uses an argument, as a multiple of its exec and load: memory for reading, code that runs for
    /// the first time, output. Usual and most.
    later: [f64; 2],
    /// What an interpreter does at its end, as a share of its start-up.
    end: f64,
}

/// The larger the start-up of a program, the more code it has that runs for the first time in its work: this share of its start-up. 0.033 for
/// python3, 0.036 for node, 0.039 for nm with its plugin; too little to be seen in small programs.
const LATER_OF_START_UP: f64 = 0.035;
/// Uncertainty of what a program does once after its recorded start-up, in so far as it was computed from the start-up, as a share of it.
const AFTER_SPREAD: f64 = 0.25;

impl StartUp {
    /// Programs in machine code: locales, memory, options. Of 30 programs of coreutils and the like, on empty input, 25 took 0.3 to 0.8
    /// times as long as their exec and load, and all but one less than twice as long.
    /// After they first used an argument, 13 of 15 did 0.03 to 0.16 times as much once, one 0.22 times.
    const COMPILED: StartUp = StartUp {
        usual: 0.5,
        most: 2.0,
        later: [0.07, 0.2],
        end: 0.0,
    };
    /// perl, which loads little of its library by itself: 1 to 1.1. It reads its script after the start-up.
    const PERL: StartUp = StartUp {
        usual: 1.0,
        most: 2.5,
        later: [0.3, 0.6],
        end: 0.3,
    };
    /// Node, which maps its library ready-made, and ends without cleaning up much.
    const NODE: StartUp = StartUp {
        usual: 20.0,
        most: 30.0,
        later: [0.07, 0.2],
        end: 0.05,
    };
    /// Other interpreters, which load a library of their language: python3 12 to 20. At its end, python3 cleans up for a seventh of that time:
    /// with zero to sixty imports, all that it did once after its start-up took 0.15 to 0.21 of it.
    const INTERPRETED: StartUp = StartUp {
        usual: 15.0,
        most: 25.0,
        later: [0.07, 0.2],
        end: 0.15,
    };

    fn of(launch: &Launch<'_>) -> StartUp {
        let runs = launch.execs.last().map(|exec| Runtime::named(exec.program_name()));
        match runs {
            Some(Runtime::Perl) => StartUp::PERL,
            Some(Runtime::Node) => StartUp::NODE,
            None | Some(Runtime::Native | Runtime::Shell | Runtime::Make | Runtime::Go | Runtime::Rust) => {
                StartUp::COMPILED
            }
            Some(_) => StartUp::INTERPRETED,
        }
    }
}

impl Fixed {
    const NONE: Fixed = Fixed {
        likely: 0.0,
        range: [0.0, 0.0],
        recorded: None,
    };

    /// Estimates the fixed part of a run. It is at most the shortest run, and at most the longest plausible start-up.
    fn of(run: LeastRun, start_up: &StartUp, begin: f64) -> Fixed {
        Fixed {
            likely: run.not_work.min(start_up.usual * begin),
            range: [0.0, run.least.min(start_up.most * begin)],
            recorded: None,
        }
    }

    /// Returns the fixed part from the start-ups that the recording has. `None` if there are too few. The start-ups themselves are measured,
    /// so only what comes after them is uncertain.
    fn recorded(forest: &Forest<'_>, batch: &[u32], run: LeastRun, class: &StartUp, begin: f64) -> Option<Fixed> {
        let start_up = |launch: &u32| forest.launches[*launch as usize].start_up.get();
        let known: Vec<f64> = batch.iter().filter_map(start_up).map(|span| span.0 as f64).collect();
        let is_enough = known.len() as f64 >= RECORDED * batch.len() as f64;
        let start_up = median(known).filter(|_| is_enough)?;
        let share = class.end + LATER_OF_START_UP;
        let [usual, most] = class.later.map(|later| later * begin);
        let after = |spread: f64, later: f64| (start_up + share * spread * start_up + later).min(run.least);
        Some(Fixed {
            likely: after(1.0, usual),
            range: [after(1.0 - AFTER_SPREAD, 0.0), after(1.0 + AFTER_SPREAD, most)],
            recorded: Some(AfterStartUp { share, begin: usual }),
        })
    }

    /// Returns the work of a launch beyond the fixed part of its run of `run` nanoseconds. A start-up on a busy machine takes longer, so each
    /// launch has its own.
    pub(super) fn work_of(self, launch: &Launch<'_>, run: f64) -> f64 {
        let own = self.recorded.zip(launch.start_up.get());
        let fixed = own.map_or(self.likely, |(after, start_up)| {
            start_up.0 as f64 * (1.0 + after.share) + after.begin
        });
        (run - fixed).max(0.0)
    }

    /// Returns the standard deviation: the interval from the least to the most is as wide as the one that holds 95 % of a normal distribution.
    pub(super) fn deviation(self) -> f64 {
        let [least, most] = self.range;
        (most - least) / 4.0
    }
}
