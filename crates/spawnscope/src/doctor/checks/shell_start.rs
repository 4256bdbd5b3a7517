//! What shells do before they do anything: start-up files that launch programs.

use std::path::Path;
use std::process::Command;

use super::{Check, Run};
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

fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(file) = machine.variable_text("BASH_ENV") {
        scripts(machine, programs, &file, findings);
    }
    if let Some(file) = machine.variable_text("ENV") {
        posix(machine, programs, &file, findings);
    }
    for shell in &INTERACTIVE {
        if let Some(program) = machine.program(shell.name) {
            interactive(machine, programs, shell, &program, findings);
        }
    }
}

/// How much longer a shell takes with its files, and what they launch.
struct Start {
    more: Took,
    launches: Option<Launches>,
}

impl Start {
    fn launches_from(&self, number: u64) -> bool {
        self.launches.is_some_and(|launches| launches.number >= number)
    }
}

fn start(programs: &Programs, with: impl Fn() -> Command, without: impl Fn() -> Command) -> Result<Start, Unknown> {
    let bare = programs.shortest(RUNS, &without)?.whole()?;
    let full = programs.shortest(RUNS, &with)?;
    // What may not end comes last: it would leave no time for the other.
    let few = programs.count_launches(without());
    let all = few.and_then(|_| programs.count_launches(with()));
    Ok(Start {
        more: full.since(bare),
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
        Err(why) => return findings.unseen(format!("`{name} {}` {why}", shell.with.join(" "))),
    };
    let is_slow = start.more.time >= SLOW;
    if !is_slow && !start.launches_from(MANY_LAUNCHES) {
        return;
    }
    findings.add(
        Finding::problem_if(
            is_slow,
            format!("{name}'s start-up files take {}", start.more),
        )
        .evidence(format!(
            "`{name} {}` with {}, against without; {}",
            shell.with.join(" "),
            shell.files,
            launched(&start)
        ))
        .effect(start.more.effect("each interactive shell"))
        .fix(format!(
            "see which lines launch: `spawnscope record -- {name} {}; spawnscope report --by line`",
            shell.with.join(" ")
        ))
        .fix("load version managers and completions when they are first used; keep the output of `tool init` in a file")
        .fix_cost("edits of your own start-up files"),
    );
}

/// The same command with a variable and without it.
fn with_and_without(
    machine: &Machine,
    programs: &Programs,
    variable: &str,
    command: [&str; 3],
) -> Option<Result<Start, Unknown>> {
    let [shell, option, script] = command;
    let program = machine.program(shell)?;
    let bare = machine.clone().without_variables(|name| name == variable);
    let command = |machine: &Machine| {
        let mut command = machine.command(&program);
        command.args([option, script]);
        command
    };
    Some(start(programs, || command(machine), || command(&bare)))
}

fn posix(machine: &Machine, programs: &Programs, file: &str, findings: &mut Findings) {
    let Some(start) = with_and_without(machine, programs, "ENV", ["sh", "-ic", "true"]) else {
        return;
    };
    let start = match start {
        Ok(start) => start,
        Err(why) => return findings.unseen(format!("`sh -ic true` with ENV={file} {why}")),
    };
    findings.add(
        Finding::problem_if(
            start.more.time >= SLOW,
            format!("every interactive sh first reads ENV, for {}", start.more),
        )
        .evidence(format!("ENV={file}; {}", launched(&start)))
        .effect(start.more.effect("each interactive sh"))
        .fix("keep launches out of it, or unset ENV for builds")
        .fix_cost("an edit"),
    );
}

fn scripts(machine: &Machine, programs: &Programs, file: &str, findings: &mut Findings) {
    let Some(start) = with_and_without(machine, programs, "BASH_ENV", ["bash", "-c", "true"]) else {
        return;
    };
    let start = match start {
        Ok(start) => start,
        Err(why) => return findings.unseen(format!("bash with BASH_ENV={file} {why}")),
    };
    let matters = start.more.time >= SLOW_SCRIPT || start.launches_from(1);
    findings.add(
        Finding::problem_if(
            matters,
            format!("every bash script first reads BASH_ENV, for {}", start.more),
        )
        .evidence(format!("BASH_ENV={file}; {}", launched(&start)))
        .effect(start.more.effect("each bash script, and each bash -c"))
        .fix("have it return at once where it is not wanted, or unset BASH_ENV for builds: `env -u BASH_ENV make`")
        .fix_cost("functions that it defines, such as `module`, are missing in scripts then"),
    );
}
