//! Shell start-up files that launch programs.

use std::path::Path;
use std::process::Command;

use super::start_file::StartFile;
use super::{Check, Run, hanging};
use crate::programs::{Launches, Programs, RunTime, RunError};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;

pub(super) const CHECK: Check = Check {
    id: "shell-start",
    examines: "start-up files of bash and zsh, BASH_ENV, ENV: launches and time",
    run: Run::StartingPrograms(run),
};

const RUNS: usize = 2;
/// For interactive shells: users notice a tenth of a second.
const SLOW: Nanos = Nanos(50_000_000);
const MANY_LAUNCHES: u64 = 10;
/// For scripts, of which a build may start thousands.
const SLOW_SCRIPT: Nanos = Nanos(2_000_000);

/// A shell with its start-up files, and without.
struct Shell {
    name: &'static str,
    with: &'static [&'static str],
    without: &'static [&'static str],
    files: &'static str,
}

const INTERACTIVE: [Shell; 2] = [
    Shell {
        name: "bash",
        with: &["-ic", "true"],
        without: &["--norc", "--noprofile", "-ic", "true"],
        files: "~/.bashrc and /etc/bash.bashrc",
    },
    Shell {
        name: "zsh",
        with: &["-ic", "true"],
        without: &["-fic", "true"],
        files: "~/.zshenv, ~/.zshrc, /etc/zsh",
    },
];

/// A variable that names a file that a shell reads first.
struct Variable {
    name: &'static str,
    command: [&'static str; 3],
    /// Which shells read it.
    reader: &'static str,
    effect: &'static str,
    /// A slower file is a problem.
    slow: Nanos,
    launches: u64,
    fix: &'static str,
    fix_cost: &'static str,
    /// Whether it only names files. ENV also has other uses.
    is_for_files_only: bool,
}

const VARIABLES: [Variable; 2] = [
    Variable {
        name: "BASH_ENV",
        command: ["bash", "-c", "true"],
        reader: "bash script",
        effect: "each bash script, and each bash -c",
        slow: SLOW_SCRIPT,
        launches: 1,
        fix: "make it return at once when it is not needed, or unset BASH_ENV for builds: `env -u BASH_ENV make`",
        fix_cost: "functions that it defines, such as `module`, are then missing in scripts",
        is_for_files_only: true,
    },
    Variable {
        name: "ENV",
        command: ["sh", "-ic", "true"],
        reader: "interactive sh",
        effect: "each interactive sh",
        slow: SLOW,
        launches: u64::MAX,
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
            let Some(file) = StartFile::of(machine, &value) else {
                continue;
            };
            if by_variable(machine, programs, variable, &file, findings) == Some(Bare::Hangs) {
                hung = Some(variable.command[0]);
            }
        }
    }
    // A shell that hangs even without its files is reported only once.
    for shell in INTERACTIVE.iter().filter(|shell| hung != Some(shell.name)) {
        if let Some(program) = machine.program(shell.name) {
            interactive(machine, programs, shell, &program, findings);
        }
    }
}

/// How much longer a shell takes with its files, if that exceeds the noise, and how many launches they make.
struct Start {
    more: Option<RunTime>,
    launches: Option<Launches>,
}

impl Start {
    fn takes(&self, time: Nanos) -> bool {
        self.more.is_some_and(|more| more.time >= time)
    }

    fn launches_from(&self, number: u64) -> bool {
        self.launches.is_some_and(|launches| launches.number >= number)
    }
}

/// Why the cost of a start is unknown: because of the shell alone, or of its files.
enum UnknownCost {
    Bare(RunError),
    Full(RunError),
}

fn start(programs: &Programs, with: impl Fn() -> Command, without: impl Fn() -> Command) -> Result<Start, UnknownCost> {
    let bare = programs
        .shortest(RUNS, &without)
        .and_then(RunTime::complete)
        .map_err(UnknownCost::Bare)?;
    let full = programs.shortest(RUNS, &with).map_err(UnknownCost::Full)?;
    // The version with files may hang, so it comes last: otherwise no time would be left for the other.
    let few = programs.count_launches(without());
    let all = few.and_then(|_| programs.count_launches(with()));
    Ok(Start {
        more: full.beyond_noise(bare),
        launches: all.zip(few).and_then(|(all, few)| all.excess_over(few)),
    })
}

fn launched(start: &Start) -> String {
    start
        .launches
        .map_or("their launches could not be counted".to_owned(), |launches| {
            format!("they launch {launches}")
        })
}

fn interactive(machine: &Machine, programs: &Programs, shell: &Shell, program: &Path, findings: &mut Findings) {
    let command = |arguments: &[&str]| {
        let mut command = machine.command(program);
        command.args(arguments);
        command
    };
    let name = shell.name;
    let start = match start(programs, || command(shell.with), || command(shell.without)) {
        Ok(start) => start,
        Err(UnknownCost::Bare(why)) => {
            return hanging::report(findings, name, &format!("{name} {}", shell.without.join(" ")), why);
        }
        Err(UnknownCost::Full(why)) => {
            return findings.not_examined(format!("`{name} {}` {why}", shell.with.join(" ")));
        }
    };
    let is_slow = start.takes(SLOW);
    if !is_slow && !start.launches_from(MANY_LAUNCHES) {
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
                shell.with.join(" "),
                shell.files,
                launched(&start)
            ))
            .effect(start.more.map(|more| more.effect("each interactive shell")))
            .fix(format!(
                "see which lines launch programs: `spawnscope record -- {name} {}; spawnscope report --by line`",
                shell.with.join(" ")
            ))
            .fix("load version managers and completions on first use; cache the output of `tool init` in a file")
            .fix_cost("edits to your start-up files"),
    );
}

/// The outcome of a shell without any start-up files.
#[derive(PartialEq, Eq)]
enum Bare {
    Ends,
    Hangs,
}

/// Times a shell with the file that a variable names, and without the variable; `None` if there is nothing to time.
fn by_variable(
    machine: &Machine,
    programs: &Programs,
    variable: &Variable,
    file: &StartFile,
    findings: &mut Findings,
) -> Option<Bare> {
    let [shell, option, script] = variable.command;
    let (name, line) = (variable.name, variable.command.join(" "));
    let program = machine.program(shell)?;
    match file {
        StartFile::Missing(_) if variable.is_for_files_only => {
            findings.add(no_file(variable, file));
            return None;
        }
        StartFile::Missing(_) => return None,
        StartFile::Silent(file) => {
            findings.not_examined(format!("{name} names {file}, on a file system that does not answer"));
            return None;
        }
        StartFile::There(_) | StartFile::Computed(_) => {}
    }
    let bare = machine.clone().without_variables(|set| set == name);
    let command = |machine: &Machine| {
        let mut command = machine.command(&program);
        command.args([option, script]);
        command
    };
    match start(programs, || command(machine), || command(&bare)) {
        Ok(start) => findings.add(first_read(variable, file, &start)),
        Err(UnknownCost::Full(why)) => findings.not_examined(format!("`{line}` with {name}={file} {why}")),
        Err(UnknownCost::Bare(why)) => {
            hanging::report(findings, shell, &line, why);
            return matches!(why, RunError::DidNotEnd(_)).then_some(Bare::Hangs);
        }
    }
    Some(Bare::Ends)
}

fn first_read(variable: &Variable, file: &StartFile, start: &Start) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    let matters = start.takes(variable.slow) || start.launches_from(variable.launches);
    let time = start.more.map_or(String::new(), |more| format!(", for {more}"));
    Finding::problem_if(matters, format!("each {reader} first reads {name}{time}"))
        .evidence(format!("{name}={file}; {}", launched(start)))
        .effect(start.more.map(|more| more.effect(variable.effect)))
        .fix(variable.fix)
        .fix_cost(variable.fix_cost)
}

fn no_file(variable: &Variable, file: &StartFile) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    Finding::note(format!("{name} names a missing file"))
        .evidence(format!("{name}={file}: each {reader} tries to open it and fails"))
        .fix(format!(
            "unset {name}, or set it to the absolute path of an existing file"
        ))
        .fix_cost("an edit where it is set")
}
