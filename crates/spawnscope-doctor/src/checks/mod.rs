//! The checks: the table of all, and one file for each. A finding has a title, evidence, the cost
//! on this machine, and what the user can do about it. What a user cannot change, or what costs
//! nothing that can be measured or calculated, is not a check.

mod file_systems;
mod git;
mod hanging;
mod interpreter_options;
mod interpreters;
mod large_parents;
pub(super) mod loader_cache;
pub(super) mod loader_environment;
mod open_files;
mod scanners;
mod search_path;
mod shims;
mod values;

use super::programs::Programs;
use super::{Examination, Findings};

/// One thing that the doctor inspects.
#[derive(Debug)]
pub struct Check {
    /// The name that selects it on the command line.
    pub id: &'static str,
    /// What the check examines, in a few words.
    pub examines: &'static str,
    pub(super) run: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// The check only reads files and measurements.
    Reading(fn(&Examination<'_>, &mut Findings)),
    StartingPrograms(fn(&Examination<'_>, &Programs, &mut Findings)),
}

const fn check(id: &'static str, examines: &'static str, run: Run) -> Check {
    Check { id, examines, run }
}

/// All checks, in the order in which they run.
pub static ALL: [Check; 10] = {
    use Run::{Reading, StartingPrograms};
    [
        check(
            "scanners",
            "fanotify permission marks, known daemons, first launches of fresh files",
            Reading(scanners::run),
        ),
        check("loader-cache", "/etc/ld.so.cache: present, readable, valid", Reading(loader_cache::run)),
        check(
            "loader-environment",
            "LD_ variables and /etc/ld.so.preload, and the time that they cost",
            Reading(loader_environment::run),
        ),
        check(
            "search-path",
            "PATH: dead, repeated, slow and relative directories; time of look-ups",
            Reading(search_path::run),
        ),
        check(
            "file-systems",
            "file systems of the working directory and of TMPDIR: type, whether they answer, free space",
            Reading(file_systems::run),
        ),
        check("open-files", "RLIMIT_NOFILE, for programs that close all descriptors", Reading(open_files::run)),
        check("large-parents", "large shells, and the page tables that their forks copy", Reading(large_parents::run)),
        check("git", "git's hooks and core.fsmonitor, in the working directory", StartingPrograms(git::run)),
        check(
            "interpreters",
            "Python's start with and without site-packages; start-up options of other interpreters",
            StartingPrograms(interpreters::run),
        ),
        check("shims", "shims of version managers in PATH, timed against their targets", StartingPrograms(shims::run)),
    ]
};

pub fn named(id: &str) -> Option<&'static Check> {
    ALL.iter().find(|check| check.id == id)
}
