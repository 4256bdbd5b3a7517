//! The checks, one per file. Each finding has a title, evidence, the cost on this machine, and what can be done.

mod audit;
mod binfmt;
pub(super) mod c_library;
mod cgroups;
mod cpuid;
mod environment;
mod file_systems;
mod git;
mod git_setting;
mod governor;
mod hanging;
mod interpreter_options;
mod interpreters;
mod large_parents;
mod launch_cost;
pub(super) mod loader_cache;
pub(super) mod loader_environment;
mod open_files;
mod overcommit;
mod process_limits;
mod scanners;
mod search_path;
mod seccomp;
mod security_modules;
mod shell_start;
mod shims;
mod start_file;
mod values;

use super::programs::Programs;
use super::{Examination, Findings, Measured};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

/// Returns the nanoseconds that a fork takes for each MiB of the parent's memory in 4 KiB pages, to copy the page tables and to free the
/// copy. Uses the lowest measured values, because a busy machine only adds time.
fn fork_ns_per_mebibyte(measured: &Measured) -> Option<f64> {
    Some(measured.min_ns(Constant::PageCopy)? + measured.min_ns(Constant::PageFree)?)
}

/// Returns the result of `fork_ns_per_mebibyte` as a sentence.
fn fork_time_sentence(ns: f64) -> String {
    format!(
        "a fork takes {} for each MiB in 4 KiB pages, because it copies their page tables",
        units::time(Nanos(ns as u64))
    )
}

/// One thing that the doctor inspects.
#[derive(Debug)]
pub struct Check {
    /// The name that selects it on the command line.
    pub id: &'static str,
    /// What the check examines, in a few words.
    pub examines: &'static str,
    pub(super) run: Run,
}

/// The function of a check.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// The check only reads files and measurements.
    Reading(fn(&Examination<'_>, &mut Findings)),
    /// The check starts programs of the user.
    StartingPrograms(fn(&Examination<'_>, &Programs, &mut Findings)),
}

/// All checks, in the order in which they run.
pub const ALL: [&Check; 23] = [
    &launch_cost::CHECK,
    &scanners::CHECK,
    &audit::CHECK,
    &seccomp::CHECK,
    &security_modules::CHECK,
    &cpuid::CHECK,
    &environment::CHECK,
    &loader_cache::CHECK,
    &loader_environment::CHECK,
    &search_path::CHECK,
    &file_systems::CHECK,
    &open_files::CHECK,
    &large_parents::CHECK,
    &overcommit::CHECK,
    &process_limits::CHECK,
    &cgroups::CHECK,
    &c_library::CHECK,
    &binfmt::CHECK,
    &governor::CHECK,
    &git::CHECK,
    &interpreters::CHECK,
    &shims::CHECK,
    // The last check may use all the time that the others have left, and start-up files may take longest.
    &shell_start::CHECK,
];

/// Returns the check with this id.
#[must_use]
pub fn named(id: &str) -> Option<&'static Check> {
    ALL.into_iter().find(|check| check.id == id)
}
