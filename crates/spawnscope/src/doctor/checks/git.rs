//! What git launches for itself in the repository that one stands in: hooks, a file-system monitor that is a program, filters that
//! are started once a file.

use std::path::{Path, PathBuf};

use super::Check;
use crate::doctor::{Effect, Examination, Finding, Findings, Machine, Programs};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "git",
    looks_at: "git's hooks, core.fsmonitor and filters, in the working directory",
    run,
};

/// Hooks that run where nobody expects a program: at each change of the index, or of a reference.
const FREQUENT: [&str; 3] = ["post-index-change", "reference-transaction", "fsmonitor-watchman"];
const RUNS: usize = 2;
const SLOW: Nanos = Nanos(10_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(git) = examination.machine.program("git") else {
        return;
    };
    let repository = Repository {
        machine: examination.machine,
        programs: &examination.programs,
        git,
    };
    let Some(hooks) = repository.ask(&["rev-parse", "--git-path", "hooks"]) else {
        return;
    };
    repository.hooks(&examination.machine.directory().join(hooks), findings);
    repository.monitor(findings);
    repository.filters(findings);
}

struct Repository<'a> {
    machine: &'a Machine,
    programs: &'a Programs,
    git: PathBuf,
}

impl Repository<'_> {
    /// What git answers; `None` where it fails or has nothing to say.
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let ran = self.programs.run(self.machine.command(&self.git).args(arguments))?;
        let answer = ran.output.trim();
        (ran.succeeded && !answer.is_empty()).then(|| answer.to_owned())
    }

    fn hooks(&self, folder: &Path, findings: &mut Findings) {
        let names = self.machine.names(folder);
        let active = names
            .iter()
            .filter(|name| !name.ends_with(".sample") && !name.contains('.'));
        let active: Vec<&str> = active
            .filter(|name| self.machine.is_executable(folder.join(name.as_str())))
            .map(String::as_str)
            .collect();
        if active.is_empty() {
            return;
        }
        let frequent: Vec<&str> = active.iter().copied().filter(|name| FREQUENT.contains(name)).collect();
        let title = if frequent.is_empty() {
            format!("git runs hooks here: {}", active.join(", "))
        } else {
            format!("git runs a hook at nearly every command: {}", frequent.join(", "))
        };
        findings.add(
            Finding::problem_if(!frequent.is_empty(), title)
                .evidence(format!("executable files in {}: {}", folder.display(), active.join(", ")))
                .fix("see what they launch: `spawnscope record -- git status`, `git commit`; hooks that need nothing should leave at once")
                .fix("a tool that only reads can leave them out: `git -c core.hooksPath=/dev/null ...`")
                .fix_cost("what the hook checks is not checked then"),
        );
    }

    fn monitor(&self, findings: &mut Findings) {
        let Some(program) = self.ask(&["config", "--get", "core.fsmonitor"]) else {
            return;
        };
        if matches!(
            program.as_str(),
            "true" | "false" | "yes" | "no" | "on" | "off" | "0" | "1"
        ) {
            return;
        }
        let status = |options: &[&str]| {
            let mut command = self.machine.command(&self.git);
            command
                .env("GIT_OPTIONAL_LOCKS", "0")
                .args(options)
                .args(["status", "--porcelain"]);
            command
        };
        let with = self.programs.shortest(RUNS, || status(&[]));
        let without = self.programs.shortest(RUNS, || status(&["-c", "core.fsmonitor=false"]));
        let more = with.zip(without).map(|(with, without)| with.since(without));
        findings.add(
            Finding::problem_if(more.is_some_and(|more| more >= SLOW), "git launches a file-system monitor at each status")
                .evidence(format!("core.fsmonitor={program}"))
                .evidence(format!("`git status` takes {} with it, {} without", units::time(with), units::time(without)))
                .effect(more.map(|more| Effect::measured(more, "each git status, diff, add, commit")))
                .fix("git's own monitor launches nothing (git 2.37, not on all systems): `git config core.fsmonitor true`; small repositories need none")
                .fix_cost("in large repositories, a status without any monitor looks at each file"),
        );
    }

    fn filters(&self, findings: &mut Findings) {
        let Some(listed) = self.ask(&["config", "--get-regexp", r"^filter\..*\.(clean|smudge|process)$"]) else {
            return;
        };
        let keys: Vec<&str> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
        let name = |key: &str| {
            key.strip_prefix("filter.")
                .and_then(|key| key.rsplit_once('.'))
                .map(|(name, _)| name.to_owned())
        };
        let mut single: Vec<String> = keys
            .iter()
            .filter_map(|key| name(key))
            .filter(|name| !keys.contains(&format!("filter.{name}.process").as_str()))
            .collect();
        single.dedup();
        if single.is_empty() {
            return;
        }
        findings.add(
            Finding::note(format!(
                "git launches a program for each file of the filter {}",
                single.join(", ")
            ))
            .evidence("it has `clean` or `smudge`, and no `process`, which one program serves all files by")
            .fix("give the filter a `process` command (`git lfs install` does); `git help attributes` has the protocol")
            .fix_cost("the program must speak git's protocol"),
        );
    }
}
