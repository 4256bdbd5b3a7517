//! Finds out which of many directories do not exist. One measuring process checks them one after the other, because a process for each
//! directory would take too much time. Existing directories, and directories that hang, are left to `answers`.

use std::collections::HashSet;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::answers::{Probe, file_type};
use super::c_path;
use crate::machine::Machine;
use spawnscope_system::launch_timing::measuring_process::MeasuringProcess;
use spawnscope_system::launch_timing::shared::Shareable;

/// How long one process may run: enough for all directories if none hangs.
const PROCESS_TIMEOUT: Duration = Duration::from_millis(50);
/// How long all processes together may run.
const TOTAL_TIMEOUT: Duration = Duration::from_millis(150);
/// The maximum number of directories that are checked.
const MAX_DIRECTORIES: usize = 1 << 14;

/// The results of the process.
#[repr(C)]
struct SharedResults {
    /// How many directories the process has checked.
    checked: AtomicU64,
    /// One bit for each path that is not a directory.
    missing_directories: [AtomicU64; MAX_DIRECTORIES / 64],
}

// SAFETY: consists of atomic numbers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

/// Returns the missing directories; nothing if there are at most `few` directories, for which `answers` is fast enough.
pub(super) fn find(machine: &Machine, probes: &[Probe], few: usize, end: Instant) -> HashSet<PathBuf> {
    let mut missing_directories = HashSet::new();
    if probes.len() <= few {
        return missing_directories;
    }
    let end = end.min(Instant::now() + TOTAL_TIMEOUT);
    let mut remaining = &probes[..probes.len().min(MAX_DIRECTORIES)];
    while !remaining.is_empty() && Instant::now() < end {
        let paths = remaining.iter().map(|probe| c_path(&machine.path(&probe.directory)));
        let Some(paths) = paths.collect::<Option<Vec<CString>>>() else {
            return missing_directories;
        };
        let Ok(process) = MeasuringProcess::start(|results: &SharedResults| check(results, &paths)) else {
            return missing_directories;
        };
        let results = process.end(end.min(Instant::now() + PROCESS_TIMEOUT)).results;
        let checked = results.checked.load(Ordering::Acquire) as usize;
        let directories = (0..checked)
            .filter(|number| {
                results.missing_directories[number / 64].load(Ordering::Acquire) & (1 << (number % 64)) != 0
            })
            .map(|number| remaining[number].directory.clone());
        missing_directories.extend(directories);
        // The process stopped at the next directory, which hangs: skip it.
        remaining = remaining.get(checked + 1..).unwrap_or_default();
    }
    missing_directories
}

fn check(results: &SharedResults, paths: &[CString]) -> Option<()> {
    for (number, path) in paths.iter().enumerate() {
        if file_type(path) != Some(libc::S_IFDIR) {
            results.missing_directories.get(number / 64)?.fetch_or(1 << (number % 64), Ordering::AcqRel);
        }
        results.checked.store(number as u64 + 1, Ordering::Release);
    }
    Some(())
}
