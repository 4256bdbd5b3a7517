//! Programs that git launches in the repository of the working directory: hooks that run in nearly
//! every command, and a file-system monitor.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{baseline, report_failure};
use crate::programs::{Capture, Programs, RunError, RunResult, RunTime};
use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Hooks that run at each change of the index or of a reference, when few users expect git to run a
/// program.
const FREQUENT_HOOKS: [&str; 2] = ["post-index-change", "reference-transaction"];
/// How many times `git status` is timed, with and without the monitor.
const RUNS: usize = 2;
/// A monitor that adds this much to `git status` is a problem.
const SLOW: Nanos = Nanos(10_000_000);

pub(super) fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let Some(git) = examination.machine.program("git") else { return };
    let repository = Repository { machine: examination.machine, programs, git };
    let hooks = match repository.hooks_directory() {
        Ok(Some(hooks)) => examination.machine.working_directory().join(hooks),
        Ok(None) => return,
        Err(Refusal::Message(why)) => return findings.add_not_examined(format!("git refuses this directory: {why}")),
        Err(Refusal::NotRun(why)) => return report_failure(findings, "git", "git rev-parse", why),
    };
    let launch = examination.measured.launch.exec_dynamic;
    repository.hooks(&hooks, launch, findings);
    if let Err(why) = repository.monitor(findings) {
        report_failure(findings, "git", "git config", why);
    }
}

/// Why git does not report its hooks directory.
enum Refusal {
    /// Git failed with this error message.
    Message(String),
    /// Git could not be run, or did not finish.
    NotRun(RunError),
}

impl From<RunError> for Refusal {
    fn from(why: RunError) -> Refusal {
        Refusal::NotRun(why)
    }
}

struct Repository<'a> {
    machine: &'a Machine,
    programs: &'a Programs,
    git: PathBuf,
}

impl Repository<'_> {
    fn run(&self, arguments: &[&str], capture: Capture) -> Result<RunResult, RunError> {
        let mut git = self.machine.command(&self.git);
        // `hooks_directory` recognizes an error message by its English text.
        git.env("LC_ALL", "C").args(arguments);
        self.programs.run(git, capture)
    }

    /// Returns git's answer; `None` if it failed or printed nothing.
    fn query(&self, arguments: &[&str]) -> Result<Option<String>, RunError> {
        let ran = self.run(arguments, Capture::Stdout)?;
        let answer = ran.output.trim();
        Ok((ran.succeeded && !answer.is_empty()).then(|| answer.to_owned()))
    }

    /// Returns the directory with hooks; `None` outside of a repository.
    fn hooks_directory(&self) -> Result<Option<String>, Refusal> {
        const HOOKS_QUERY: [&str; 3] = ["rev-parse", "--git-path", "hooks"];
        if let Some(directory) = self.query(&HOOKS_QUERY)? {
            return Ok(Some(directory));
        }
        let message = self.run(&HOOKS_QUERY, Capture::Stderr)?.output;
        let why = message.lines().find(|line| line.starts_with("fatal: ")).unwrap_or("it failed");
        let is_outside = why.to_lowercase().contains("not a git repository (or any");
        if is_outside { Ok(None) } else { Err(Refusal::Message(why.to_owned())) }
    }

    fn hooks(&self, directory: &Path, launch: Option<Nanos>, findings: &mut Findings) {
        let active: Vec<&str> =
            FREQUENT_HOOKS.into_iter().filter(|name| self.machine.is_executable(directory.join(name))).collect();
        if active.is_empty() {
            return;
        }
        let active = active.join(", ");
        findings.add(
            Finding::problem(format!("git runs a hook in nearly every command: {active}"))
                .evidence(format!("executable files in {}: {active}", directory.display()))
                .effect(launch.map(|launch| Effect::modelled(launch, "each run of a hook, at least")))
                .fix("see what they launch: `spawnscope record -- git status`, `git commit`; hooks with nothing to do should exit at once")
                .fix("a tool that only reads can disable them: `git -c core.hooksPath=/dev/null ...`")
                .fix_cost("the hook's checks are skipped"),
        );
    }

    fn monitor(&self, findings: &mut Findings) -> Result<(), RunError> {
        let Some(monitor) = self.query(&["config", "--get", "core.fsmonitor"])? else { return Ok(()) };
        // A boolean selects git's own monitor, or none.
        if self.query(&["config", "--type=bool", "--get", "core.fsmonitor"])?.is_some() {
            return Ok(());
        }
        let build = self.query(&["version", "--build-options"])?.unwrap_or_default();
        let has_builtin = build.contains("feature: fsmonitor--daemon");
        const WITHOUT_MONITOR: [&str; 2] = ["-c", "core.fsmonitor=false"];
        let without = self.programs.shortest(RUNS, || self.status(&WITHOUT_MONITOR));
        let line = "git -c core.fsmonitor=false status";
        let Some(without) = baseline(findings, "git status without its monitor", line, without) else {
            return Ok(());
        };
        match self.programs.shortest(RUNS, || self.status(&[])) {
            Ok(with) => findings.add(monitor_finding(&monitor, has_builtin, with, without)),
            Err(why) => findings.add_not_examined(format!("`git status` with its monitor {why}")),
        }
        Ok(())
    }

    fn status(&self, options: &[&str]) -> Command {
        let mut command = self.machine.command(&self.git);
        command.env("GIT_OPTIONAL_LOCKS", "0").args(options).args(["status", "--porcelain"]);
        command
    }
}

/// Returns the finding for a monitor that is a program; the times are those of `git status`.
fn monitor_finding(monitor: &str, has_builtin: bool, with: RunTime, without: Nanos) -> Finding {
    let more = with.beyond_noise(without);
    let own = match has_builtin {
        true => "git's own monitor launches nothing: `git config core.fsmonitor true`",
        false => "this git has no built-in monitor",
    };
    let is_slow = more.is_some_and(|more| more.time >= SLOW);
    Finding::problem_if(is_slow, "git launches a file-system monitor for each status")
        // Arguments of the program may be secrets.
        .evidence(format!("core.fsmonitor={}", monitor.split_whitespace().next().unwrap_or_default()))
        .evidence(format!("`git status` takes {with} with it, {} without", units::time(without)))
        .effect(more.map(|more| more.effect("each git status, diff, add, commit")))
        .fix(format!(
            "{own}; small repositories do not need one: `git config --show-origin core.fsmonitor` shows where it is set"
        ))
        .fix_cost("in large repositories, a status without a monitor examines each file")
}
