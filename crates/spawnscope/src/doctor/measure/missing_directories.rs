//! Which of very many directories are none: told by one small process that looks at them one after the other, where a process for each
//! would take all the time. Those that are there, or hang, are left to `answers`.

use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::answers::{Question, kind};
use super::small::Small;
use crate::collect::shared::Shareable;
use crate::doctor::machine::Machine;

/// How long one process may look at them, which is enough for all where none hangs, and how long all processes may.
const PATIENCE: Duration = Duration::from_millis(50);
const LIMIT: Duration = Duration::from_millis(150);
/// Directories that are looked at.
const MOST: usize = 1 << 14;

/// What the process leaves.
#[repr(C)]
struct SharedResults {
    /// How many it has looked at.
    looked_at: AtomicU64,
    /// A bit for each that is no directory.
    missing_directories: [AtomicU64; MOST / 64],
}

// SAFETY: nothing but atomic numbers, which may be zero.
unsafe impl Shareable for SharedResults {}

/// Those that are none, of more than `few`.
pub(super) fn of(machine: &Machine, questions: &[Question], few: usize, end: Instant) -> HashSet<PathBuf> {
    let mut missing_directories = HashSet::new();
    if questions.len() <= few {
        return missing_directories;
    }
    let end = end.min(Instant::now() + LIMIT);
    let place = |question: &Question| CString::new(machine.path(&question.directory).as_os_str().as_bytes()).ok();
    let mut left = &questions[..questions.len().min(MOST)];
    while !left.is_empty() && Instant::now() < end {
        let Some(paths) = left.iter().map(place).collect::<Option<Vec<CString>>>() else {
            return missing_directories;
        };
        let Ok(small) = Small::begin(|results: &SharedResults| look(results, &paths)) else {
            return missing_directories;
        };
        let results = small.end(end.min(Instant::now() + PATIENCE)).results;
        let looked_at = results.looked_at.load(Ordering::Acquire) as usize;
        let is_vain = |number: &usize| {
            results.missing_directories[number / 64].load(Ordering::Acquire) & (1 << (number % 64)) != 0
        };
        let directories = (0..looked_at)
            .filter(is_vain)
            .map(|number| left[number].directory.clone());
        missing_directories.extend(directories);
        // The next one held it up.
        left = left.get(looked_at + 1..).unwrap_or_default();
    }
    missing_directories
}

fn look(results: &SharedResults, paths: &[CString]) -> Option<()> {
    for (number, path) in paths.iter().enumerate() {
        if kind(path) != Some(libc::S_IFDIR) {
            results
                .missing_directories
                .get(number / 64)?
                .fetch_or(1 << (number % 64), Ordering::AcqRel);
        }
        results.looked_at.store(number as u64 + 1, Ordering::Release);
    }
    Some(())
}
