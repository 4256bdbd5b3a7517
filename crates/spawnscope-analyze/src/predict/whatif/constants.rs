//! The cost of creating a process on the recorded machine, without the part that depends on the
//! size of the parent. Costs that the recorder did not measure are derived from the launches in the
//! recording, or assumed.

use super::interval::USUAL_REPEATABILITY;
use super::refill::Refill;
use crate::model::creation_costs::{MAX_FORK_CREATE, MAX_VFORK_CREATE, creation_cost};
use crate::model::grouped::grouped;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use spawnscope_data::event::{CALIBRATION_PAUSE, Calibration, Constant, Mechanism, Nanos};
use spawnscope_data::rows::{Origin, Recording};
use spawnscope_data::statistics::median;

/// Costs in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    /// Time of `create` for a fork by a small process.
    pub fork_create: Option<f64>,
    /// Time of `create` for vfork or `posix_spawn`.
    pub vfork_create: Option<f64>,
    /// Cost of freeing copied page tables at the exec or exit, per nanosecond of copying them.
    pub free_per_copy: Option<f64>,
    /// Time of `exec` for a program that a small process launches.
    pub exec: Option<f64>,
    /// Time that the C library takes at program start to identify the CPU.
    pub identify: Option<f64>,
    /// Standard deviation of `identify`, as a share of it. If `identify` is unknown, the relative
    /// deviation of the part of `load` that a static program keeps.
    pub identify_spread: f64,
    /// Cost of one failed lookup of the loader, including the overhead of recording it.
    pub failed_lookup: Option<f64>,
    /// How long refilling the CPU caches takes after a pause. Zero if unknown.
    pub refill: Refill,
    /// Relative spread of the creation costs: half the interquartile range of `vfork_create`, as a
    /// share of its median.
    pub spread: f64,
    /// Relative spread of `free_per_copy`, from those of its two measured costs.
    pub free_spread: f64,
    /// The relative standard deviation of the same work on this machine. `None` if it was not
    /// measured.
    pub repeatability: Option<f64>,
    /// By how much the lower end of a saving is divided, because it is unknown how much the
    /// recorder slowed launches. At most 1 if it did not.
    pub slowdown: f64,
}

/// Assumed number of CPUID instructions at the start of a program, if they were not counted. The
/// real number is between zero and twice this number: 43 were counted on an AMD EPYC, 68 on an
/// Intel processor, both with glibc 2.36.
const ASSUMED_CPUID_COUNT: f64 = 50.0;
/// Standard deviation, as a share of the mean, of a normal distribution with 95 % of its values
/// between zero and twice the mean.
const ZERO_TO_TWICE_SPREAD: f64 = 0.5;
/// Relative deviation of `identify` between programs on one machine, since a static program
/// contains its own C library.
const IDENTIFY_SPREAD: f64 = 0.1;

const UNMEASURED_SPREAD: f64 = 0.2;
const MAX_SPREAD: f64 = 0.5;
/// Assumed `free_per_copy` if it was not measured. Measured values lie between 0.66 and 0.88.
const USUAL_FREE_PER_COPY: f64 = 0.7;
/// Plausible range of `free_per_copy`. A measurement outside of this range was disturbed.
const FREE_PER_COPY_RANGE: [f64; 2] = [0.3, 1.5];
const MAX_FREE_SPREAD: f64 = 0.3;

impl Constants {
    pub fn of(recording: &Recording, forest: &Forest<'_>) -> Constants {
        let min_fork = min_create(forest, &[Mechanism::Fork]);
        let (identify, identify_spread) = identification(recording);
        let ratio = recording.measured_ns(Constant::PageFree).zip(recording.measured_ns(Constant::PageCopy));
        Constants {
            fork_create: creation_cost(recording, Constant::ForkCreate).or(min_fork).map(|ns| ns.min(MAX_FORK_CREATE)),
            vfork_create: creation_cost(recording, Constant::VforkCreate)
                .or_else(|| min_create(forest, &[Mechanism::Vfork, Mechanism::PosixSpawn]))
                .or(min_fork)
                .map(|ns| ns.min(MAX_VFORK_CREATE)),
            exec: exec_of_small(forest),
            refill: recording
                .measured_ns(Constant::ForkExit)
                .zip(recording.measured_ns(Constant::ColdForkExit))
                .map(|(warm, cold)| Refill::measured(warm, cold, CALIBRATION_PAUSE))
                .unwrap_or_default(),
            identify,
            identify_spread,
            failed_lookup: recording
                .measured_ns(Constant::FailedOpen)
                .map(|open| open + recording.measured_ns(Constant::RecordedCall).unwrap_or_default()),
            free_per_copy: ratio
                .map(|(free, copy)| (free / copy).clamp(FREE_PER_COPY_RANGE[0], FREE_PER_COPY_RANGE[1]))
                .or(Some(USUAL_FREE_PER_COPY)),
            repeatability: deviation_of_start_ups(forest)
                .or_else(|| recording.measured(Constant::ColdForkExit).and_then(deviation_of)),
            slowdown: recording.max_slowdown(),
            spread: recording.measured(Constant::VforkCreate).map_or(UNMEASURED_SPREAD, spread_of),
            free_spread: [Constant::PageFree, Constant::PageCopy]
                .map(|what| recording.measured(what).map_or(UNMEASURED_SPREAD, spread_of))
                .into_iter()
                .fold(0.0, f64::hypot)
                .min(MAX_FREE_SPREAD),
        }
    }
}

fn min_create(forest: &Forest<'_>, mechanisms: &[Mechanism]) -> Option<f64> {
    let launches = forest.launches.iter();
    let created = launches.filter(|launch| launch.mechanism.is_some_and(|mechanism| mechanisms.contains(&mechanism)));
    let create = created.filter_map(|launch| launch.phases.get(Phase::Create));
    create.min().map(|Nanos(create)| create as f64)
}

/// Returns how long a program takes to identify the CPU at its start, and the relative deviation.
/// If the CPUID instructions were not counted, their number is assumed.
fn identification(recording: &Recording) -> (Option<f64>, f64) {
    match (recording.measured(Constant::Identify), recording.measured(Constant::Cpuid)) {
        (Some(all), _) => (Some(all.ns), IDENTIFY_SPREAD.hypot(spread_of(all))),
        (None, Some(one)) => (Some(ASSUMED_CPUID_COUNT * one.ns), ZERO_TO_TWICE_SPREAD),
        (None, None) => (None, ZERO_TO_TWICE_SPREAD),
    }
}

/// Returns the median `exec` of programs that small processes launched, otherwise the `exec` of the
/// command.
fn exec_of_small(forest: &Forest<'_>) -> Option<f64> {
    let single: Vec<&Launch<'_>> = forest.launches.iter().filter(|launch| launch.execs.len() == 1).collect();
    let by_small =
        single.iter().filter(|launch| nanos(launch, Phase::Create).is_some_and(|create| create < MAX_FORK_CREATE));
    let exec = median(by_small.filter_map(|launch| nanos(launch, Phase::Exec)));
    exec.or_else(|| nanos(single.iter().find(|launch| launch.origin == Origin::Command)?, Phase::Exec))
}

fn nanos(launch: &Launch<'_>, phase: Phase) -> Option<f64> {
    launch.phases.get(phase).map(|span| span.0 as f64)
}

/// Returns half the interquartile range as a share of the median.
fn spread_of(row: &Calibration) -> f64 {
    match (row.low_ns, row.high_ns) {
        (Some(low), Some(high)) if row.ns > 0.0 => ((high - low) / 2.0 / row.ns).min(MAX_SPREAD),
        _ => UNMEASURED_SPREAD,
    }
}

/// Number of groups of successive start-ups whose medians are compared.
const GROUPS: usize = 8;
/// Minimum number of start-ups in a group, so that few unusual ones do not change its median.
const MIN_GROUP: usize = 5;

/// Returns the relative standard deviation of the CPU time of equal start-ups, over the time of the
/// recording. `None` if no program starts often enough. Runs of 42 programs deviated by 9.0 % in
/// the median on a machine where this was 7.8 % in the median of their recordings, while the
/// quartiles of `ColdForkExit` gave 1 to 460 %. A short recording does not see slow changes, so it
/// is at least the usual deviation: no program deviated by less than 2.9 %.
fn deviation_of_start_ups(forest: &Forest<'_>) -> Option<f64> {
    let time = |launch: &Launch<'_>| {
        Some((launch.cpu_phases.get(Phase::Exec)?.0 + launch.cpu_phases.get(Phase::Load)?.0) as f64)
    };
    let once = forest.launches.iter().filter(|launch| launch.execs.len() == 1);
    let by_program = grouped(once.filter_map(|launch| Some((launch.command.name, time(launch)?))));
    let most = by_program.into_values().max_by_key(Vec::len)?;
    let size = most.len() / GROUPS;
    let medians: Vec<f64> =
        most.chunks_exact(size.max(1)).take(GROUPS).filter_map(|group| median(group.iter().copied())).collect();
    let mean = medians.iter().sum::<f64>() / GROUPS as f64;
    let squares: f64 = medians.iter().map(|median| (median - mean).powi(2)).sum();
    (size >= MIN_GROUP && mean > 0.0).then(|| ((squares / (GROUPS - 1) as f64).sqrt() / mean).max(USUAL_REPEATABILITY))
}

/// Half the interquartile range of a normal distribution, in standard deviations.
const HALF_RANGE: f64 = 0.6745;

/// Returns the relative standard deviation of repeated measurements. Measurements after a pause
/// scatter like runs of a command: 15 runs of the same program deviate by 2.8 % in the median on a
/// machine where half the interquartile range of `ColdForkExit` is 1.9 to 3.1 %. Measurements
/// without pauses scatter by 25 to 50 % there, since the first of them find cold caches.
fn deviation_of(row: &Calibration) -> Option<f64> {
    let range = row.high_ns? - row.low_ns?;
    Some(range / 2.0 / HALF_RANGE / row.ns)
}
