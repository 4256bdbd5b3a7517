//! The measurements before the checks: which directories answer (`answers`), what a launch costs
//! (`launch`), whether fresh files are scanned (`scan`), and the time of a system call. Anything
//! that can hang is done by measuring processes, with the tools of `launch_timing`. They time
//! launches of static and dynamic programs in a temporary directory (`temporary_directory`), and
//! store the times in shared memory (`launches`). Anything that cannot be measured, or takes too
//! long, is unknown.

mod answers;
mod launch;
mod launches;
mod scan;
mod temporary_directory;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::answers::Answers;
pub(super) use self::answers::DIRECTORY_TIMEOUT;
pub use self::launch::LaunchCost;
pub use self::scan::{Scan, StuckOperation};
use self::temporary_directory::{TemporaryDirectory, usable_directories};
use super::machine::Machine;
use super::programs;
use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_system::calibrate::Calibrator;
use spawnscope_system::launch_timing::isolated_child;
use spawnscope_system::launch_timing::timing::{make_system_calls, timed};

#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub took: Duration,
    pub launch: LaunchCost,
    /// The time after which the launch of the dynamic program was abandoned; `None` if it ended.
    pub exec_dynamic_abandoned_after: Option<Nanos>,
    /// The launch of the dynamic program without the loader's variables; `None` if none is set.
    pub without_loader_variables: Option<Nanos>,
    /// The launch of the dynamic program with its library given by path; `None` if the loader's
    /// cache is usable.
    pub without_library_search: Option<Nanos>,
    /// First and later launches of fresh files on a local file system.
    pub scan: Option<Scan>,
    /// First and later launches of fresh files in the directory for temporary files, if another
    /// machine or process serves that directory.
    pub remote_scan: Option<Scan>,
    pub constants: Vec<Calibration>,
    pub system_call: Option<Nanos>,
    /// The time of a look-up that finds nothing, for each existing directory of PATH; `None` if it
    /// took too long.
    pub lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// Directories, in PATH or elsewhere, that did not answer in time. They must not be accessed
    /// again.
    pub unresponsive: Vec<PathBuf>,
    /// Directories that were not tried, or not for long enough. They must not be accessed either.
    pub untried: Vec<PathBuf>,
}

/// The index of the static program among the programs of a temporary directory. The others are
/// fresh copies of it.
const STATIC_PROGRAM: usize = temporary_directory::PROGRAMS - 1;
/// The time limit for the calibrated constants, which take 0.1 s on an idle machine.
const CONSTANTS_TIMEOUT: Duration = Duration::from_millis(250);
const REMOTE_TIMEOUT: Duration = Duration::from_millis(360);

/// The time limit for everything: the limits of all parts, and a grace period for measuring
/// processes that hang.
const TOTAL_TIMEOUT: Duration = CONSTANTS_TIMEOUT
    .saturating_add(answers::TOTAL_TIMEOUT)
    .saturating_add(launch::TOTAL_TIMEOUT)
    .saturating_add(scan::TOTAL_TIMEOUT)
    .saturating_add(REMOTE_TIMEOUT)
    // For the second temporary directory, only one parent is tried. Both temporary directories are
    // removed.
    .saturating_add(temporary_directory::TOTAL_TIMEOUT)
    .saturating_add(temporary_directory::DIRECTORY_TIMEOUT)
    .saturating_add(temporary_directory::REMOVAL_TIMEOUT.saturating_mul(2))
    .saturating_add(isolated_child::KILL_TIMEOUT.saturating_mul(4));
// The rest of the doctor's 5 s is for ending the last of the user's programs, and for descriptors.
const _: () =
    assert!(TOTAL_TIMEOUT.as_millis() <= programs::TOTAL_TIME.as_millis(), "the doctor could take more than 5 s");
const _: () = assert!(scan::SEQUENTIAL_COPIES + scan::CONCURRENT_COPIES <= STATIC_PROGRAM);

impl Measured {
    /// Measures this machine in about 0.4 s, or in less than 4 s if everything hangs.
    pub fn measure(machine: &Machine) -> Measured {
        let began = Instant::now();
        let constants = Calibrator::start_for(CONSTANTS_TIMEOUT).map(Calibrator::finish);
        let answers = Answers::collect(machine);
        let machine = &machine.clone().without_directories(answers.unresponsive.iter().chain(&answers.untried));
        let [local, remote] = usable_directories(machine);
        let directory = TemporaryDirectory::create(local.iter().chain(&remote).map(PathBuf::as_path));
        let measured = launch::measure(machine, directory.as_ref());
        let scan = directory.as_ref().and_then(|directory| scan::measure(directory, scan::TOTAL_TIMEOUT));
        drop(directory);
        let remote_directory = TemporaryDirectory::create(remote.first().map(PathBuf::as_path).into_iter());
        let remote_scan = remote_directory.and_then(|directory| scan::measure(&directory, REMOTE_TIMEOUT));
        let measured = Measured {
            remote_scan,
            // Without a local directory, the scan would measure the delay of the remote file system
            // instead of a scanner's.
            scan: scan.filter(|_| !local.is_empty()),
            system_call: system_call(),
            lookups: answers.lookups,
            unresponsive: answers.unresponsive,
            untried: answers.untried,
            constants: constants.unwrap_or_default(),
            ..measured
        };
        Measured { took: began.elapsed(), ..measured }
    }

    /// Returns the lower bound of a constant in nanoseconds, or its median without a bound. A busy
    /// machine only adds time.
    pub fn min_ns(&self, what: Constant) -> Option<f64> {
        let constant = self.constants.iter().find(|constant| constant.what == what)?;
        Some(constant.low_ns.filter(|low| *low > 0.0).unwrap_or(constant.ns))
    }
}

/// Returns the time of a system call that does nothing: the median of several rounds.
fn system_call() -> Option<Nanos> {
    const ROUNDS: usize = 9;
    const CALLS_PER_ROUND: u32 = 200;
    let round = |_| Nanos(timed(|| make_system_calls(CALLS_PER_ROUND)).0 / u64::from(CALLS_PER_ROUND));
    median((0..ROUNDS).map(round).collect())
}

/// Returns the median. For an even number of values, this is the upper of the two middle ones.
pub(super) fn median(mut values: Vec<Nanos>) -> Option<Nanos> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn c_path(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}
