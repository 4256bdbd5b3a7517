//! The fixed part of a program's run: what every launch repeats before and after its work. A batch,
//! a library or a coprocess does this once or never.

use super::work::RunParts;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::adjustments::Adjustments;
use foldhash::HashMap;
use spawnscope_data::statistics::median;

pub(super) struct StartUps<'c, 'a> {
    forest: &'c Forest<'a>,
    shortest: HashMap<&'a [u8], ShortestRun>,
    /// Whether the recorder recognizes when a program begins its work.
    are_recorded: bool,
}

impl<'c, 'a> StartUps<'c, 'a> {
    /// Collects the runs of launches, which may be of several programs.
    pub(super) fn of<'l>(context: WhatIf<'c, 'a>, launches: impl IntoIterator<Item = &'l u32>) -> StartUps<'c, 'a> {
        let forest = context.forest;
        let mut runs: HashMap<&[u8], Vec<f64>> = HashMap::default();
        for &launch in launches {
            let each = context.launch(launch);
            if each.phases.get(Phase::Run).is_some() && !each.execs.is_empty() {
                let RunParts { cpu, .. } = RunParts::of(context, launch);
                runs.entry(each.command.name).or_default().push(cpu);
            }
        }
        let shortest = runs.into_iter().map(|(name, runs)| (name, ShortestRun::of(runs)));
        // The collector that recognizes the beginning of work also reads memory sizes at exits; an
        // import does not.
        let is_recorded =
            |launch: &Launch<'_>| launch.counts.exit_rss_bytes.get().is_some() || launch.start_up.get().is_some();
        let are_recorded = forest.launches.iter().any(is_recorded);
        StartUps { forest, shortest: shortest.collect(), are_recorded }
    }

    /// Returns the fixed part of the runs of these launches, which are of one program. Zero for
    /// forks without exec.
    pub(super) fn fixed_part(&self, batch: &[u32]) -> FixedPart {
        let launches: Vec<_> = batch.iter().map(|index| &self.forest.launches[*index as usize]).collect();
        let first = launches.first();
        let Some((first, run)) = first.and_then(|first| Some((first, *self.shortest.get(first.command.name)?))) else {
            return FixedPart::default();
        };
        let exec_and_load = |launch: &&Launch<'_>| launch.phases.ns(Phase::Exec) + launch.phases.ns(Phase::Load);
        let exec_and_load = median(launches.iter().map(exec_and_load)).unwrap_or_default();
        let start_up = StartUpAssumptions::of(first);
        FixedPart::recorded(self.forest, batch, run, &start_up, exec_and_load).unwrap_or_else(|| {
            match self.are_recorded {
                true => FixedPart::without_input(run, first.cpu_phases.get(Phase::Run).is_some()),
                false => FixedPart::estimated(run, exec_and_load),
            }
        })
    }
}

/// The fixed part of a program's run, in nanoseconds. Recordings since format version 9 contain
/// when a program first uses an argument or its input. For older recordings, it is only known that
/// the fixed part is at most the shortest run.
#[derive(Clone, Copy, Default)]
pub(super) struct FixedPart {
    pub(super) likely: f64,
    deviation: f64,
    /// How to compute the fixed part from the start-up of a single launch, if most start-ups are
    /// recorded.
    recorded: Option<AfterStartUp>,
    /// The share of work in each run, if the shortest one says little of the others: runs may
    /// contain waits for a CPU, or differ only by chance.
    work_share: Option<f64>,
    /// Whether nothing tells the fixed part from work.
    is_guess: bool,
}

/// The fixed part of a run after the recorded start-up.
#[derive(Clone, Copy)]
struct AfterStartUp {
    /// As a share of the start-up.
    share: f64,
    /// In nanoseconds, in addition to the share.
    nanos: f64,
}

/// Recorded start-ups are used if at least this share of the launches of a batch has one.
const MIN_RECORDED_SHARE: f64 = 0.5;

/// If the median run is at least this many times as long as the shortest run, the shortest run did
/// almost no work.
const DIFFERENT_RATIO: f64 = 1.5;
/// If the median run is at most this many times as long as the shortest run, all launches do the
/// same work, so the runs do not separate the fixed part from the work.
const ALIKE_RATIO: f64 = 1.1;
/// Assumed share of work in runs that are alike. It is 0.05 to 0.35 for coreutils programs on small
/// files.
const ALIKE_WORK_SHARE: f64 = 0.15;
/// The same for programs that run longer than their exec and load. It was 0 to 0.16 for nine of
/// them (such as python3, node, perl, jq, cc1 and nm), but 0.98 for gzip.
const ALIKE_WORK_SHARE_OF_LONG: f64 = 0.08;
/// The same for a program that uses no input.
const WORK_SHARE_WITHOUT_INPUT: f64 = 0.1;

#[derive(Clone, Copy)]
struct ShortestRun {
    /// The CPU time of the shortest run, in nanoseconds.
    span: f64,
    /// How alike the runs are, from 0 to 1.
    alike: f64,
}

impl ShortestRun {
    fn of(mut runs: Vec<f64>) -> ShortestRun {
        runs.sort_unstable_by(f64::total_cmp);
        // Of many runs, the very shortest is an exception: a machine is not always equally fast.
        let (span, median) = (runs[runs.len() / 10], runs[runs.len() / 2]);
        let alike = ((DIFFERENT_RATIO - median / span.max(1.0)) / (DIFFERENT_RATIO - ALIKE_RATIO)).clamp(0.0, 1.0);
        ShortestRun { span, alike }
    }
}

/// Assumptions about the fixed part of a program's run. For 19 programs, the CPU time of a launch
/// with one file of a kilobyte, after its start-up, was compared with the CPU time that one more
/// file takes in the same launch. The difference is what a launch does once.
struct StartUpAssumptions {
    /// What a program does once after it first uses an argument: memory for reading, code that runs
    /// for the first time, output. The usual and the largest plausible value, as multiples of the
    /// program's exec and load.
    later: [f64; 2],
    /// What an interpreter does at its end, as a share of its start-up.
    end: f64,
}

/// Code that runs for the first time in the work of a program, as a share of its start-up: 0.033
/// for python3, 0.036 for node, 0.039 for nm with its plugin, too little to be measured for small
/// programs.
const LATER_OF_START_UP: f64 = 0.035;
/// Relative uncertainty of the part after a recorded start-up that is computed as a share of the
/// start-up.
const AFTER_SPREAD: f64 = 0.25;

/// The range in which 95 % of a normal distribution lies, in standard deviations.
const RANGE: f64 = 4.0;
/// How far that range reaches from the mean, in standard deviations.
const REACH: f64 = 2.0;
/// How much of the run after a long start-up is assumed to be start-up, too.
const LATE_SHARE: f64 = 0.75;
/// A start-up is long from this share of the shortest run on.
const LONG_START_UP: f64 = 0.5;

impl StartUpAssumptions {
    /// Programs in machine code. What they do once after they first use an argument took 0.03 to
    /// 0.16 times as long as their exec and load for 13 of 15 programs, 0.22 times for one.
    const COMPILED: StartUpAssumptions = StartUpAssumptions { later: [0.07, 0.2], end: 0.0 };
    /// perl, which reads its script after the start-up.
    const PERL: StartUpAssumptions = StartUpAssumptions { later: [0.3, 0.6], end: 0.3 };
    /// Node, which maps a prepared snapshot of its library, and cleans up little at its end.
    const NODE: StartUpAssumptions = StartUpAssumptions { later: [0.07, 0.2], end: 0.05 };
    /// Other interpreters. At its end, python3 cleans up for about a seventh of the start-up time:
    /// with zero to sixty imports, everything that it did once after its start-up took 0.15 to 0.21
    /// of the start-up time.
    const INTERPRETED: StartUpAssumptions = StartUpAssumptions { later: [0.07, 0.2], end: 0.15 };

    fn of(launch: &Launch<'_>) -> StartUpAssumptions {
        let runtime = launch.execs.last().map(|exec| Runtime::named(exec.program_name()));
        match runtime {
            Some(Runtime::Perl) => StartUpAssumptions::PERL,
            Some(Runtime::Node) => StartUpAssumptions::NODE,
            None | Some(Runtime::Native | Runtime::Shell | Runtime::Make | Runtime::Go | Runtime::Rust) => {
                StartUpAssumptions::COMPILED
            }
            Some(_) => StartUpAssumptions::INTERPRETED,
        }
    }
}

impl FixedPart {
    /// Estimates the fixed part without recorded start-ups: most of the shortest run. If the runs
    /// are alike, they differ because the machine is not always equally fast.
    fn estimated(run: ShortestRun, exec_and_load: f64) -> FixedPart {
        let share = if run.span > exec_and_load { ALIKE_WORK_SHARE_OF_LONG } else { ALIKE_WORK_SHARE };
        let likely = run.span * (1.0 - share * run.alike);
        let work_share = (run.alike >= 1.0).then_some(share);
        FixedPart { likely, work_share, is_guess: true, ..FixedPart::default() }
    }

    /// Estimates the fixed part of a program that uses neither an argument as a file nor its input,
    /// as far as the recorder recognizes that. It may compute what its arguments say. But emacs,
    /// javac, curl and a test program with a filter did little more than start.
    fn without_input(run: ShortestRun, has_cpu_times: bool) -> FixedPart {
        let likely = run.span * (1.0 - WORK_SHARE_WITHOUT_INPUT * run.alike);
        let work_share = (!has_cpu_times).then_some(WORK_SHARE_WITHOUT_INPUT);
        FixedPart { likely, deviation: likely / REACH, work_share, ..FixedPart::default() }
    }

    /// Computes the fixed part from recorded start-ups. `None` if there are too few. The start-ups
    /// are measured, so only the part after them is uncertain.
    fn recorded(
        forest: &Forest<'_>,
        batch: &[u32],
        run: ShortestRun,
        assumed: &StartUpAssumptions,
        exec_and_load: f64,
    ) -> Option<FixedPart> {
        let known = batch.iter().filter_map(|launch| forest.launches[*launch as usize].start_up.get());
        let known: Vec<f64> = known.map(|span| span.0 as f64).collect();
        let has_enough = known.len() as f64 >= MIN_RECORDED_SHARE * batch.len() as f64;
        let start_up = median(known).filter(|_| has_enough)?;
        let share = assumed.end + LATER_OF_START_UP;
        let [usual, max] = assumed.later.map(|later| later * exec_and_load);
        let [likely, low, high] = [(1.0, usual), (1.0 - AFTER_SPREAD, 0.0), (1.0 + AFTER_SPREAD, max)]
            .map(|(spread, later)| (start_up + share * spread * start_up + later).min(run.span));
        // Programs with a long start-up often prepare more once they know what to do: pylint, node
        // and php, of small files, all that they do; curl, git cat-file and readelf, most of it.
        // Others work.
        let is_long = start_up >= LONG_START_UP * run.span;
        let rest = if is_long { run.span - likely } else { 0.0 };
        let more = rest * LATE_SHARE;
        let deviation = (rest / 2.0 / REACH).max((high - low) / RANGE);
        let recorded = Some(AfterStartUp { share, nanos: usual + more });
        Some(FixedPart { likely: likely + more, deviation, recorded, ..FixedPart::default() })
    }

    /// Returns how much of a launch's run of `run` nanoseconds is not the fixed part. Uses the
    /// launch's own start-up if it is recorded, since start-ups take longer while the machine is
    /// busy.
    pub(super) fn work_of(self, launch: &Launch<'_>, run: f64) -> f64 {
        if let Some(share) = self.work_share {
            return run * share;
        }
        let recorded = self.recorded.zip(launch.start_up.get());
        let fixed =
            recorded.map_or(self.likely, |(after, start_up)| start_up.0 as f64 * (1.0 + after.share) + after.nanos);
        (run - fixed).max(0.0)
    }

    /// Adds the uncertainty of a change that saves the fixed part of a launch's run, and leaves
    /// `work` nanoseconds of it.
    pub(super) fn add_uncertainty(self, work: f64, adjustments: &mut Adjustments) {
        adjustments.uncertainty_ns += self.deviation;
        if self.is_guess {
            adjustments.guessed_ns[0] += self.likely;
            adjustments.guessed_ns[1] += work;
        }
    }
}
