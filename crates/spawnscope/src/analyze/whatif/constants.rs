//! What creating a process costs on the recorded machine, apart from the parent's memory: measured when the recording was
//! made, or else the least that the recording itself holds.

use super::refill::Refill;
use crate::analyze::Origin;
use crate::analyze::launch::Launch;
use crate::analyze::phases::Phase;
use crate::analyze::tree::Forest;
use crate::event::{CALIBRATION_PAUSE, Calibration, Constant, Mechanism, Nanos};
use crate::record::reader::Recording;
use crate::statistics::median;

/// Costs in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    /// `create` by fork from a small process.
    pub fork_create: Option<f64>,
    /// `create` by vfork or `posix_spawn`.
    pub vfork_create: Option<f64>,
    /// What is paid at exec or exit to give copied page tables back, for each nanosecond that copying them took.
    pub free_per_copy: Option<f64>,
    /// What is paid to give back the tables of a MiB of small pages.
    pub page_free: Option<f64>,
    /// `exec` from a small process.
    pub exec: Option<f64>,
    /// What a program's C library takes at its start to ask the CPU what it is.
    pub identify: Option<f64>,
    /// What is fetched again after a pause; nothing where that is unknown.
    pub refill: Refill,
    /// Half the spread of the costs of creation, as a share of them.
    pub spread: f64,
    /// The same of `free_per_copy`.
    pub free_spread: f64,
}

/// CPUID instructions at the start of a program with glibc 2.36, static or not: counted by single steps on an AMD EPYC.
const IDENTIFICATIONS: f64 = 43.0;

/// Spread of constants that were not measured on their own.
const UNMEASURED_SPREAD: f64 = 0.2;
/// No cost is more uncertain than by half of itself, as it is bounded otherwise.
const MOST_SPREAD: f64 = 0.5;
/// Creation from a small process takes no longer anywhere. A recording may hold nothing but forks from large ones, and a busy machine
/// disturbs the measurement.
const MOST_FORK_CREATE: f64 = 200_000.0;
/// The same with vfork.
const MOST_VFORK_CREATE: f64 = 100_000.0;
/// `free_per_copy` where it was not measured: 0.66 to 0.88 on machines where it was.
const USUAL_FREE_PER_COPY: f64 = 0.7;
/// Between these it lies on any machine; a measurement beside them was disturbed.
const FREE_PER_COPY: [f64; 2] = [0.3, 1.5];
/// Its spread is then no larger than this.
const MOST_FREE_SPREAD: f64 = 0.3;

impl Constants {
    /// What is known of the machine that a recording was made on.
    #[must_use]
    pub fn of(recording: &Recording, forest: &Forest<'_>) -> Constants {
        let measured = |what: Constant| recording.calibration.iter().find(|row| row.what == what);
        let nanos = |what: Constant| measured(what).map(|row| row.ns);
        let observed = Constants::observed(forest);
        let ratio = nanos(Constant::PageFree).zip(nanos(Constant::PageCopy));
        Constants {
            fork_create: at_most(nanos(Constant::ForkCreate).or(observed.fork_create), MOST_FORK_CREATE),
            vfork_create: at_most(
                nanos(Constant::VforkCreate).or(observed.vfork_create),
                MOST_VFORK_CREATE,
            ),
            page_free: nanos(Constant::PageFree),
            exec: observed.exec,
            refill: nanos(Constant::ForkExit)
                .zip(nanos(Constant::ColdForkExit))
                .map(|(warm, cold)| Refill::measured(warm, cold, CALIBRATION_PAUSE))
                .unwrap_or_default(),
            identify: nanos(Constant::Cpuid).map(|cpuid| IDENTIFICATIONS * cpuid),
            free_per_copy: ratio
                .map(|(free, copy)| (free / copy).clamp(FREE_PER_COPY[0], FREE_PER_COPY[1]))
                .or(observed.free_per_copy),
            spread: measured(Constant::VforkCreate).map_or(UNMEASURED_SPREAD, spread_of),
            free_spread: [Constant::PageFree, Constant::PageCopy]
                .map(|what| measured(what).map_or(UNMEASURED_SPREAD, spread_of))
                .into_iter()
                .fold(0.0, f64::hypot)
                .min(MOST_FREE_SPREAD),
        }
    }

    /// The least that the recording holds of each.
    fn observed(forest: &Forest<'_>) -> Constants {
        let least = |of: &[Mechanism]| {
            let launches = forest.launches.iter();
            let made = launches.filter(|launch| launch.mechanism.is_some_and(|mechanism| of.contains(&mechanism)));
            let create = made.filter_map(|launch| launch.phases.get(Phase::Create));
            create.min().map(|Nanos(create)| create as f64)
        };
        let fork_create = least(&[Mechanism::Fork]);
        Constants {
            vfork_create: least(&[Mechanism::Vfork, Mechanism::PosixSpawn]).or(fork_create),
            fork_create,
            free_per_copy: Some(USUAL_FREE_PER_COPY),
            page_free: None,
            exec: exec_of_small(forest),
            identify: None,
            refill: Refill::default(),
            spread: UNMEASURED_SPREAD,
            free_spread: UNMEASURED_SPREAD,
        }
    }
}

/// The median `exec` of programs that were started from small processes, or that of the command itself.
fn exec_of_small(forest: &Forest<'_>) -> Option<f64> {
    let single = || forest.launches.iter().filter(|launch| launch.execs.len() == 1);
    let exec = |launch: &Launch<'_>| launch.phases.get(Phase::Exec).map(|exec| exec.0 as f64);
    let is_small = |launch: &&Launch<'_>| {
        let create = launch.phases.get(Phase::Create);
        create.is_some_and(|create| (create.0 as f64) < MOST_FORK_CREATE)
    };
    let of_command = || single().find(|launch| launch.origin == Origin::Command).and_then(exec);
    median(single().filter(is_small).filter_map(exec)).or_else(of_command)
}

fn at_most(value: Option<f64>, most: f64) -> Option<f64> {
    value.map(|value| value.min(most))
}

/// Half the distance of the quartiles, as a share of the median.
fn spread_of(row: &Calibration) -> f64 {
    match (row.low_ns, row.high_ns) {
        (Some(low), Some(high)) if row.ns > 0.0 => ((high - low) / 2.0 / row.ns).min(MOST_SPREAD),
        _ => UNMEASURED_SPREAD,
    }
}
