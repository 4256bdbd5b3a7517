//! What the doctor measures, before anything else runs: which directories answer (`answers`), what a launch costs (`launch`), whether
//! fresh files are scanned (`scan`), and single steps (`steps`). Whatever can hang is done by small processes (`small`): they time launches
//! (`launches`), and the part of it that a processor was waited for (`waits`), of static and dynamic programs (`image`) in a folder of ours (`folder`), and leave the times on a `results`. What cannot be
//! measured, or takes too long, is unknown.

mod answers;
mod folder;
mod image;
mod launch;
mod launches;
mod missing_directories;
mod scan;
mod shared_results;
mod small;
mod steps;
mod waits;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::answers::Answers;
pub(super) use self::answers::PATIENCE;
use self::folder::{Folder, Places};
pub use self::launch::LaunchCost;
pub use self::scan::{Scan, Stuck};
use super::child;
use super::machine::Machine;
use crate::collect::calibrate::Calibrator;
use crate::event::{Calibration, Constant, Nanos};

/// The figures.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// How long measuring took.
    pub took: Duration,
    /// What a launch costs.
    pub launch: LaunchCost,
    /// What the quickest launch took, without the time in which it waited for a processor: on a busy machine no more than others.
    pub quickest: LaunchCost,
    /// After how long an exec of a dynamically linked program was given up, where it did not come to its end.
    pub exec_dynamic_given_up: Option<Nanos>,
    /// The same without the variables of the dynamic loader, where any is set.
    pub without_loader_variables: Option<Nanos>,
    /// The same with its library named by its path, where the dynamic loader has no cache to find it in.
    pub without_library_search: Option<Nanos>,
    /// First and later launches of fresh files, on a file system of this machine.
    pub scan: Option<Scan>,
    /// The same in the directory for temporary files, where another machine or process keeps that.
    pub remote_scan: Option<Scan>,
    /// Constants of forks, and of the CPUID instruction.
    pub constants: Vec<Calibration>,
    /// A system call that does nothing.
    pub system_call: Option<Nanos>,
    /// A look-up that finds nothing, in each directory of PATH that exists; unknown where it took too long.
    pub lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// Directories, of PATH and others, that did not answer in time. Nobody should touch them again.
    pub silent: Vec<PathBuf>,
    /// Directories that could not be asked, or not for long enough. Nobody should touch those either.
    pub untried: Vec<PathBuf>,
    /// A move of a process to the control group that it is in.
    pub migration: Option<Nanos>,
}

/// The number of the static program among those in a folder; others are fresh.
const STATIC_PROGRAM: usize = folder::PROGRAMS - 1;
/// How long forks may be measured: on an idle machine they are done in 0.1 s.
const LIMIT_OF_CONSTANTS: Duration = Duration::from_millis(250);
/// How long files on a remote file system may take.
const LIMIT_OF_REMOTE: Duration = Duration::from_millis(360);

/// How long all of it takes at most: each part its limit, and a last moment for small processes that hang.
const LONGEST: Duration = LIMIT_OF_CONSTANTS
    .saturating_add(answers::LIMIT)
    .saturating_add(launch::LIMIT)
    .saturating_add(scan::LIMIT)
    .saturating_add(LIMIT_OF_REMOTE)
    // The second folder has one place only, and all are removed.
    .saturating_add(folder::LIMIT)
    .saturating_add(folder::LIMIT_OF_ONE)
    .saturating_add(folder::LIMIT_OF_REMOVAL.saturating_mul(2))
    .saturating_add(child::GRACE.saturating_mul(4));
const _: () = assert!(LONGEST.as_millis() <= 3800, "the doctor would take more than 5 s");
const _: () = assert!(scan::ONE_BY_ONE + scan::AT_ONCE <= STATIC_PROGRAM);

impl Measured {
    /// Measures this machine, in about 0.4 s; where everything hangs, in less than 4 s.
    #[must_use]
    pub fn take(machine: &Machine) -> Measured {
        let began = Instant::now();
        let constants = Calibrator::start_for(LIMIT_OF_CONSTANTS).map(Calibrator::finish);
        let answers = Answers::of(machine);
        let machine = &machine
            .clone()
            .leaving_out(answers.silent.iter().chain(&answers.untried));
        let Places { local, remote } = Places::of(machine);
        let folder = Folder::make(local.iter().chain(&remote).map(PathBuf::as_path));
        let launches = launch::measure(machine, folder.as_ref());
        let scan = folder.as_ref().and_then(|folder| scan::measure(folder, scan::LIMIT));
        drop(folder);
        let remote_scan = || {
            scan::measure(
                &Folder::make(remote.first().map(PathBuf::as_path).into_iter())?,
                LIMIT_OF_REMOTE,
            )
        };
        let measured = Measured {
            took: Duration::ZERO,
            launch: launches.typical,
            quickest: launches.quickest,
            exec_dynamic_given_up: launches.given_up,
            without_loader_variables: launches.without_variables,
            without_library_search: launches.without_search,
            remote_scan: remote_scan(),
            // Without a place on this machine, it is no scanner that is measured.
            scan: scan.filter(|_| !local.is_empty()),
            system_call: steps::system_call(),
            lookups: answers.lookups,
            silent: answers.silent,
            untried: answers.untried,
            migration: steps::migration(machine),
            constants: constants.unwrap_or_default(),
        };
        Measured {
            took: began.elapsed(),
            ..measured
        }
    }

    /// The low end of a constant, in nanoseconds: a busy machine only adds to it.
    #[must_use]
    pub fn least(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.low_ns.filter(|low| *low > 0.0).unwrap_or(constant.ns))
    }

    /// A constant's median, in nanoseconds.
    #[must_use]
    pub fn constant(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.ns)
    }
}

/// The middle one.
pub(super) fn median(mut values: Vec<Nanos>) -> Option<Nanos> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
