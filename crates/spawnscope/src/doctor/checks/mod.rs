//! The checks, one a file: each says what it looked at, what it found, what shows it, what it costs here, and what can be done.

mod audit;
mod binfmt;
mod c_library;
mod cgroups;
mod cpuid;
mod file_systems;
mod git;
mod governor;
mod interpreters;
mod large_parents;
mod launch_cost;
mod loader_cache;
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
mod surroundings;

use super::{Examination, Findings};

/// System calls of a small dynamic program and of its parent, from fork to wait: what a cost of each call comes to.
const CALLS_OF_A_LAUNCH: u64 = 40;

/// A check.
#[derive(Debug)]
pub struct Check {
    /// The name by which it is asked for.
    pub id: &'static str,
    /// What it looks at, in a few words.
    pub looks_at: &'static str,
    /// Looks, and says what it found.
    pub run: fn(&Examination<'_>, &mut Findings),
}

/// All of them, in the order in which they are run.
pub const ALL: [&Check; 23] = [
    &launch_cost::CHECK,
    &scanners::CHECK,
    &audit::CHECK,
    &seccomp::CHECK,
    &security_modules::CHECK,
    &cpuid::CHECK,
    &surroundings::CHECK,
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
    &shell_start::CHECK,
    &interpreters::CHECK,
    &shims::CHECK,
];

/// The check of that name.
#[must_use]
pub fn named(id: &str) -> Option<&'static Check> {
    ALL.into_iter().find(|check| check.id == id)
}
