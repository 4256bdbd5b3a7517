//! Shell start-up files that launch programs.

use std::path::Path;
use std::process::Command;

use super::start_file::StartFile;
use super::{Check, Run, hanging};
use crate::programs::{Launches, Programs, RunError, RunTime};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;

pub(super) const CHECK: Check = Check {
    id: "shell-start",
    examines: "start-up files of bash and zsh, BASH_ENV, ENV: launches and time",
    run: Run::StartingPrograms(run),
};

/// How many times a shell is timed, with and without its files.
const RUNS: usize = 2;
/// Start-up files of interactive shells that take this long are a problem: together with other delays, users notice it.
const SLOW_INTERACTIVE: Nanos = Nanos(50_000_000);
/// Start-up files with this many launches are reported, even if they are fast.
const MANY_LAUNCHES: u64 = 10;
/// A file that each script reads is a problem if it takes this long: a build may start thousands of scripts.
const SLOW_SCRIPT: Nanos = Nanos(2_000_000);

/// An interactive shell.
struct Shell {
    name: &'static str,
    /// Arguments with which the shell reads no start-up files and ends.
    arguments_without_files: &'static [&'static str],
    /// The names of the start-up files.
    files: &'static str,
}

/// Arguments with which an interactive shell reads its start-up files and ends.
const ARGUMENTS_WITH_FILES: [&str; 2] = ["-ic", "true"];
const INTERACTIVE: [Shell; 2] = [
    Shell {
        name: "bash",
        arguments_without_files: &["--norc", "--noprofile", "-ic", "true"],
        files: "~/.bashrc and /etc/bash.bashrc",
    },
    Shell { name: "zsh", arguments_without_files: &["-fic", "true"], files: "~/.zshenv, ~/.zshrc, /etc/zsh" },
];

/// A variable with the name of a file that a shell reads before its commands.
struct Variable {
    name: &'static str,
    /// A command line of a shell that reads the file.
    command: [&'static str; 3],
    /// The shells that read the file.
    reader: &'static str,
    /// What is slower because of the file.
    effect: &'static str,
    /// A file that takes at least this long is a problem.
    problem_time: Nanos,
    /// A file with at least this many launches is a problem.
    problem_launches: u64,
    fix: &'static str,
    fix_cost: &'static str,
    /// Whether the variable has no other use. ENV is also used for other purposes.
    is_for_files_only: bool,
}

const VARIABLES: [Variable; 2] = [
    Variable {
        name: "BASH_ENV",
        command: ["bash", "-c", "true"],
        reader: "bash script",
        effect: "each bash script, and each bash -c",
        problem_time: SLOW_SCRIPT,
        problem_launches: 1,
        fix: "make it return at once when it is not needed, or unset BASH_ENV for builds: `env -u BASH_ENV make`",
        fix_cost: "functions that it defines, such as `module`, are then missing in scripts",
        is_for_files_only: true,
    },
    Variable {
        name: "ENV",
        command: ["sh", "-ic", "true"],
        reader: "interactive sh",
        effect: "each interactive sh",
        problem_time: SLOW_INTERACTIVE,
        problem_launches: u64::MAX,
        fix: "keep launches out of it, or unset ENV for builds",
        fix_cost: "an edit",
        is_for_files_only: false,
    },
];

fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    let mut hung = None;
    for variable in &VARIABLES {
        if let Some(value) = machine.variable_text(variable.name) {
            let Some(file) = StartFile::find(machine, &value) else {
                continue;
            };
            if check_variable(machine, programs, variable, &file, findings) == Some(BareShell::Hangs) {
                hung = Some(variable.command[0]);
            }
        }
    }
    // A shell that hangs even without its files has already been reported.
    for shell in INTERACTIVE.iter().filter(|shell| hung != Some(shell.name)) {
        if let Some(program) = machine.program(shell.name) {
            check_interactive(machine, programs, shell, &program, findings);
        }
    }
}

/// The cost of start-up files.
struct StartCost {
    /// How much longer the shell takes with its files, if that exceeds the noise.
    more: Option<RunTime>,
    /// How many launches the files make; unknown if these could not be counted.
    launches: Option<Launches>,
}

impl StartCost {
    fn takes_at_least(&self, time: Nanos) -> bool {
        self.more.is_some_and(|more| more.time >= time)
    }

    fn launches_at_least(&self, number: u64) -> bool {
        self.launches.is_some_and(|launches| launches.number >= number)
    }
}

/// Why the cost of start-up files is unknown.
enum UnknownCost {
    /// The shell without start-up files could not be timed.
    Bare(RunError),
    /// The shell with start-up files could not be timed.
    Full(RunError),
}

/// Measures a shell with start-up files, and without.
fn start_cost(
    programs: &Programs,
    with: impl Fn() -> Command,
    without: impl Fn() -> Command,
) -> Result<StartCost, UnknownCost> {
    let bare = programs.shortest(RUNS, &without).and_then(RunTime::complete).map_err(UnknownCost::Bare)?;
    let full = programs.shortest(RUNS, &with).map_err(UnknownCost::Full)?;
    // The shell with files may hang and use up the time, so it comes last.
    let few = programs.count_launches(without());
    let all = few.and_then(|_| programs.count_launches(with()));
    Ok(StartCost { more: full.beyond_noise(bare), launches: all.zip(few).and_then(|(all, few)| all.excess_over(few)) })
}

/// Returns a clause that begins with `they_launch`, and ends with the number of processes that the start-up files launch.
fn launches_text(start: &StartCost, they_launch: &str) -> String {
    start.launches.map_or("launches could not be counted".to_owned(), |launches| format!("{they_launch} {launches}"))
}

fn check_interactive(machine: &Machine, programs: &Programs, shell: &Shell, program: &Path, findings: &mut Findings) {
    let name = shell.name;
    let start = start_cost(
        programs,
        || machine.command_with(program, &ARGUMENTS_WITH_FILES),
        || machine.command_with(program, shell.arguments_without_files),
    );
    let start = match start {
        Ok(start) => start,
        Err(UnknownCost::Bare(why)) => {
            return hanging::report(
                findings,
                name,
                &format!("{name} {}", shell.arguments_without_files.join(" ")),
                why,
            );
        }
        Err(UnknownCost::Full(why)) => {
            return findings.add_not_examined(format!("`{name} {}` {why}", ARGUMENTS_WITH_FILES.join(" ")));
        }
    };
    let is_slow = start.takes_at_least(SLOW_INTERACTIVE);
    if !is_slow && !start.launches_at_least(MANY_LAUNCHES) {
        return;
    }
    let title = match start.more {
        Some(more) => format!("{name}'s start-up files take {more}"),
        None => format!("{name}'s start-up files launch programs"),
    };
    findings.add(
        Finding::problem_if(is_slow, title)
            .evidence(format!(
                "`{name} {}` with {}, compared with no start-up files; {}",
                ARGUMENTS_WITH_FILES.join(" "),
                shell.files,
                launches_text(&start, "they launch")
            ))
            .effect(start.more.map(|more| more.effect("each interactive shell")))
            .fix(format!(
                "see which lines launch programs: `spawnscope record -- {name} {}; spawnscope report --by line`",
                ARGUMENTS_WITH_FILES.join(" ")
            ))
            .fix("load version managers and completions on first use; cache the output of `tool init` in a file")
            .fix_cost("edits to your start-up files"),
    );
}

/// Whether a shell without any start-up files ends.
#[derive(PartialEq, Eq)]
enum BareShell {
    Ends,
    Hangs,
}

/// Times a shell with the file that a variable names, and without the variable. Returns `None` if there is nothing to time.
fn check_variable(
    machine: &Machine,
    programs: &Programs,
    variable: &Variable,
    file: &StartFile,
    findings: &mut Findings,
) -> Option<BareShell> {
    let [shell, option, script] = variable.command;
    let (name, line) = (variable.name, variable.command.join(" "));
    let program = machine.program(shell)?;
    match file {
        StartFile::Missing(_) if variable.is_for_files_only => {
            findings.add(missing_file_finding(variable, file));
            return None;
        }
        StartFile::Missing(_) => return None,
        StartFile::Unresponsive(file) => {
            findings.add_not_examined(format!("{name} names {file}, on a file system that does not answer"));
            return None;
        }
        StartFile::Exists(_) | StartFile::Computed(_) => {}
    }
    let bare = machine.clone().without_variables(|set| set == name);
    let arguments = [option, script];
    let start =
        start_cost(programs, || machine.command_with(&program, &arguments), || bare.command_with(&program, &arguments));
    match start {
        Ok(start) => findings.add(start_file_finding(variable, file, &start)),
        Err(UnknownCost::Full(why)) => findings.add_not_examined(format!("`{line}` with {name}={file} {why}")),
        Err(UnknownCost::Bare(why)) => {
            hanging::report(findings, shell, &line, why);
            return matches!(why, RunError::DidNotEnd(_)).then_some(BareShell::Hangs);
        }
    }
    Some(BareShell::Ends)
}

fn start_file_finding(variable: &Variable, file: &StartFile, start: &StartCost) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    let matters = start.takes_at_least(variable.problem_time) || start.launches_at_least(variable.problem_launches);
    let time = start.more.map_or(String::new(), |more| format!(", which takes {more}"));
    Finding::problem_if(matters, format!("each {reader} first reads the file in {name}{time}"))
        .evidence(format!("{name}={file}; {}", launches_text(start, "it launches")))
        .effect(start.more.map(|more| more.effect(variable.effect)))
        .fix(variable.fix)
        .fix_cost(variable.fix_cost)
}

fn missing_file_finding(variable: &Variable, file: &StartFile) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    Finding::note(format!("{name} names a missing file"))
        .evidence(format!("{name}={file}: each {reader} tries to open it and fails"))
        .fix(format!("unset {name}, or set it to the absolute path of an existing file"))
        .fix_cost("an edit where it is set")
}
