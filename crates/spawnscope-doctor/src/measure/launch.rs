//! Measures the cost of launching a process that only exits, a static program, and a dynamic
//! program. The launches of all kinds alternate, and the result for each kind is the median.

use std::time::Duration;

use super::Measured;
use super::launches::{Image, LaunchError, LaunchTime, MAX_TIMES, SERIES, Series, SharedResults, Work, launch};
use super::temporary_directory::TemporaryDirectory;
use crate::loader;
use crate::machine::Machine;
use spawnscope_data::event::Nanos;
use spawnscope_system::arch::LIBRARY_DIRECTORIES;
use spawnscope_system::launch_timing::measuring_process;
use spawnscope_system::launch_timing::timing::Deadline;
use spawnscope_system::tiny;

/// How long after the start of the first round the last one may start.
const LAST_ROUND_START: Duration = Duration::from_millis(300);
const LAUNCH_TIMEOUT: Duration = Duration::from_millis(300);
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_millis(900);
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
pub(super) fn measure(machine: &Machine, directory: Option<&TemporaryDirectory>) -> Measured {
    let content = tiny::program(0, "");
    let tiny = directory.and_then(|directory| directory.program(super::STATIC_PROGRAM, Some(machine)));
    let [dynamic, plain, by_path] = [Some(machine.clone()), without_variables(machine), without_search(machine)]
        .map(|machine| dynamic_program(&machine?));
    let mut kinds = [None; SERIES];
    kinds[FORK] = Some(Work::Exit);
    kinds[WITHOUT_VARIABLES] = plain.as_ref().map(Work::Execute);
    kinds[WITHOUT_SEARCH] = by_path.as_ref().map(Work::Execute);
    kinds[DYNAMIC] = dynamic.as_ref().map(Work::Execute);
    let measured = measuring_process::measure(TOTAL_TIMEOUT, |results: &SharedResults| {
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
