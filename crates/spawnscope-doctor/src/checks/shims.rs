//! Shims of version managers in PATH: each launch of an interpreter or compiler first starts a
//! shell or a selector program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{baseline, report_failure};
use crate::programs::{Capture, Programs, RunError};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

struct Manager {
    name: &'static str,
    /// The usual name of the manager's directory, possibly with a leading dot.
    directory: &'static str,
    /// The directory in it that contains the shims.
    shims: &'static str,
    /// The variable that names the manager's directory if it is elsewhere.
    variable: &'static str,
}

impl Manager {
    const fn new(name: &'static str, directory: &'static str, shims: &'static str, variable: &'static str) -> Manager {
        Manager { name, directory, shims, variable }
    }

    fn has_shims_in(&self, machine: &Machine, directory: &Path) -> bool {
        let parent = directory.parent().and_then(Path::file_name).map(OsStr::to_string_lossy);
        let is_usual = parent.is_some_and(|parent| parent.trim_start_matches('.') == self.directory);
        let configured = machine.variable(self.variable).map(Path::new);
        directory.ends_with(self.shims) && (is_usual || configured == directory.parent())
    }
}

const MANAGERS: [Manager; 9] = [
    Manager::new("pyenv", "pyenv", "shims", "PYENV_ROOT"),
    Manager::new("rbenv", "rbenv", "shims", "RBENV_ROOT"),
    Manager::new("nodenv", "nodenv", "shims", "NODENV_ROOT"),
    Manager::new("goenv", "goenv", "shims", "GOENV_ROOT"),
    Manager::new("jenv", "jenv", "shims", "JENV_ROOT"),
    Manager::new("asdf", "asdf", "shims", "ASDF_DATA_DIR"),
    Manager::new("mise", "mise", "shims", "MISE_DATA_DIR"),
    Manager::new("rustup", "cargo", "bin", "CARGO_HOME"),
    Manager::new("volta", "volta", "bin", "VOLTA_HOME"),
];
/// This manager installs a missing version even if only the path of a program is queried, and no
/// option prevents that.
const INSTALLING_MANAGER: &str = "volta";
/// Variables that keep the other managers from installing missing versions, since the doctor must
/// not change anything. rustup before 1.28 does not know RUSTUP_AUTO_INSTALL, so it gets an
/// unusable download server. Go downloads another Go if a module requires one. asdf, pyenv, rbenv
/// and similar managers never install anything unasked.
const INSTALL_NOTHING: [(&str, &str); 6] = [
    ("RUSTUP_AUTO_INSTALL", "0"),
    ("RUSTUP_DIST_SERVER", "file:///nonexistent"),
    ("MISE_AUTO_INSTALL", "0"),
    ("MISE_NOT_FOUND_AUTO_INSTALL", "0"),
    ("MISE_EXEC_AUTO_INSTALL", "0"),
    ("GOTOOLCHAIN", "local"),
];
/// Programs that may have a shim, in the order in which they are tried.
const PROGRAMS: [&str; 8] = ["python3", "python", "ruby", "node", "java", "cargo", "rustc", "go"];
/// How many times a shim and its target are timed.
const RUNS: usize = 3;
/// A shim that adds this much is a problem: most launches take less.
const MIN_PROBLEM: Nanos = Nanos(10_000_000);

pub(super) fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    let mut seen: Vec<PathBuf> = Vec::new();
    for directory in machine.search_path() {
        let known = MANAGERS.iter().find(|manager| manager.has_shims_in(machine, &directory));
        let Some(manager) = known.filter(|_| !seen.contains(&directory)) else { continue };
        seen.push(directory.clone());
        if manager.name == INSTALLING_MANAGER {
            findings.add_not_examined(format!(
                "shims of {INSTALLING_MANAGER} in {}: none was started, since it may install a missing version",
                directory.display()
            ));
            continue;
        }
        match Shim::find(machine, programs, &directory, manager.name) {
            Ok(Some(shim)) => shim.measure(machine, programs, findings),
            Ok(None) => {}
            Err(FailedQuery { line, why }) => report_failure(findings, manager.name, &line, why),
        }
    }
}

fn manager_program(machine: &Machine, directory: &Path, manager: &str) -> Option<PathBuf> {
    let parent = directory.parent()?;
    let candidates = [parent.join("bin").join(manager), parent.join("libexec").join(manager), directory.join(manager)];
    machine.program(manager).or_else(|| candidates.into_iter().find(|file| machine.is_executable(file)))
}

/// Returns a command that runs a manager or a shim, but lets it install nothing.
fn command(machine: &Machine, program: &Path, arguments: &[&str]) -> Command {
    let mut command = machine.command_with(program, arguments);
    command.envs(INSTALL_NOTHING);
    command
}

/// A failed query of a manager for a program's path: the command line, and why there was no answer.
struct FailedQuery {
    line: String,
    why: RunError,
}

struct Shim {
    manager: &'static str,
    program: &'static str,
    file: PathBuf,
    /// The file that the shim finally executes.
    real: PathBuf,
}

impl Shim {
    /// Returns the first shim in a directory whose target is another file.
    ///
    /// # Errors
    /// If the manager cannot be run, or if it fails for every shim that was tried.
    fn find(
        machine: &Machine,
        programs: &Programs,
        directory: &Path,
        manager: &'static str,
    ) -> Result<Option<Shim>, FailedQuery> {
        let Some(manager_program) = manager_program(machine, directory, manager) else { return Ok(None) };
        let mut failed = None;
        for program in PROGRAMS {
            // If an earlier directory of PATH has the program, the shim is never launched.
            let first = machine.program(program);
            let Some(file) = first.filter(|file| file.parent() == Some(directory)) else { continue };
            let which = command(machine, &manager_program, &["which", program]);
            let line = format!("{manager} which {program}");
            let answer = match programs.run(which, Capture::Stdout) {
                Ok(answer) => answer,
                Err(why) => return Err(FailedQuery { line, why }),
            };
            let real = PathBuf::from(answer.output.lines().last().unwrap_or_default().trim());
            if !answer.succeeded {
                // The version that is selected here may not be installed.
                failed = failed.or(Some(line));
            } else if machine.is_executable(&real) && real != file {
                return Ok(Some(Shim { manager, program, file, real }));
            }
        }
        failed.map_or(Ok(None), |line| {
            let why = RunError::Failed;
            Err(FailedQuery { line, why })
        })
    }

    fn measure(&self, machine: &Machine, programs: &Programs, findings: &mut Findings) {
        // go has no `--version` option.
        let version = if self.program == "go" { "version" } else { "--version" };
        let (program, manager) = (self.program, self.manager);
        // The shim may hang and use up the time, so it comes last.
        let real = programs.shortest(RUNS, || command(machine, &self.real, &[version]));
        let line = format!("{} {version}", self.real.display());
        let Some(real) = baseline(findings, program, &line, real) else { return };
        let shim = match programs.shortest(RUNS, || command(machine, &self.file, &[version])) {
            Ok(shim) => shim,
            Err(why) => return findings.add_not_examined(format!("`{} {version}` {why}", self.file.display())),
        };
        let more = shim.beyond_noise(real);
        let title = match more {
            Some(more) => format!("{program} is a shim of {manager}: each start takes {more} longer"),
            None => format!("{program} is a shim of {manager}"),
        };
        let directory = self.real.parent().unwrap_or(&self.real).display();
        findings.add(
            Finding::problem_if(more.is_some_and(|more| more.time >= MIN_PROBLEM), title)
                .evidence(format!(
                    "`{program} {version}` takes {shim} with {}, and {} with {}",
                    self.file.display(),
                    units::time(real),
                    self.real.display()
                ))
                .effect(more.map(|more| more.effect("each launch through the shim")))
                .fix("for a build or a script that launches it often, put the real directory first in PATH:")
                .fix(format!("  PATH={directory}:$PATH ./build"))
                .fix_cost("the version is then fixed, and files that select a version per directory are ignored"),
        );
    }
}
