//! Finds out which directories answer, and how fast: those of PATH, and others that the doctor
//! itself would access. One measuring process per directory tries it, and all run at the same time.
//! So a directory that hangs delays neither the others nor the doctor.

use std::collections::HashSet;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rustix::fs::stat;

use super::{c_path, temporary_directory};
use crate::loader;
use crate::machine::Machine;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::measuring_process::MeasuringProcess;
use spawnscope_system::launch_timing::shared::Shareable;
use spawnscope_system::launch_timing::timing::timed;

pub(crate) const DIRECTORY_TIMEOUT: Duration = Duration::from_millis(300);
/// How long all directories together may take, if there are too many to try them all at the same
/// time.
pub(super) const TOTAL_TIMEOUT: Duration = Duration::from_millis(400);
const MAX_PROCESSES: usize = 64;
/// How many names are looked up in a directory. Each look-up uses another name, because the kernel
/// caches negative results.
const LOOKUPS: usize = 9;

#[derive(Default)]
pub(super) struct Answers {
    /// Existing directories of PATH, each with the time of a look-up that finds nothing; `None` if
    /// no look-up ended in time.
    pub(super) lookups: Vec<(PathBuf, Option<Nanos>)>,
    /// Directories that did not answer in time, in PATH or not.
    pub(super) unresponsive: Vec<PathBuf>,
    /// Directories for which no process could be started, or whose process did not get enough time.
    pub(super) untried: Vec<PathBuf>,
}

impl Answers {
    pub(super) fn collect(machine: &Machine) -> Answers {
        let end = Instant::now() + TOTAL_TIMEOUT;
        let mut answers = Answers::default();
        let mut pending: Vec<PendingProbe> = Vec::new();
        for probe in probes(machine) {
            if pending.len() >= MAX_PROCESSES {
                answers.add_results(std::mem::take(&mut pending), end);
            }
            let mut process = probe.start(machine, end);
            if process.is_none() && !pending.is_empty() {
                // If no more processes can be created, try one directory after the other.
                answers.add_results(std::mem::take(&mut pending), end);
                process = probe.start(machine, end);
            }
            match process {
                Some(process) => pending.push((probe, process, Instant::now() + DIRECTORY_TIMEOUT)),
                None => answers.untried.push(probe.directory),
            }
        }
        answers.add_results(pending, end);
        answers
    }

    fn add_results(&mut self, pending: Vec<PendingProbe>, end: Instant) {
        for (probe, process, until) in pending {
            let measured = process.end(until.min(end));
            let Probe { directory, is_in_path } = probe;
            let answer = measured.results.answer.load(Ordering::Acquire);
            let fastest_ns = measured.results.fastest_ns.load(Ordering::Acquire);
            let has_answered = match answer {
                DIRECTORY if is_in_path => fastest_ns > 0 || measured.is_in_time,
                answer => matches!(answer, DIRECTORY | SOMETHING_ELSE),
            };
            if has_answered {
                let lookup = (is_in_path && fastest_ns > 0).then_some(Nanos(fastest_ns));
                self.lookups.extend(lookup.map(|time| (directory, Some(time))));
            } else if answer == NOT_TRIED || measured.is_runnable || until > end {
                // The directory was not tried, or not for its full time.
                self.untried.push(directory);
            } else {
                if is_in_path {
                    self.lookups.push((directory.clone(), None));
                }
                self.unresponsive.push(directory);
            }
        }
    }
}

struct Probe {
    directory: PathBuf,
    is_in_path: bool,
}

/// A probe, its process, and when it is abandoned.
type PendingProbe = (Probe, MeasuringProcess<SharedResults>, Instant);

/// Returns each directory once, those outside of PATH first.
fn probes(machine: &Machine) -> Vec<Probe> {
    let path = machine.search_path().into_iter().map(|directory| (directory, true));
    let home = machine.variable("HOME").map(PathBuf::from);
    let others = std::iter::once(machine.working_directory().to_owned())
        .chain(temporary_directory::candidates(machine))
        .chain(home)
        .chain(loader::named_paths(machine));
    let mut seen = HashSet::new();
    let mut probes: Vec<Probe> = path
        .chain(others.map(|directory| (directory, false)))
        .filter(|(directory, _)| {
            directory.is_absolute() && directory != Path::new("/") && seen.insert(directory.clone())
        })
        .map(|(directory, is_in_path)| Probe { directory, is_in_path })
        .collect();
    // Directories outside PATH come first: a long PATH can use up the time, and without a directory
    // for the test programs, other measurements are missing.
    probes.sort_by_key(|probe| probe.is_in_path);
    probes
}

/// Values of `SharedResults::answer`. `NOT_TRIED` remains if the process did not run in time,
/// because the machine was too busy.
const NOT_TRIED: u64 = 0;
const STARTED: u64 = 1;
const DIRECTORY: u64 = 2;
const SOMETHING_ELSE: u64 = 3;

/// The results of a process that tries a directory.
#[repr(C)]
struct SharedResults {
    answer: AtomicU64,
    /// The time of the fastest look-up in nanoseconds, without look-ups during which the process
    /// was preempted. The minimum is used because a slow file system is slow each time, while a
    /// busy machine slows down only some look-ups.
    fastest_ns: AtomicU64,
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

impl Probe {
    /// Starts a process that tries the directory; returns `None` if the time is up, or if no
    /// process can be created.
    fn start(&self, machine: &Machine, end: Instant) -> Option<MeasuringProcess<SharedResults>> {
        if Instant::now() >= end {
            return None;
        }
        let path = machine.path(&self.directory);
        let directory = c_path(&path)?;
        let names = (0..if self.is_in_path { LOOKUPS } else { 0 })
            .map(|number| c_path(&path.join(format!("spawnscope-{}-{number}", std::process::id()))))
            .collect::<Option<Vec<CString>>>()?;
        MeasuringProcess::start(|results: &SharedResults| {
            results.answer.store(STARTED, Ordering::Release);
            let is_directory =
                stat(directory.as_c_str()).is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFDIR);
            let answer = if is_directory { DIRECTORY } else { SOMETHING_ELSE };
            results.answer.store(answer, Ordering::Release);
            for name in names.iter().take_while(|_| is_directory) {
                let preemptions = preemptions();
                let took = timed(|| _ = stat(name.as_c_str())).0.max(1);
                let fastest_ns = results.fastest_ns.load(Ordering::Relaxed);
                if (fastest_ns == 0 || took < fastest_ns) && preemptions == self::preemptions() {
                    results.fastest_ns.store(took, Ordering::Release);
                }
            }
            Some(())
        })
        .ok()
    }
}

fn preemptions() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.involuntary_context_switches())
}
