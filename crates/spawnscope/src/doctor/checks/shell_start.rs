//! What shells do before they do anything: start-up files that launch programs.

use std::path::Path;
use std::process::Command;

use super::Check;
use crate::doctor::programs::PATIENCE;
use crate::doctor::{Effect, Examination, Finding, Findings, Machine, Programs};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "shell-start",
    looks_at: "start-up files of bash and zsh, BASH_ENV, ENV: launches and time",
    run,
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

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    for shell in &INTERACTIVE {
        if let Some(program) = machine.program(shell.name) {
            interactive(examination, shell, &program, findings);
        }
    }
    if let Some(file) = machine.variable_text("BASH_ENV") {
        scripts(examination, &file, findings);
    }
    if let Some(file) = machine.variable_text("ENV") {
        findings.add(
            Finding::note("ENV has every interactive sh read a file first")
                .evidence(format!("ENV={file}"))
                .fix("keep launches out of it, or unset ENV for builds")
                .fix_cost("an edit"),
        );
    }
}

/// How much longer a shell takes with its files, and what they launch.
struct Start {
    more: Nanos,
    launches: Option<u64>,
}

fn start(programs: &Programs, with: impl Fn() -> Command, without: impl Fn() -> Command) -> Option<Start> {
    let bare = programs.shortest(RUNS, &without)?;
    let full = programs.shortest(RUNS, &with)?;
    let launches = programs.count_launches(with()).zip(programs.count_launches(without()));
    Some(Start {
        more: full.since(bare),
        launches: launches.map(|(with, without)| with.saturating_sub(without)),
    })
}

fn launched(start: &Start) -> String {
    start
        .launches
        .map_or("what they launch could not be counted".to_owned(), |launches| {
            format!("they launch {}", units::counted(launches, "process", "processes"))
        })
}

fn interactive(examination: &Examination<'_>, shell: &Shell, program: &Path, findings: &mut Findings) {
    let machine = examination.machine;
    let command = |arguments: &[&str]| {
        let mut command = machine.command(program);
        command.args(arguments);
        command
    };
    let name = shell.name;
    let Some(start) = start(&examination.programs, || command(shell.with), || command(shell.without)) else {
        let limit = PATIENCE.as_millis();
        findings.unseen(format!(
            "`{name} {}` failed, or took more than {limit} ms",
            shell.with.join(" ")
        ));
        return;
    };
    let is_slow = start.more >= SLOW;
    if !is_slow && start.launches.is_none_or(|launches| launches < MANY_LAUNCHES) {
        return;
    }
    findings.add(
        Finding::problem_if(
            is_slow,
            format!("{name}'s start-up files take {}", units::time(start.more)),
        )
        .evidence(format!(
            "`{name} {}` with {}, against without; {}",
            shell.with.join(" "),
            shell.files,
            launched(&start)
        ))
        .effect(Effect::measured(start.more, "each interactive shell"))
        .fix(format!(
            "see which lines launch: `spawnscope record -- {name} {}; spawnscope report --by line`",
            shell.with.join(" ")
        ))
        .fix("load version managers and completions when they are first used; keep the output of `tool init` in a file")
        .fix_cost("edits of your own start-up files"),
    );
}

fn scripts(examination: &Examination<'_>, file: &str, findings: &mut Findings) {
    let machine = examination.machine;
    let Some(program) = machine.program("bash") else {
        return;
    };
    let bare = machine.clone().without_variables(|name| name == "BASH_ENV");
    let script = |machine: &Machine| {
        let mut command = machine.command(&program);
        command.args(["-c", "true"]);
        command
    };
    let Some(start) = start(&examination.programs, || script(machine), || script(&bare)) else {
        findings.unseen(format!("bash with BASH_ENV={file} failed, or took too long"));
        return;
    };
    let matters = start.more >= SLOW_SCRIPT || start.launches.is_some_and(|launches| launches > 0);
    findings.add(
        Finding::problem_if(
            matters,
            format!(
                "every bash script first reads BASH_ENV, for {}",
                units::time(start.more)
            ),
        )
        .evidence(format!("BASH_ENV={file}; {}", launched(&start)))
        .effect(Effect::measured(start.more, "each bash script, and each bash -c"))
        .fix("have it return at once where it is not wanted, or unset BASH_ENV for builds: `env -u BASH_ENV make`")
        .fix_cost("functions that it defines, such as `module`, are missing in scripts then"),
    );
}
