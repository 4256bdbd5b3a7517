//! What shells do before they do anything: start-up files that launch programs.

use std::path::Path;
use std::process::Command;

use super::start_file::StartFile;
use super::{Check, Run, unending};
use crate::doctor::programs::{Launches, Programs, Took, Unknown};
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::event::Nanos;

pub(super) const CHECK: Check = Check {
    id: "shell-start",
    looks_at: "start-up files of bash and zsh, BASH_ENV, ENV: launches and time",
    run: Run::Starting(run),
};

const RUNS: usize = 2;
/// Interactive shells: a person notices a tenth of a second.
const SLOW: Nanos = Nanos(50_000_000);
const MANY_LAUNCHES: u64 = 10;
/// Scripts: there are thousands.
const SLOW_SCRIPT: Nanos = Nanos(2_000_000);

/// A shell with its start-up files, and the same without.
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
        files: "~/.bashrc, /etc/bash.bashrc",
    },
    Shell {
        name: "zsh",
        with: &["-ic", "true"],
        without: &["-fic", "true"],
        files: "~/.zshenv, ~/.zshrc, /etc/zsh",
    },
];

/// A variable that names a file which a shell reads first.
struct Variable {
    name: &'static str,
    command: [&'static str; 3],
    /// What reads it.
    reader: &'static str,
    effect: &'static str,
    /// From here on it is a problem.
    slow: Nanos,
    launches: u64,
    fix: &'static str,
    fix_cost: &'static str,
    /// Nobody uses it for something else, as ENV is.
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
        fix: "have it return at once where it is not wanted, or unset BASH_ENV for builds: `env -u BASH_ENV make`",
        fix_cost: "functions that it defines, such as `module`, are missing in scripts then",
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
    // One that does not end without its files is told once.
    for shell in INTERACTIVE.iter().filter(|shell| hung != Some(shell.name)) {
        if let Some(program) = machine.program(shell.name) {
            interactive(machine, programs, shell, &program, findings);
        }
    }
}

/// How much longer a shell takes with its files, where that is more than the noise, and what they launch.
struct Start {
    more: Option<Took>,
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

/// Why a start is not known: by the shell alone, or by its files.
enum Untold {
    Bare(Unknown),
    Full(Unknown),
}

fn start(programs: &Programs, with: impl Fn() -> Command, without: impl Fn() -> Command) -> Result<Start, Untold> {
    let bare = programs
        .shortest(RUNS, &without)
        .and_then(Took::whole)
        .map_err(Untold::Bare)?;
    let full = programs.shortest(RUNS, &with).map_err(Untold::Full)?;
    // What may not end comes last: it would leave no time for the other.
    let few = programs.count_launches(without());
    let all = few.and_then(|_| programs.count_launches(with()));
    Ok(Start {
        more: full.beyond_noise(bare),
        launches: all.zip(few).and_then(|(all, few)| all.beyond(few)),
    })
}

fn launched(start: &Start) -> String {
    start
        .launches
        .map_or("what they launch could not be counted".to_owned(), |launches| {
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
        Err(Untold::Bare(why)) => {
            return unending::tell(findings, name, &format!("{name} {}", shell.without.join(" ")), why);
        }
        Err(Untold::Full(why)) => return findings.unseen(format!("`{name} {}` {why}", shell.with.join(" "))),
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
            "`{name} {}` with {}, against without; {}",
            shell.with.join(" "),
            shell.files,
            launched(&start)
        ))
        .effect(start.more.map(|more| more.effect("each interactive shell")))
        .fix(format!(
            "see which lines launch: `spawnscope record -- {name} {}; spawnscope report --by line`",
            shell.with.join(" ")
        ))
        .fix("load version managers and completions when they are first used; keep the output of `tool init` in a file")
        .fix_cost("edits of your own start-up files"),
    );
}

/// What became of a shell without any files.
#[derive(PartialEq, Eq)]
enum Bare {
    Ends,
    Hangs,
}

/// Times a shell with the file that a variable names, and without the variable; `None` where there is nothing to time.
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
            findings.unseen(format!("{name} names {file}, which is where nothing answers"));
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
        Err(Untold::Full(why)) => findings.unseen(format!("`{line}` with {name}={file} {why}")),
        Err(Untold::Bare(why)) => {
            unending::tell(findings, shell, &line, why);
            return matches!(why, Unknown::DidNotEnd(_)).then_some(Bare::Hangs);
        }
    }
    Some(Bare::Ends)
}

fn first_read(variable: &Variable, file: &StartFile, start: &Start) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    let matters = start.takes(variable.slow) || start.launches_from(variable.launches);
    let time = start.more.map_or(String::new(), |more| format!(", for {more}"));
    Finding::problem_if(matters, format!("every {reader} first reads {name}{time}"))
        .evidence(format!("{name}={file}; {}", launched(start)))
        .effect(start.more.map(|more| more.effect(variable.effect)))
        .fix(variable.fix)
        .fix_cost(variable.fix_cost)
}

fn no_file(variable: &Variable, file: &StartFile) -> Finding {
    let (name, reader) = (variable.name, variable.reader);
    Finding::note(format!("{name} names no file"))
        .evidence(format!("{name}={file}: every {reader} looks for it in vain"))
        .fix(format!("unset {name}, or name a file that is there, from the root"))
        .fix_cost("an edit where it is set")
}
