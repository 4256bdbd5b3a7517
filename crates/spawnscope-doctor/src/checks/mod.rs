//! The checks: the table of all, and one file for each. A finding has a title, evidence, the cost
//! on this machine, and what the user can do about it. What a user cannot change, or what costs
//! nothing that can be measured or calculated, is not a check.

mod file_systems;
mod git;
mod interpreters;
mod large_parents;
mod loader;
mod open_files;
mod scanners;
mod search_path;
mod shims;

use crate::programs::{Programs, RunError, RunTime};
use crate::{Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

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
        check("loader-cache", "/etc/ld.so.cache: present, readable, valid", Reading(loader::run_cache)),
        check(
            "loader-environment",
            "LD_ variables and /etc/ld.so.preload, and the time that they cost",
            Reading(loader::run_environment),
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

/// If a time limit is shorter than this, even a healthy program may not finish in time.
const MIN_TIME_LIMIT: Nanos = Nanos(250_000_000);

/// Returns the time of a program that has almost nothing to do, or reports why there is none.
fn baseline(
    findings: &mut Findings,
    program: &str,
    command_line: &str,
    timed: Result<RunTime, RunError>,
) -> Option<Nanos> {
    timed.and_then(RunTime::complete).map_err(|why| report_failure(findings, program, command_line, why)).ok()
}

/// Reports why `program` could not be timed; it was started by `command_line`. A program that did
/// not end is a problem if it had enough time.
fn report_failure(findings: &mut Findings, program: &str, command_line: &str, why: RunError) {
    match why {
        RunError::DidNotEnd(after) if after >= MIN_TIME_LIMIT => {
            findings.add(hanging_finding(program, command_line, after));
        }
        why => findings.add_not_examined(format!("`{command_line}` {why}")),
    }
}

fn hanging_finding(program: &str, command_line: &str, after: Nanos) -> Finding {
    let took = RunTime { time: after, is_lower_bound: true };
    let after = units::time(after);
    Finding::problem(format!("{program} does not finish within {after}"))
        .evidence(format!("`{command_line}` was killed after {after}, although it has almost nothing to do"))
        .effect(took.effect("each launch of it"))
        .fix(format!(
            "see what it launches and waits for: `spawnscope record -- {command_line}`, `strace -f {command_line}`"
        ))
        .fix_cost("nothing: both only observe; if the machine was busy, repeat the check when it is not")
}

const MASK: &str = "***";

/// Returns the value of an environment variable for display. It may contain secrets, so only the
/// part that matters for a finding is shown: a list of paths, in which assigned values (`name=...`)
/// and everything after the scheme of a URL are masked.
fn without_secrets(value: &str) -> String {
    value.split(' ').map(mask_word).collect::<Vec<_>>().join(" ")
}

fn mask_word(word: &str) -> String {
    match word.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{MASK}"),
        None => word.split(':').map(mask_assignment).collect::<Vec<_>>().join(":"),
    }
}

fn mask_assignment(text: &str) -> String {
    match text.split_once('=') {
        Some((name, _)) => format!("{name}={MASK}"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shown_without_assigned_values_and_url_contents() {
        assert_eq!(without_secrets("/opt/a:/opt/b /c"), "/opt/a:/opt/b /c");
        assert_eq!(without_secrets("/a.so:password=hunter2:/b"), "/a.so:password=***:/b");
        assert_eq!(without_secrets("https://me:hunter2@host/"), "https://***");
    }
}
