//! Shims of version managers in front of PATH: each launch of a language then starts a shell, or a chooser, first.

use std::path::{Path, PathBuf};

use super::Check;
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "shims",
    looks_at: "shims of version managers in PATH, against what they start, timed",
    run,
};

/// How the directory ends, and the manager whose `which` tells what a shim starts.
const MANAGERS: [(&str, &str); 8] = [
    (".pyenv/shims", "pyenv"),
    (".rbenv/shims", "rbenv"),
    (".nodenv/shims", "nodenv"),
    (".jenv/shims", "jenv"),
    (".asdf/shims", "asdf"),
    ("mise/shims", "mise"),
    (".cargo/bin", "rustup"),
    (".volta/bin", "volta"),
];
/// Programs to try, the first that is there.
const PROGRAMS: [&str; 8] = ["python3", "python", "ruby", "node", "java", "cargo", "rustc", "go"];
const RUNS: usize = 3;
/// From here on, a shim costs more than most launches do.
const MATTERS: Nanos = Nanos(10_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let mut seen: Vec<PathBuf> = Vec::new();
    for directory in machine.search_path() {
        let known = MANAGERS.iter().find(|(end, _)| directory.ends_with(end));
        let Some((_, manager)) = known.filter(|_| !seen.contains(&directory)) else {
            continue;
        };
        seen.push(directory.clone());
        if let Some(shim) = Shim::find(examination, &directory, manager) {
            shim.measure(examination, findings);
        }
    }
}

struct Shim {
    manager: &'static str,
    program: &'static str,
    /// The file in PATH, and the one it comes to in the end.
    file: PathBuf,
    real: PathBuf,
}

impl Shim {
    fn find(examination: &Examination<'_>, directory: &Path, manager: &'static str) -> Option<Shim> {
        let machine = examination.machine;
        let above = directory.parent()?;
        let places = [
            above.join("bin").join(manager),
            above.join("libexec").join(manager),
            directory.join(manager),
        ];
        let chooser = machine
            .program(manager)
            .or_else(|| places.into_iter().find(|file| machine.is_executable(file)))?;
        PROGRAMS.into_iter().find_map(|program| {
            // What stands before it in PATH is what is launched.
            let file = machine
                .program(program)
                .filter(|file| file.parent() == Some(directory))?;
            let told = examination
                .programs
                .run(machine.command(&chooser).args(["which", program]))?;
            let real = PathBuf::from(told.output.lines().last()?.trim());
            let is_other = told.succeeded && machine.is_executable(&real) && real != file;
            is_other.then_some(Shim {
                manager,
                program,
                file,
                real,
            })
        })
    }

    fn measure(&self, examination: &Examination<'_>, findings: &mut Findings) {
        let (machine, programs) = (examination.machine, &examination.programs);
        let version = |file: &Path| {
            let mut command = machine.command(file);
            command.arg("--version");
            command
        };
        let shim = programs.shortest(RUNS, || version(&self.file));
        let real = programs.shortest(RUNS, || version(&self.real));
        let (Some(shim), Some(real)) = (shim, real) else {
            findings.unseen(format!("{} could not be timed, or took too long", self.file.display()));
            return;
        };
        let more = shim.since(real);
        let (program, manager) = (self.program, self.manager);
        let folder = self.real.parent().unwrap_or(&self.real).display();
        findings.add(
            Finding::problem_if(
                more >= MATTERS,
                format!(
                    "{program} is a shim of {manager}: {} more at each start",
                    units::time(more)
                ),
            )
            .evidence(format!(
                "`{program} --version` takes {} by {}",
                units::time(shim),
                self.file.display()
            ))
            .evidence(format!("and {} by {}", units::time(real), self.real.display()))
            .effect(Effect::measured(more, "each launch through the shim"))
            .fix("for a build or a script that launches it often, put the real directory in front:")
            .fix(format!("  PATH={folder}:$PATH ./build"))
            .fix_cost("the version is fixed then, and files that choose one for a directory are not asked"),
        );
    }
}
