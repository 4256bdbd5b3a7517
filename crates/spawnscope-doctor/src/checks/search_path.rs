//! PATH: directories that are missing, repeated, slow, or relative to the working directory.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Check, Run};
use crate::measure::DIRECTORY_TIMEOUT;
use crate::mounts::{self, Mount};
use crate::programs::RunTime;
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "search-path",
    examines: "PATH: dead, repeated, slow and relative directories; time of look-ups",
    run: Run::Reading(run),
};

/// A look-up is slow if it takes as long as this many system calls that do nothing,
const CALLS_OF_A_SLOW_LOOKUP: u64 = 20;
/// and this long. In a local directory, it takes 1 us.
const SLOW: Nanos = Nanos(50_000);
/// This many useless directories are a problem.
const MIN_USELESS: usize = 8;
/// How many directories of one kind are named; the others are counted.
const MAX_NAMED: usize = 3;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let path = machine.search_path();
    if path.is_empty() {
        findings.not_examined("PATH is not set: shells, git and other programs were not found");
        return;
    }
    if !path.iter().any(|directory| directory.is_absolute()) {
        findings.not_examined("PATH has no absolute directory: shells, git and other programs were not found");
    }
    slow(examination, findings);
    unasked(examination, &path, findings);
    useless(examination, &path, findings);
    let relative: Vec<&PathBuf> = path.iter().filter(|directory| !directory.is_absolute()).collect();
    if !relative.is_empty() {
        findings.add(
            Finding::problem("PATH depends on the working directory")
                .evidence(format!("relative or empty directories: {}", names(&relative)))
                .evidence("programs in the working directory are executed, and its file system is searched, even if it is slow")
                .fix("use absolute directories")
                .fix_cost("programs in the working directory then need `./`"),
        );
    }
}

/// Reports directories that were not tried: a few by name, many by number.
fn unasked(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
    let unasked: Vec<&PathBuf> = path.iter().filter(|directory| untried.contains(directory)).collect();
    let directories = match unasked.len() {
        0 => return,
        few if few <= MAX_NAMED => names(&unasked),
        many => format!("{many} directories of PATH, the first of them {}", unasked[0].display()),
    };
    findings.not_examined(format!(
        "{directories}: not tried, for lack of time or of processes; left out of all checks"
    ));
}

fn useless(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let useless = Useless::of(examination, path);
    let count = useless.passed.iter().filter(|is_passed| **is_passed).count();
    if count == 0 {
        return;
    }
    let listed = |what: &str, directories: &[&PathBuf]| {
        (!directories.is_empty()).then(|| format!("{what}: {}", names(directories)))
    };
    let one = usual_lookup(examination);
    let each = one.map_or(String::new(), |time| {
        format!("; a look-up that finds nothing takes {}", units::time(time))
    });
    let before = useless.before_the_last_of_use();
    let lost = one.map(|one| Nanos(one.0 * before)).filter(|lost| lost.0 > 0);
    findings.add(
        Finding::problem_if(
            count >= MIN_USELESS,
            format!(
                "{} of {} in PATH {} useless",
                units::count(count as u64),
                units::counted(path.len() as u64, "directory", "directories"),
                if count == 1 { "is" } else { "are" }
            ),
        )
        .evidence_if(listed("missing", &useless.absent))
        .evidence_if(listed("not a directory", &useless.files))
        .evidence_if(listed("a symlink loop", &useless.circles))
        .evidence_if(listed("cannot be entered by this user", &useless.closed))
        .evidence_if(listed("repeated", &useless.repeated))
        .evidence_if(listed("a symlink to an earlier one", &useless.linked))
        .evidence(format!(
            "a search for a program in a later directory tries an exec in each of them{each}"
        ))
        .evidence_if(lost.map(|_| {
            format!("{before} of them precede the last useful directory: the effect is {before} look-ups, without the cost of the execs")
        }))
        .effect(lost.map(|lost| Effect::modelled(lost, "each search for a program in the last useful directory")))
        .fix("remove them where PATH is set: shell start-up files, /etc/environment, /etc/profile.d")
        .fix_cost("an edit; if several files extend PATH, make each check first whether the directory is already in it"),
    );
}

/// Useless directories by reason. Each is listed once; a directory can be useless for two reasons.
#[derive(Default)]
struct Useless<'p> {
    absent: Vec<&'p PathBuf>,
    files: Vec<&'p PathBuf>,
    circles: Vec<&'p PathBuf>,
    closed: Vec<&'p PathBuf>,
    repeated: Vec<&'p PathBuf>,
    linked: Vec<&'p PathBuf>,
    /// For each entry of PATH, whether a search there always fails.
    passed: Vec<bool>,
}

impl<'p> Useless<'p> {
    fn of(examination: &Examination<'_>, path: &'p [PathBuf]) -> Useless<'p> {
        let mut useless = Useless::default();
        let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
        // How often each directory was named, and its canonical path.
        let mut named: HashMap<&PathBuf, usize> = HashMap::new();
        let mut seen = HashSet::new();
        for directory in path {
            let times = named.entry(directory).or_default();
            *times += 1;
            let is_known = directory.is_absolute() && !untried.contains(directory);
            let is_passed = match *times {
                1 => is_known && useless.is_useless(examination, directory, &mut seen),
                times => {
                    useless.repeated.extend((times == 2).then_some(directory));
                    true
                }
            };
            useless.passed.push(is_passed);
        }
        useless
    }

    /// Whether a directory that is named for the first time is unusable, or the same as one named by another path.
    fn is_useless(
        &mut self,
        examination: &Examination<'_>,
        directory: &'p PathBuf,
        seen: &mut HashSet<PathBuf>,
    ) -> bool {
        let why = match examination.machine.check_directory(directory) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => &mut self.circles,
            Err(error) => match error.kind() {
                ErrorKind::NotFound => &mut self.absent,
                ErrorKind::NotADirectory => &mut self.files,
                ErrorKind::PermissionDenied => &mut self.closed,
                _ => return false,
            },
            Ok(()) => {
                let canonical = examination.machine.canonical(directory);
                if canonical.is_none_or(|canonical| seen.insert(canonical)) {
                    return false;
                }
                &mut self.linked
            }
        };
        why.push(directory);
        true
    }

    /// How many useless entries a search passes that finds its program in the last useful directory.
    fn before_the_last_of_use(&self) -> u64 {
        let last = self.passed.iter().rposition(|is_passed| !is_passed).unwrap_or_default();
        self.passed[..last].iter().filter(|is_passed| **is_passed).count() as u64
    }
}

/// On a machine with slow system calls, look-ups are slow in any directory.
fn slow_from(examination: &Examination<'_>) -> Nanos {
    let call = examination.measured.system_call.unwrap_or_default();
    SLOW.max(Nanos(call.0 * CALLS_OF_A_SLOW_LOOKUP))
}

/// The time of a look-up in the fastest directory that is not slow. A missing directory takes as long.
fn usual_lookup(examination: &Examination<'_>) -> Option<Nanos> {
    let lookups = &examination.measured.lookups;
    let times = lookups.iter().filter_map(|(_, time)| *time);
    times.filter(|time| *time < slow_from(examination)).min()
}

fn slow(examination: &Examination<'_>, findings: &mut Findings) {
    let passed = Passed::of(examination);
    if passed.evidence.is_empty() {
        return;
    }
    let count = units::counted(passed.evidence.len() as u64, "directory", "directories");
    let title = format!("PATH has {count} on slow file systems");
    let mut finding =
        Finding::problem_if(passed.are_slow, title).effect(passed.lost.effect("a search that passes them"));
    let more = passed.evidence.len().saturating_sub(MAX_NAMED);
    for line in passed.evidence.into_iter().take(MAX_NAMED) {
        finding = finding.evidence(line);
    }
    finding = finding.evidence_if((more > 0).then(|| format!("{more} more like these")));
    findings.add(
        finding
            .fix("put them at the end of PATH, after the directories of programs that are launched often, or launch by absolute path")
            .fix(match examination.environment.wsl {
                Some(_) => "in WSL, `appendWindowsPath=false` removes the Windows directories; in /etc/wsl.conf ([interop])",
                None => "copy or install programs that are launched often on a local disk",
            })
            .fix_cost("a program that is in two directories may then be found in the other one"),
    );
}

/// Directories that are slow, or on a file system that another machine or process serves.
struct Passed {
    evidence: Vec<String>,
    /// The time that a search spends in all of them.
    lost: RunTime,
    are_slow: bool,
}

impl Passed {
    fn of(examination: &Examination<'_>) -> Passed {
        let mounts = mounts::all(examination.machine);
        let waited = Nanos(DIRECTORY_TIMEOUT.as_nanos() as u64);
        let mut passed = Passed {
            evidence: Vec::new(),
            lost: RunTime {
                time: Nanos(0),
                is_lower_bound: false,
            },
            are_slow: false,
        };
        for (directory, time) in &examination.measured.lookups {
            let remote = mounts::mount_of(&mounts, directory).and_then(Mount::remote);
            let is_slow = time.is_none_or(|time| time >= slow_from(examination));
            if !is_slow && remote.is_none() {
                continue;
            }
            passed.are_slow |= is_slow;
            passed.lost = RunTime {
                time: Nanos(passed.lost.time.0 + time.unwrap_or(waited).0),
                is_lower_bound: passed.lost.is_lower_bound || time.is_none(),
            };
            let time = time.map_or_else(|| format!("no answer within {}", units::time(waited)), units::time);
            let remote = remote.map_or(String::new(), |remote| format!(", {remote}"));
            passed
                .evidence
                .push(format!("{}: {time} for a missing name{remote}", directory.display()));
        }
        passed
    }
}

/// Lists a few directories by name, the others by number.
fn names(directories: &[&PathBuf]) -> String {
    let name = |directory: &&PathBuf| match directory.as_path() {
        empty if empty == Path::new("") => "''".to_owned(),
        directory => directory.display().to_string(),
    };
    let more = directories.len().saturating_sub(MAX_NAMED);
    let named: Vec<String> = directories.iter().take(MAX_NAMED).map(name).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {} more", named.join(", "), units::count(more as u64)),
    }
}
