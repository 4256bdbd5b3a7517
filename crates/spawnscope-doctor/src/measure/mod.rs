//! What the doctor measures before the checks run: which directories answer (`answers`), what a launch costs (`launch`), whether fresh
//! files are scanned (`scan`), and single steps (`steps`). Anything that can hang is done by measuring processes, with the tools of
//! `launch_timing`. They time launches (`launches`) of static and dynamic programs (`image`) in a temporary directory (`directory`), and store
//! the times in shared memory (`shared_results`). Anything that cannot be measured, or takes too long, is unknown.

mod answers;
mod image;
mod launch;
mod launches;
mod missing_directories;
mod scan;
mod shared_results;
mod steps;
mod temporary_directory;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::answers::Answers;
pub(super) use self::answers::DIRECTORY_TIMEOUT;
pub use self::launch::LaunchCost;
pub use self::scan::{Scan, Stuck};
use self::temporary_directory::{UsableDirectories, TemporaryDirectory};
use super::machine::Machine;
use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_system::calibrate::Calibrator;
use spawnscope_system::launch_timing::isolated_child;

/// The measurements.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How long measuring took.
    pub took: Duration,
    /// What a launch costs.
    pub launch: LaunchCost,
    /// The fastest launch of each kind, without the time it waited for a CPU. A busy machine adds little to it.
    pub quickest: LaunchCost,
    /// After what time the exec of a dynamic program was abandoned, if it did not end.
    pub exec_dynamic_abandoned_after: Option<Nanos>,
    /// A launch of the dynamic program without the loader's variables, if any is set.
    pub without_loader_variables: Option<Nanos>,
    /// A launch of the dynamic program with its library given by path, if the loader's cache is unusable.
    pub without_library_search: Option<Nanos>,
    /// First and later launches of fresh files on a local file system.
    pub scan: Option<Scan>,
    /// The same in the directory for temporary files, if another machine or process serves it.
    pub remote_scan: Option<Scan>,
    /// Constants of forks and of the CPUID instruction.
    pub constants: Vec<Calibration>,
    /// The time of a system call that does nothing.
    pub system_call: Option<Nanos>,
    /// The time of a look-up that finds nothing, in each existing directory of PATH; unknown if it took too long.
    pub lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// Directories, in PATH or elsewhere, that did not answer in time. They must not be accessed again.
    pub unresponsive: Vec<PathBuf>,
    /// Directories that could not be tried, or not for long enough. They must not be accessed either.
    pub untried: Vec<PathBuf>,
    /// The time to move a process into its current control group.
    pub migration: Option<Nanos>,
}

/// The index of the static program among the programs of a directory; the others are fresh copies.
const STATIC_PROGRAM: usize = temporary_directory::PROGRAMS - 1;
/// The time limit for measuring forks; on an idle machine it takes 0.1 s.
const CONSTANTS_TIMEOUT: Duration = Duration::from_millis(250);
/// The time limit for files on a remote file system.
const REMOTE_TIMEOUT: Duration = Duration::from_millis(360);

/// The time limit for everything: the limits of all parts, and a grace period for measuring processes that hang.
const TOTAL_TIMEOUT: Duration = CONSTANTS_TIMEOUT
    .saturating_add(answers::TOTAL_TIMEOUT)
    .saturating_add(launch::TOTAL_TIMEOUT)
    .saturating_add(scan::TOTAL_TIMEOUT)
    .saturating_add(REMOTE_TIMEOUT)
    // The second directory tries only one place, and both are removed.
    .saturating_add(temporary_directory::TOTAL_TIMEOUT)
    .saturating_add(temporary_directory::DIRECTORY_TIMEOUT)
    .saturating_add(temporary_directory::REMOVAL_TIMEOUT.saturating_mul(2))
    .saturating_add(isolated_child::GRACE.saturating_mul(4));
const _: () = assert!(TOTAL_TIMEOUT.as_millis() <= 3800, "the doctor would take more than 5 s");
const _: () = assert!(scan::SEQUENTIAL + scan::CONCURRENT <= STATIC_PROGRAM);

impl Measured {
    /// Measures this machine in about 0.4 s, or in less than 4 s if everything hangs.
    #[must_use]
    pub fn take(machine: &Machine) -> Measured {
        let began = Instant::now();
        let constants = Calibrator::start_for(CONSTANTS_TIMEOUT).map(Calibrator::finish);
        let answers = Answers::collect(machine);
        let machine = &machine
            .clone()
            .without_directories(answers.unresponsive.iter().chain(&answers.untried));
        let UsableDirectories { local, remote } = UsableDirectories::find(machine);
        let directory = TemporaryDirectory::create(local.iter().chain(&remote).map(PathBuf::as_path));
        let launches = launch::measure(machine, directory.as_ref());
        let scan = directory
            .as_ref()
            .and_then(|directory| scan::measure(directory, scan::TOTAL_TIMEOUT));
        drop(directory);
        let remote_scan = || {
            scan::measure(
                &TemporaryDirectory::create(remote.first().map(PathBuf::as_path).into_iter())?,
                REMOTE_TIMEOUT,
            )
        };
        let measured = Measured {
            took: Duration::ZERO,
            launch: launches.typical,
            quickest: launches.quickest,
            exec_dynamic_abandoned_after: launches.abandoned_after,
            without_loader_variables: launches.without_variables,
            without_library_search: launches.without_search,
            remote_scan: remote_scan(),
            // Without a local place, the delay of the remote file system would be measured instead of a scanner.
            scan: scan.filter(|_| !local.is_empty()),
            system_call: steps::system_call(),
            lookups: answers.lookups,
            unresponsive: answers.unresponsive,
            untried: answers.untried,
            migration: steps::migration(machine),
            constants: constants.unwrap_or_default(),
        };
        Measured {
            took: began.elapsed(),
            ..measured
        }
    }

    /// The low end of a constant in nanoseconds, because a busy machine only adds time.
    #[must_use]
    pub fn min_ns(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.low_ns.filter(|low| *low > 0.0).unwrap_or(constant.ns))
    }

    /// The median of a constant in nanoseconds.
    #[must_use]
    pub fn median_ns(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.ns)
    }
}

/// The median; the upper one of the two middle values if their number is even.
pub(super) fn median(mut values: Vec<Nanos>) -> Option<Nanos> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
