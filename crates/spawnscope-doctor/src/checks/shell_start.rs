//! Shell start-up files that take long, usually because they launch programs. Which lines do so is
//! the work of `spawnscope shell`.

use std::path::Path;

use super::{hanging, values};
use crate::programs::{Programs, RunError, RunTime};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;

/// How many times a shell is timed, with and without its files.
const RUNS: usize = 2;
/// Start-up files of interactive shells that take this long are a problem: together with other
/// delays, users notice it.
const SLOW_INTERACTIVE: Nanos = Nanos(50_000_000);
/// A file that each script reads is a problem if it takes as long as a launch: a build may start
/// thousands of scripts.
const SLOW_SCRIPT: Nanos = Nanos(1_000_000);

/// A way to start a shell, and the files that it reads then.
struct Start {
    shell: &'static str,
    arguments: &'static [&'static str],
    /// Arguments with which the shell reads no files.
    arguments_without_files: &'static [&'static str],
    files: Files,
    /// The title of a finding, without the time.
    title: &'static str,
    /// What is slower because of the files.
    affected: &'static str,
    /// Files that take at least this long are a problem.
    problem_time: Nanos,
    fix: &'static [&'static str],
    fix_cost: &'static str,
}

enum Files {
    /// The shell reads these files.
    Usual(&'static str),
    /// The shell reads the file that this variable names.
    InVariable(&'static str),
}

const STARTS: [Start; 4] = [
    Start {
        shell: "bash",
        arguments: &["-c", "true"],
        arguments_without_files: &["-c", "true"],
        files: Files::InVariable("BASH_ENV"),
        title: "each bash script first reads the file in BASH_ENV, which takes",
        affected: "each bash script, and each bash -c",
        problem_time: SLOW_SCRIPT,
        fix: &["make it return at once when it is not needed, or unset BASH_ENV for builds: `env -u BASH_ENV make`"],
        fix_cost: "functions that it defines, such as `module`, are then missing in scripts",
    },
    Start {
        shell: "sh",
        arguments: &["-ic", "true"],
        arguments_without_files: &["-ic", "true"],
        files: Files::InVariable("ENV"),
        title: "each interactive sh first reads the file in ENV, which takes",
        affected: "each interactive sh",
        problem_time: SLOW_INTERACTIVE,
        fix: &["keep launches out of it, or unset ENV for builds"],
        fix_cost: "an edit",
    },
    Start {
        shell: "bash",
        arguments: &["-ic", "true"],
        arguments_without_files: &["--norc", "--noprofile", "-ic", "true"],
        files: Files::Usual("~/.bashrc and /etc/bash.bashrc"),
        title: "bash's start-up files take",
        affected: INTERACTIVE,
        problem_time: SLOW_INTERACTIVE,
        fix: &["`spawnscope shell bash` prints which lines take this time, and what to change in them"],
        fix_cost: EDITS,
    },
    Start {
        shell: "zsh",
        arguments: &["-ic", "true"],
        arguments_without_files: &["-fic", "true"],
        files: Files::Usual("~/.zshenv, ~/.zshrc, /etc/zsh"),
        title: "zsh's start-up files take",
        affected: INTERACTIVE,
        problem_time: SLOW_INTERACTIVE,
        fix: &["`spawnscope shell zsh` prints which lines take this time, and what to change in them"],
        fix_cost: EDITS,
    },
];

const INTERACTIVE: &str = "each interactive shell";
const EDITS: &str = "edits to your start-up files";

pub(super) fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    let mut untimed = Vec::new();
    for start in &STARTS {
        // A shell that could not be timed even without its files has already been reported.
        let program = machine.program(start.shell).filter(|_| !untimed.contains(&start.shell));
        let files = start.files.named(machine);
        let Some((program, files)) = program.zip(files) else {
            continue;
        };
        let bare = start.bare_time(machine, programs, &program);
        match hanging::baseline(findings, start.shell, &line(start.shell, start.arguments_without_files), bare) {
            Some(bare) => start.check(machine, programs, &program, bare, &files, findings),
            None => untimed.push(start.shell),
        }
    }
}

impl Files {
    /// Returns how to name the files in a sentence; `None` if the shell reads none.
    fn named(&self, machine: &Machine) -> Option<String> {
        match self {
            Files::Usual(files) => Some((*files).to_owned()),
            Files::InVariable(name) => {
                let value = machine.variable_text(name).filter(|value| may_be_file(machine, value))?;
                Some(format!("{name}={}", values::without_secrets(&value)))
            }
        }
    }
}

/// Whether a shell may read a file that this value of ENV or BASH_ENV names. Only a shell can
/// expand some values. ENV is also used for other purposes, such as `production`.
fn may_be_file(machine: &Machine, value: &str) -> bool {
    value.contains(['$', '`', '~', '\\', '"', '\'']) || machine.is_file(machine.working_directory().join(value))
}

fn line(shell: &str, arguments: &[&str]) -> String {
    format!("{shell} {}", arguments.join(" "))
}

impl Start {
    fn bare_time(&self, machine: &Machine, programs: &Programs, program: &Path) -> Result<RunTime, RunError> {
        let bare =
            machine.clone().without_variables(|name| matches!(self.files, Files::InVariable(set) if set == name));
        programs.shortest(RUNS, || bare.command_with(program, self.arguments_without_files))
    }

    /// Times the shell with the files. They may hang and use up the time, so this comes last.
    fn check(
        &self,
        machine: &Machine,
        programs: &Programs,
        program: &Path,
        bare: Nanos,
        files: &str,
        findings: &mut Findings,
    ) {
        let line = line(self.shell, self.arguments);
        let full = match programs.shortest(RUNS, || machine.command_with(program, self.arguments)) {
            Ok(full) => full,
            Err(why) => return findings.add_not_examined(format!("`{line}` with {files} {why}")),
        };
        let Some(more) = full.beyond_noise(bare).filter(|more| more.time >= self.problem_time) else {
            return;
        };
        let finding = Finding::problem(format!("{} {more}", self.title))
            .evidence(format!("`{line}` with {files}, compared with no start-up files"))
            .effect(more.effect(self.affected));
        findings.add(self.fix.iter().fold(finding, |finding, fix| finding.fix(*fix)).fix_cost(self.fix_cost));
    }
}
