//! PATH: directories that are not there, that are named twice, that answer slowly, or that depend on where one stands.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::Check;
use crate::doctor::mounts::{self, Mount};
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "search-path",
    looks_at: "PATH: dead, repeated, slow and relative directories, look-ups timed",
    run,
};

/// A look-up in a local directory takes 1 us.
const SLOW: Nanos = Nanos(50_000);
/// Directories that every search passes in vain, that are worth a problem.
const MANY: usize = 8;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let path = machine.search_path();
    if path.is_empty() {
        return;
    }
    slow(examination, findings);
    let mut seen = HashSet::new();
    let repeated: Vec<&PathBuf> = path.iter().filter(|directory| !seen.insert(*directory)).collect();
    let is_dead = |directory: &&PathBuf| directory.is_absolute() && !machine.path(directory).is_dir();
    let dead: Vec<&PathBuf> = path.iter().filter(is_dead).collect();
    if !dead.is_empty() || !repeated.is_empty() {
        let useless = dead.len() + repeated.len();
        let count = units::counted(useless as u64, "directory", "directories");
        let listed = |what: &str, directories: &[&PathBuf]| {
            (!directories.is_empty()).then(|| format!("{what}: {}", names(directories)))
        };
        findings.add(
            Finding::problem_if(
                useless >= MANY,
                format!("PATH has {count} of {} in which nothing is found", path.len()),
            )
            .evidence_if(listed("not there", &dead))
            .evidence_if(listed("named before", &repeated))
            .evidence("each is tried by an exec of its own, about 1 us, for programs that stand behind it")
            .fix("remove them where PATH is set: shell start-up files, /etc/environment, /etc/profile.d")
            .fix_cost("an edit; where several files add to PATH, let each first look whether it is there"),
        );
    }
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

fn slow(examination: &Examination<'_>, findings: &mut Findings) {
    let mounts = mounts::all(examination.machine);
    let mut lost = Nanos(0);
    let mut evidence = Vec::new();
    let mut is_slow = false;
    for (directory, time) in &examination.measured.lookups {
        let remote = mounts::of(&mounts, directory).and_then(Mount::remote);
        let slow = time.is_none_or(|time| time >= SLOW);
        if !slow && remote.is_none() {
            continue;
        }
        is_slow |= slow;
        lost = Nanos(lost.0 + time.map_or(0, |time| time.0));
        let time = time.map_or("no answer within 0.3 s".to_owned(), units::time);
        let remote = remote.map_or(String::new(), |remote| format!(", {remote}"));
        evidence.push(format!(
            "{}: {time} for a name that is not there{remote}",
            directory.display()
        ));
    }
    if evidence.is_empty() {
        return;
    }
    let count = units::counted(evidence.len() as u64, "directory", "directories");
    let title = format!("PATH has {count} on slow file systems");
    let mut finding = Finding::problem_if(is_slow, title)
        .effect((lost > Nanos(0)).then(|| Effect::measured(lost, "a search that passes them")));
    for line in evidence {
        finding = finding.evidence(line);
    }
    findings.add(
        finding
            .fix("put them at the end of PATH, behind what is launched often, or launch by absolute path")
            .fix(match examination.surroundings.wsl {
                Some(_) => "in WSL, Windows's directories are left out by `appendWindowsPath=false` in /etc/wsl.conf ([interop])",
                None => "programs that are launched often can be copied, or installed, on a local disk",
            })
            .fix_cost("programs found in two directories may come from another one then"),
    );
}

fn names(directories: &[&PathBuf]) -> String {
    let name = |directory: &&PathBuf| match directory.as_path() {
        empty if empty == Path::new("") => "''".to_owned(),
        directory => directory.display().to_string(),
    };
    directories.iter().map(name).collect::<Vec<_>>().join(", ")
}
