//! The measurements before the checks: which directories answer (`answers`), what a launch costs,
//! whether fresh files are scanned (`scan`), and the time of a system call. Anything that can hang
//! is done by measuring processes, with the tools of `launch_timing`. They time launches of static
//! and dynamic programs in a temporary directory (`temporary_directory`), and store the times in
//! shared memory (`launches`). Anything that cannot be measured, or takes too long, is unknown.

mod answers;
mod launches;
mod scan;
mod temporary_directory;

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::answers::Answers;
pub(super) use self::answers::DIRECTORY_TIMEOUT;
use self::launches::{Image, LaunchError, LaunchTime, MAX_TIMES, SERIES, Series, SharedResults, Work, launch};
pub use self::scan::{Scan, StuckOperation};
use self::temporary_directory::{TemporaryDirectory, usable_directories};
use crate::machine::Machine;
use crate::{loader, programs};
use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_system::arch::LIBRARY_DIRECTORIES;
use spawnscope_system::calibrate::Calibrator;
use spawnscope_system::launch_timing::timing::{Deadline, make_system_calls, timed};
use spawnscope_system::launch_timing::{isolated_child, measuring_process};
use spawnscope_system::tiny;

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
    .saturating_add(LAUNCHES_TIMEOUT)
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
        let measured = measure_launches(machine, directory.as_ref());
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

/// How long after the start of the first round the last one may start.
const LAST_ROUND_START: Duration = Duration::from_millis(300);
const LAUNCH_TIMEOUT: Duration = Duration::from_millis(300);
const LAUNCHES_TIMEOUT: Duration = Duration::from_millis(900);
/// Programs that do nothing; the first that exists is used.
const NO_OP_PROGRAMS: [&str; 3] = ["/bin/true", "/usr/bin/true", "/run/current-system/sw/bin/true"];
/// Times of launches, each from the parent's fork call to the end of its wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchCost {
    /// The launch of a process that exits immediately.
    pub fork: Option<Nanos>,
    /// The launch of a one-page static program that exits immediately.
    pub exec_static: Option<Nanos>,
    /// The launch of `true`, a dynamic program, in the user's environment.
    pub exec_dynamic: Option<Nanos>,
}

/// Indexes of the series of times. Kinds that are likely to take long come late.
const FORK: usize = 0;
const WITHOUT_VARIABLES: usize = 1;
const WITHOUT_SEARCH: usize = 2;
const STATIC: usize = 3;
const DYNAMIC: usize = 4;

/// Returns the times of launches, and nothing else.
fn measure_launches(machine: &Machine, directory: Option<&TemporaryDirectory>) -> Measured {
    let content = tiny::program(0, "");
    let tiny = directory.and_then(|directory| directory.program(STATIC_PROGRAM, Some(machine)));
    let [dynamic, plain, by_path] = [Some(machine.clone()), without_variables(machine), without_search(machine)]
        .map(|machine| dynamic_program(&machine?));
    let mut kinds = [None; SERIES];
    kinds[FORK] = Some(Work::Exit);
    kinds[WITHOUT_VARIABLES] = plain.as_ref().map(Work::Execute);
    kinds[WITHOUT_SEARCH] = by_path.as_ref().map(Work::Execute);
    kinds[DYNAMIC] = dynamic.as_ref().map(Work::Execute);
    let measured = measuring_process::measure(LAUNCHES_TIMEOUT, |results: &SharedResults| {
        if let Some(image) = &tiny {
            let written = launch(Work::Write(image.path(), &content), LAUNCH_TIMEOUT);
            kinds[STATIC] = written.is_ok().then_some(Work::Execute(image));
        }
        launch_in_turn(kinds, results);
        Some(())
    });
    let Ok(measured) = measured else { return Default::default() };
    let series = &measured.results.series;
    Measured {
        launch: LaunchCost {
            fork: series[FORK].typical(),
            exec_static: series[STATIC].typical(),
            exec_dynamic: series[DYNAMIC].typical(),
        },
        exec_dynamic_abandoned_after: series[DYNAMIC].abandoned_after(),
        without_loader_variables: series[WITHOUT_VARIABLES].typical(),
        without_library_search: series[WITHOUT_SEARCH].typical(),
        ..Measured::default()
    }
}

/// Launches the kinds in turn. The first launch of each kind is stored separately, because its
/// files are not yet cached and may be scanned. A kind that takes too long is not launched again.
fn launch_in_turn(mut kinds: [Option<Work<'_>>; SERIES], results: &SharedResults) {
    let mut launch_all = |store: fn(&Series, LaunchTime), abandon: fn(&Series, Nanos)| {
        for (kind, series) in kinds.iter_mut().zip(&results.series) {
            match kind.map(|work| launch(work, LAUNCH_TIMEOUT)) {
                Some(Ok(launched)) => store(series, launched),
                Some(Err(LaunchError::TookTooLong)) => {
                    abandon(series, Nanos(LAUNCH_TIMEOUT.as_nanos() as u64));
                    *kind = None;
                }
                Some(Err(LaunchError::Failed)) | None => {}
            }
        }
    };
    launch_all(Series::set_first, Series::abandon);
    for _ in Deadline::after(LAST_ROUND_START).rounds(MAX_TIMES) {
        launch_all(Series::add, |_, _| {});
    }
}

fn without_variables(machine: &Machine) -> Option<Machine> {
    loader::variables(machine).next()?;
    Some(machine.clone().without_variables(loader::is_loader_variable))
}

/// Returns the machine with the C library in LD_PRELOAD, so that the loader need not search for it;
/// `None` if the loader's cache is usable.
fn without_search(machine: &Machine) -> Option<Machine> {
    loader::why_cache_is_unusable(machine)?;
    // Where distributions install the C library.
    let directories = LIBRARY_DIRECTORIES.into_iter().chain(["/lib64", "/usr/lib64", "/usr/lib", "/lib"]);
    let library = directories.map(|directory| format!("{directory}/libc.so.6")).find(|file| machine.exists(file))?;
    machine.variable("LD_PRELOAD").is_none().then(|| machine.clone().with_variable("LD_PRELOAD", library))
}

fn dynamic_program(machine: &Machine) -> Option<Image> {
    let path = NO_OP_PROGRAMS.into_iter().find(|path| machine.is_executable(path))?;
    Image::new(&machine.path(path), machine.environment())
}
