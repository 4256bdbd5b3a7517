//! What git launches for itself in the repository that one stands in: hooks, a file-system monitor that is a program, filters that
//! are started once a file.

use std::path::{Path, PathBuf};

use super::{Check, Run};
use crate::doctor::programs::{Programs, Reads, Took};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "git",
    looks_at: "git's hooks, core.fsmonitor and filters, in the working directory",
    run: Run::Starting(run),
};

/// Hooks that run where nobody expects a program: at each change of the index, or of a reference.
const FREQUENT: [&str; 2] = ["post-index-change", "reference-transaction"];
/// The others that git runs in a working tree (githooks(5)).
const OTHERS: [&str; 16] = [
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
];
const RUNS: usize = 2;
const SLOW: Nanos = Nanos(10_000_000);

fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let Some(git) = examination.machine.program("git") else {
        return;
    };
    let repository = Repository {
        machine: examination.machine,
        programs,
        git,
    };
    let Some(hooks) = repository.ask(&["rev-parse", "--git-path", "hooks"]) else {
        return;
    };
    let launch = examination.measured.launch.exec_dynamic;
    repository.hooks(&examination.machine.directory().join(hooks), launch, findings);
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
        let mut git = self.machine.command(&self.git);
        git.args(arguments);
        let ran = self.programs.run(git, Reads::Output).ok()?;
        let answer = ran.output.trim();
        (ran.succeeded && !answer.is_empty()).then(|| answer.to_owned())
    }

    fn hooks(&self, folder: &Path, launch: Option<Nanos>, findings: &mut Findings) {
        let is_active = |name: &&str| self.machine.is_executable(folder.join(name));
        let active: Vec<&str> = FREQUENT.into_iter().chain(OTHERS).filter(is_active).collect();
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
                .effect(launch.map(|launch| Effect::modelled(launch, "each run of a hook, at least")))
                .fix("see what they launch: `spawnscope record -- git status`, `git commit`; hooks that need nothing should leave at once")
                .fix("a tool that only reads can leave them out: `git -c core.hooksPath=/dev/null ...`")
                .fix_cost("what the hook checks is not checked then"),
        );
    }

    fn monitor(&self, findings: &mut Findings) {
        let Some(program) = self.ask(&["config", "--get", "core.fsmonitor"]) else {
            return;
        };
        // What is true or false is git's own monitor, or none.
        if self
            .ask(&["config", "--type=bool", "--get", "core.fsmonitor"])
            .is_some()
        {
            return;
        }
        let build = self.ask(&["version", "--build-options"]).unwrap_or_default();
        let has_own = build.contains("feature: fsmonitor--daemon");
        let status = |options: &[&str]| {
            let mut command = self.machine.command(&self.git);
            command
                .env("GIT_OPTIONAL_LOCKS", "0")
                .args(options)
                .args(["status", "--porcelain"]);
            command
        };
        let without = self.programs.shortest(RUNS, || status(&["-c", "core.fsmonitor=false"]));
        let with = self.programs.shortest(RUNS, || status(&[]));
        let times = with.ok().zip(without.and_then(Took::whole).ok());
        let more = times.map(|(with, without)| with.since(without));
        findings.add(
            Finding::problem_if(
                more.is_some_and(|more| more.time >= SLOW),
                "git launches a file-system monitor at each status",
            )
            .evidence(format!("core.fsmonitor={program}"))
            .evidence_if(
                times.map(|(with, without)| {
                    format!("`git status` takes {with} with it, {} without", units::time(without))
                }),
            )
            .effect(more.map(|more| more.effect("each git status, diff, add, commit")))
            .fix(if has_own {
                "git's own monitor launches nothing: `git config core.fsmonitor true`; small repositories need none"
            } else {
                "small repositories need none: `git config --unset core.fsmonitor`; this git has no monitor of its own"
            })
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
        single.sort_unstable();
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
