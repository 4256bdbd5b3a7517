//! Shell start-up files that take long, usually because they launch programs. Which lines do so is the work of a recording.

use std::path::Path;
use std::process::Command;

use super::{hanging, values};
use crate::programs::{Programs, RunError, RunTime};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;

/// How many times a shell is timed, with and without its files.
const RUNS: usize = 2;
/// Start-up files of interactive shells that take this long are a problem: together with other delays, users notice it.
const SLOW_INTERACTIVE: Nanos = Nanos(50_000_000);
/// A file that each script reads is a problem if it takes as long as a launch: a build may start thousands of scripts.
const SLOW_SCRIPT: Nanos = Nanos(1_000_000);

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
    fix: &'static str,
    fix_cost: &'static str,
}

const VARIABLES: [Variable; 2] = [
    Variable {
        name: "BASH_ENV",
        command: ["bash", "-c", "true"],
        reader: "bash script",
        effect: "each bash script, and each bash -c",
        problem_time: SLOW_SCRIPT,
        fix: "make it return at once when it is not needed, or unset BASH_ENV for builds: `env -u BASH_ENV make`",
        fix_cost: "functions that it defines, such as `module`, are then missing in scripts",
    },
    Variable {
        name: "ENV",
        command: ["sh", "-ic", "true"],
        reader: "interactive sh",
        effect: "each interactive sh",
        problem_time: SLOW_INTERACTIVE,
        fix: "keep launches out of it, or unset ENV for builds",
        fix_cost: "an edit",
    },
];

pub(super) fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    let mut hung = None;
    for variable in &VARIABLES {
        let value = machine.variable_text(variable.name).filter(|value| may_be_file(machine, value));
        if let Some(value) = value
            && check_variable(machine, programs, variable, &value, findings) == BareShell::Hangs
        {
            hung = Some(variable.command[0]);
        }
    }
    // A shell that hangs even without its files has already been reported.
    for shell in INTERACTIVE.iter().filter(|shell| hung != Some(shell.name)) {
        if let Some(program) = machine.program(shell.name) {
            check_interactive(machine, programs, shell, &program, findings);
        }
    }
}

/// Whether a shell may read a file that this value of ENV or BASH_ENV names. Only a shell can expand some values. ENV is also used for other
/// purposes, such as `production`.
fn may_be_file(machine: &Machine, value: &str) -> bool {
    value.contains(['$', '`', '~', '\\', '"', '\'']) || machine.is_file(machine.working_directory().join(value))
}

/// Why the cost of start-up files is unknown.
enum UnknownCost {
    /// The shell without start-up files could not be timed.
    Bare(RunError),
    /// The shell with start-up files could not be timed.
    Full(RunError),
}

/// Returns how much longer a shell takes with its start-up files, if that exceeds the noise. The shell with files may hang and use up the
/// time, so it comes last.
fn start_cost(
    programs: &Programs,
    with: impl Fn() -> Command,
    without: impl Fn() -> Command,
) -> Result<Option<RunTime>, UnknownCost> {
    let bare = programs.shortest(RUNS, &without).and_then(RunTime::complete).map_err(UnknownCost::Bare)?;
    let full = programs.shortest(RUNS, &with).map_err(UnknownCost::Full)?;
    Ok(full.beyond_noise(bare))
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
    let Some(more) = start.filter(|more| more.time >= SLOW_INTERACTIVE) else {
        return;
    };
    findings.add(
        Finding::problem(format!("{name}'s start-up files take {more}"))
            .evidence(format!(
                "`{name} {}` with {}, compared with no start-up files",
                ARGUMENTS_WITH_FILES.join(" "),
                shell.files
            ))
            .effect(more.effect("each interactive shell"))
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

/// Times a shell with the file that a variable names, and without the variable.
fn check_variable(
    machine: &Machine,
    programs: &Programs,
    variable: &Variable,
    value: &str,
    findings: &mut Findings,
) -> BareShell {
    let [shell, option, script] = variable.command;
    let (name, line) = (variable.name, variable.command.join(" "));
    let Some(program) = machine.program(shell) else {
        return BareShell::Ends;
    };
    let bare = machine.clone().without_variables(|set| set == name);
    let arguments = [option, script];
    let start =
        start_cost(programs, || machine.command_with(&program, &arguments), || bare.command_with(&program, &arguments));
    let shown = values::without_secrets(value);
    match start {
        Ok(more) => {
            let more = more.filter(|more| more.time >= variable.problem_time);
            findings.extend(more.map(|more| start_file_finding(variable, &shown, more)));
        }
        Err(UnknownCost::Full(why)) => findings.add_not_examined(format!("`{line}` with {name}={shown} {why}")),
        Err(UnknownCost::Bare(why)) => {
            hanging::report(findings, shell, &line, why);
            if matches!(why, RunError::DidNotEnd(_)) {
                return BareShell::Hangs;
            }
        }
    }
    BareShell::Ends
}

fn start_file_finding(variable: &Variable, value: &str, more: RunTime) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    Finding::problem(format!("each {reader} first reads the file in {name}, which takes {more}"))
        .evidence(format!("{name}={value}, compared with no {name}"))
        .effect(more.effect(variable.effect))
        .fix(variable.fix)
        .fix_cost(variable.fix_cost)
}
