//! PATH: directories that are not there, that are named twice, that answer slowly, or that depend on where one stands.

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Check, Run};
use crate::doctor::measure::PATIENCE;
use crate::doctor::mounts::{self, Mount};
use crate::doctor::programs::Took;
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "search-path",
    looks_at: "PATH: dead, repeated, slow and relative directories, look-ups timed",
    run: Run::Looking(run),
};

/// A look-up is slow that takes as long as so many system calls that do nothing,
const CALLS_OF_A_SLOW_LOOKUP: u64 = 20;
/// and so long. In a local directory it takes 1 us.
const SLOW: Nanos = Nanos(50_000);
/// Directories that every search passes in vain, that are worth a problem.
const MANY: usize = 8;
/// Directories of one kind that are named; the others are counted.
const MOST_NAMED: usize = 3;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let path = machine.search_path();
    if path.is_empty() {
        findings.unseen("PATH is not set: shells, git and other programs that are looked for in it were not found");
        return;
    }
    if !path.iter().any(|directory| directory.is_absolute()) {
        findings.unseen("PATH names no directory from the root: programs that are looked for in it were not found");
    }
    slow(examination, findings);
    unasked(examination, &path, findings);
    useless(examination, &path, findings);
    let relative: Vec<&PathBuf> = path.iter().filter(|directory| !directory.is_absolute()).collect();
    if !relative.is_empty() {
        findings.add(
            Finding::problem("PATH depends on the working directory")
                .evidence(format!("of its directories, relative or empty: {}", names(&relative)))
                .evidence("whatever lies there is executed, and it is searched on whichever file system one stands")
                .fix("name directories from the root")
                .fix_cost("programs of the working directory need a `./`"),
        );
    }
}

/// A few by their names, many by their number.
fn unasked(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
    let unasked: Vec<&PathBuf> = path.iter().filter(|directory| untried.contains(directory)).collect();
    let directories = match unasked.len() {
        0 => return,
        few if few <= MOST_NAMED => names(&unasked),
        many => format!("{many} directories of PATH, the first of them {}", unasked[0].display()),
    };
    findings.unseen(format!(
        "{directories}: could not be asked in time, or by no process, and left out of all checks"
    ));
}

fn useless(examination: &Examination<'_>, path: &[PathBuf], findings: &mut Findings) {
    let useless = Useless::of(examination, path);
    let count = useless.passed.iter().filter(|is_passed| **is_passed).count();
    if count == 0 {
        return;
    }
    let directories = units::counted(count as u64, "directory", "directories");
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
            count >= MANY,
            format!(
                "PATH has {directories} of {} in which nothing is found",
                units::count(path.len() as u64)
            ),
        )
        .evidence_if(listed("not there", &useless.absent))
        .evidence_if(listed("no directory", &useless.files))
        .evidence_if(listed("a link in a circle", &useless.circles))
        .evidence_if(listed("cannot be entered by this user", &useless.closed))
        .evidence_if(listed("named before", &useless.repeated))
        .evidence_if(listed("by a link the same as one before", &useless.linked))
        .evidence(format!(
            "each is tried by an exec of its own, for programs that stand behind it{each}"
        ))
        .evidence_if(lost.map(|_| {
            format!("{before} of them are in front of the last one of use: the effect is as many look-ups, without what an exec adds to each")
        }))
        .effect(lost.map(|lost| Effect::modelled(lost, "each search for a program that stands behind all of them")))
        .fix("remove them where PATH is set: shell start-up files, /etc/environment, /etc/profile.d")
        .fix_cost("an edit; where several files add to PATH, let each first look whether it is there"),
    );
}

/// Directories that are of no use, by why. Each is named once; one can be of no use for two reasons.
#[derive(Default)]
struct Useless<'p> {
    absent: Vec<&'p PathBuf>,
    files: Vec<&'p PathBuf>,
    circles: Vec<&'p PathBuf>,
    closed: Vec<&'p PathBuf>,
    repeated: Vec<&'p PathBuf>,
    linked: Vec<&'p PathBuf>,
    /// Of each entry of PATH, whether a search passes it in vain.
    passed: Vec<bool>,
}

impl<'p> Useless<'p> {
    fn of(examination: &Examination<'_>, path: &'p [PathBuf]) -> Useless<'p> {
        let mut useless = Useless::default();
        let untried: HashSet<&PathBuf> = examination.measured.untried.iter().collect();
        // How often each was named, and which directories they are.
        let mut named: HashMap<&PathBuf, usize> = HashMap::new();
        let mut places = HashSet::new();
        for directory in path {
            let times = named.entry(directory).or_default();
            *times += 1;
            let is_known = directory.is_absolute() && !untried.contains(directory);
            let is_passed = match *times {
                1 => is_known && useless.is_vain(examination, directory, &mut places),
                times => {
                    useless.repeated.extend((times == 2).then_some(directory));
                    true
                }
            };
            useless.passed.push(is_passed);
        }
        useless
    }

    /// Whether a directory that is named for the first time is dead, or one that was named otherwise.
    fn is_vain(
        &mut self,
        examination: &Examination<'_>,
        directory: &'p PathBuf,
        places: &mut HashSet<PathBuf>,
    ) -> bool {
        let why = match examination.machine.enter(directory) {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => &mut self.circles,
            Err(error) => match error.kind() {
                ErrorKind::NotFound => &mut self.absent,
                ErrorKind::NotADirectory => &mut self.files,
                ErrorKind::PermissionDenied => &mut self.closed,
                _ => return false,
            },
            Ok(()) => {
                let place = examination.machine.canonical(directory);
                if place.is_none_or(|place| places.insert(place)) {
                    return false;
                }
                &mut self.linked
            }
        };
        why.push(directory);
        true
    }

    /// How many a search passes that finds its program in the last directory that is of use.
    fn before_the_last_of_use(&self) -> u64 {
        let last = self.passed.iter().rposition(|is_passed| !is_passed).unwrap_or_default();
        self.passed[..last].iter().filter(|is_passed| **is_passed).count() as u64
    }
}

/// Where each system call is dear, a look-up is that in any directory.
fn slow_from(examination: &Examination<'_>) -> Nanos {
    let call = examination.measured.system_call.unwrap_or_default();
    SLOW.max(Nanos(call.0 * CALLS_OF_A_SLOW_LOOKUP))
}

/// In the quickest directory that is not slow: a search ends no later where the directory itself is not there.
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
    let more = passed.evidence.len().saturating_sub(MOST_NAMED);
    for line in passed.evidence.into_iter().take(MOST_NAMED) {
        finding = finding.evidence(line);
    }
    finding = finding.evidence_if((more > 0).then(|| format!("{more} more are like these")));
    findings.add(
        finding
            .fix("put them at the end of PATH, behind what is launched often, or launch by absolute path")
            .fix(match examination.environment.wsl {
                Some(_) => "in WSL, Windows's directories are left out by `appendWindowsPath=false` in /etc/wsl.conf ([interop])",
                None => "programs that are launched often can be copied, or installed, on a local disk",
            })
            .fix_cost("programs found in two directories may come from another one then"),
    );
}

/// Directories that are slow, or that another machine or process keeps.
struct Passed {
    evidence: Vec<String>,
    /// What a search loses in all of them.
    lost: Took,
    are_slow: bool,
}

impl Passed {
    fn of(examination: &Examination<'_>) -> Passed {
        let mounts = mounts::all(examination.machine);
        let waited = Nanos(PATIENCE.as_nanos() as u64);
        let mut passed = Passed {
            evidence: Vec::new(),
            lost: Took {
                time: Nanos(0),
                is_cut: false,
            },
            are_slow: false,
        };
        for (directory, time) in &examination.measured.lookups {
            let remote = mounts::of(&mounts, directory).and_then(Mount::remote);
            let is_slow = time.is_none_or(|time| time >= slow_from(examination));
            if !is_slow && remote.is_none() {
                continue;
            }
            passed.are_slow |= is_slow;
            passed.lost = Took {
                time: Nanos(passed.lost.time.0 + time.unwrap_or(waited).0),
                is_cut: passed.lost.is_cut || time.is_none(),
            };
            let time = time.map_or_else(|| format!("no answer within {}", units::time(waited)), units::time);
            let remote = remote.map_or(String::new(), |remote| format!(", {remote}"));
            passed.evidence.push(format!(
                "{}: {time} for a name that is not there{remote}",
                directory.display()
            ));
        }
        passed
    }
}

/// A few by their names, the others by their number.
fn names(directories: &[&PathBuf]) -> String {
    let name = |directory: &&PathBuf| match directory.as_path() {
        empty if empty == Path::new("") => "''".to_owned(),
        directory => directory.display().to_string(),
    };
    let more = directories.len().saturating_sub(MOST_NAMED);
    let named: Vec<String> = directories.iter().take(MOST_NAMED).map(name).collect();
    match more {
        0 => named.join(", "),
        more => format!("{} and {} more", named.join(", "), units::count(more as u64)),
    }
}
