//! PATH: directories that are missing, repeated, slow, or relative to the working directory.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::machine::{Mount, containing_mount};
use crate::measure::DIRECTORY_TIMEOUT;
use crate::programs::RunTime;
use crate::{Effect, Examination, Finding, Findings};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A look-up is slow if it takes at least as long as this many system calls that do nothing, and at
/// least `MIN_SLOW_LOOKUP`.
const SLOW_LOOKUP_CALLS: u64 = 20;
/// See `SLOW_LOOKUP_CALLS`. In a local directory, a look-up takes 1 us.
const MIN_SLOW_LOOKUP: Nanos = Nanos(50_000);
/// At least this many useless directories are a problem.
const MIN_USELESS: usize = 8;
/// How many directories of one kind are named. Further ones are only counted.
const MAX_NAMED: usize = 3;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let path = machine.search_path();
    if machine.is_under_sudo() {
        findings.add_not_examined(
            "your own PATH, LD_ and other variables: sudo replaced them; run the doctor without sudo as well",
        );
    }
    if path.is_empty() {
        findings.add_not_examined("PATH is not set: shells, git and other programs were not found");
        return;
    }
    if !path.iter().any(|directory| directory.is_absolute()) {
        findings.add_not_examined("PATH has no absolute directory: shells, git and other programs were not found");
    }
    report_slow(examination, findings);
    report_untried(examination, &path, findings);
    report_useless(examination, &path, findings);
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

fn report_untried(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
    let untried: Vec<&PathBuf> = path.iter().filter(|directory| untried.contains(directory)).collect();
    if !untried.is_empty() {
        let directories = names(&untried);
        findings.add_not_examined(format!(
            "{directories}: not tried, for lack of time or of processes; left out of all checks"
        ));
    }
}

fn report_useless(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let useless = UselessDirectories::find(examination, path);
    let count = useless.is_useless.iter().filter(|is_useless| **is_useless).count();
    if count == 0 {
        return;
    }
    let title = format!(
        "{} of {} in PATH {} useless",
        units::count(count as u64),
        units::counted(path.len() as u64, "directory", "directories"),
        if count == 1 { "is" } else { "are" }
    );
    let finding = Finding::problem_if(count >= MIN_USELESS, title);
    let one = usual_lookup(examination);
    let each = one.map_or(String::new(), |time| format!("; a look-up that finds nothing takes {}", units::time(time)));
    let before = useless.count_before_last_useful();
    let lost = one.map(|one| Nanos(one.0 * before)).filter(|lost| lost.0 > 0);
    findings.add(
        useless
            .evidence()
            .fold(finding, Finding::evidence)
            .evidence(format!("a search for a program in a later directory tries each of them{each}"))
            .evidence_if(lost.map(|_| {
                format!(
                    "{} the last useful directory: the effect is {}; failed execs cost more",
                    units::counted(before, "of them precedes", "of them precede"),
                    units::counted(before, "look-up", "look-ups")
                )
            }))
            .effect(lost.map(|lost| Effect::modelled(lost, "a search that reaches the last useful directory")))
            .fix("remove them where PATH is set: shell start-up files, /etc/environment, /etc/profile.d")
            .fix_cost(
                "an edit; if several files extend PATH, each must first check that the directory is not yet in it",
            ),
    );
}

/// Why a directory is useless, in the order of the output.
const REASONS: [&str; 6] = [
    "missing",
    "not a directory",
    "a symlink loop",
    "cannot be entered by this user",
    REPEATED,
    "a symlink to an earlier one",
];
const REPEATED: &str = "repeated";

#[derive(Default)]
struct UselessDirectories<'p> {
    /// Each directory and a reason, once. A directory that is useless for two reasons is listed
    /// under both.
    reasons: Vec<(&'static str, &'p PathBuf)>,
    /// For each entry of PATH, whether it is useless.
    is_useless: Vec<bool>,
}

impl<'p> UselessDirectories<'p> {
    fn find(examination: &Examination<'_>, path: &'p [PathBuf]) -> UselessDirectories<'p> {
        let mut useless = UselessDirectories::default();
        let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
        // How many times each directory was named.
        let mut named: HashMap<&PathBuf, usize> = HashMap::new();
        // The canonical paths of the useful directories.
        let mut seen = HashSet::new();
        for directory in path {
            let times = named.entry(directory).or_default();
            *times += 1;
            let is_known = directory.is_absolute() && !untried.contains(directory);
            let reason = match *times {
                1 if is_known => why_useless(examination, directory, &mut seen),
                1 => None,
                _ => Some(REPEATED),
            };
            useless.is_useless.push(reason.is_some());
            useless.reasons.extend(reason.filter(|_| *times <= 2).map(|reason| (reason, directory)));
        }
        useless
    }

    /// Returns a line for each reason, with its directories.
    fn evidence(&self) -> impl Iterator<Item = String> {
        let lines = REASONS.iter().map(|reason| {
            let directories = self.reasons.iter().filter(|(why, _)| why == reason);
            (reason, directories.map(|(_, directory)| *directory).collect::<Vec<_>>())
        });
        let found = lines.filter(|(_, directories)| !directories.is_empty());
        found.map(|(reason, directories)| format!("{reason}: {}", names(&directories)))
    }

    /// Returns how many useless entries precede the last useful directory.
    fn count_before_last_useful(&self) -> u64 {
        let last = self.is_useless.iter().rposition(|is_useless| !is_useless).unwrap_or_default();
        self.is_useless[..last].iter().filter(|is_useless| **is_useless).count() as u64
    }
}

/// Returns why a directory that is named for the first time is unusable, or that it is another path
/// of an earlier one.
fn why_useless(examination: &Examination<'_>, directory: &Path, seen: &mut HashSet<PathBuf>) -> Option<&'static str> {
    let [missing, file, symlink_loop, forbidden, _, linked] = REASONS;
    match examination.machine.check_directory(directory) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => Some(symlink_loop),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Some(missing),
            ErrorKind::NotADirectory => Some(file),
            ErrorKind::PermissionDenied => Some(forbidden),
            _ => None,
        },
        Ok(()) => {
            let canonical = examination.machine.canonical(directory)?;
            (!seen.insert(canonical)).then_some(linked)
        }
    }
}

/// Returns the minimum time of a slow look-up. It depends on the system calls, because look-ups are
/// slow in any directory if these are slow.
fn min_slow_lookup(examination: &Examination<'_>) -> Nanos {
    let call = examination.measured.system_call.unwrap_or_default();
    MIN_SLOW_LOOKUP.max(Nanos(call.0 * SLOW_LOOKUP_CALLS))
}

/// Returns the time of a look-up in the fastest directory, unless that is slow, too. A look-up in a
/// missing directory takes as long.
fn usual_lookup(examination: &Examination<'_>) -> Option<Nanos> {
    let lookups = &examination.measured.lookups;
    let times = lookups.iter().filter_map(|(_, time)| *time);
    times.filter(|time| *time < min_slow_lookup(examination)).min()
}

fn report_slow(examination: &Examination<'_>, findings: &mut Findings) {
    let slow = SlowDirectories::find(examination);
    if slow.evidence.is_empty() {
        return;
    }
    let count = units::counted(
        slow.evidence.len() as u64,
        "directory on a slow file system",
        "directories on slow file systems",
    );
    let title = format!("PATH has {count}");
    let mut finding = Finding::problem_if(slow.are_slow, title).effect(slow.lost.effect("a search that passes them"));
    let more = slow.evidence.len().saturating_sub(MAX_NAMED);
    for line in slow.evidence.into_iter().take(MAX_NAMED) {
        finding = finding.evidence(line);
    }
    finding = finding.evidence_if((more > 0).then(|| format!("{more} more like these")));
    findings.add(
        finding
            .fix("put them at the end of PATH, after the directories of programs that are launched often, or launch by absolute path")
            .fix(match examination.environment.wsl {
                Some(_) => "in WSL, `appendWindowsPath=false` in the section [interop] of /etc/wsl.conf removes the Windows directories",
                None => "copy or install programs that are launched often on a local disk",
            })
            .fix_cost("a program that is in two directories may then be found in the other one"),
    );
}

/// Directories of PATH that are slow, or on a file system that another machine or process serves.
struct SlowDirectories {
    /// A sentence for each directory.
    evidence: Vec<String>,
    /// The time that a search spends in all of them.
    lost: RunTime,
    /// Whether a look-up was slow in any of them.
    are_slow: bool,
}

impl SlowDirectories {
    fn find(examination: &Examination<'_>) -> SlowDirectories {
        let mounts = examination.machine.mounts();
        let waited = Nanos(DIRECTORY_TIMEOUT.as_nanos() as u64);
        let mut slow = SlowDirectories {
            evidence: Vec::new(),
            lost: RunTime { time: Nanos(0), is_lower_bound: false },
            are_slow: false,
        };
        for (directory, time) in &examination.measured.lookups {
            let remote = containing_mount(&mounts, directory).and_then(Mount::remote_description);
            let is_slow = time.is_none_or(|time| time >= min_slow_lookup(examination));
            if !is_slow && remote.is_none() {
                continue;
            }
            slow.are_slow |= is_slow;
            slow.lost = RunTime {
                time: Nanos(slow.lost.time.0 + time.unwrap_or(waited).0),
                is_lower_bound: slow.lost.is_lower_bound || time.is_none(),
            };
            let time = time.map_or_else(|| format!("no answer within {}", units::time(waited)), units::time);
            let remote = remote.map_or(String::new(), |remote| format!(", {remote}"));
            slow.evidence.push(format!("{}: {time} for a missing name{remote}", directory.display()));
        }
        slow
    }
}

/// Lists a few directories by name, and counts the others.
fn names(directories: &[&PathBuf]) -> String {
    let more = directories.len().saturating_sub(MAX_NAMED);
    let named: Vec<String> = directories.iter().take(MAX_NAMED).map(|directory| name(directory)).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {} more", named.join(", "), units::count(more as u64)),
    }
}

fn name(directory: &Path) -> String {
    if directory == Path::new("") { "''".to_owned() } else { directory.display().to_string() }
}
