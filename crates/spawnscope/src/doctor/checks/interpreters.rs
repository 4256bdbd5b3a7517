//! What interpreters do before the first line of a program: Python's site-packages, and options in the environment that load
//! something into each start.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Check, Run};
use crate::doctor::programs::{Programs, Reads, Took};
use crate::doctor::{Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "interpreters",
    looks_at: "Python's start with and without site-packages, options of others",
    run: Run::Starting(run),
};

const RUNS: usize = 3;
/// The standard library's own part of `site` takes 3 to 8 ms.
const SLOW: Nanos = Nanos(20_000_000);
const MOST_NAMED: usize = 3;
/// Variables that have each start of an interpreter do more, and the options in them that load code.
const OPTIONS: [(&str, &str, &[&str]); 6] = [
    (
        "NODE_OPTIONS",
        "node",
        &["--require", "-r", "--import", "--loader", "--experimental-loader"],
    ),
    ("RUBYOPT", "ruby", &["-r"]),
    ("PERL5OPT", "perl", &["-M", "-m", "-d"]),
    ("PERL5DB", "perl", &[""]),
    ("JAVA_TOOL_OPTIONS", "java", &["-javaagent", "-agent"]),
    ("_JAVA_OPTIONS", "java", &["-javaagent", "-agent"]),
];
/// Variables that have Python do more, or look in more places, at each start.
const OF_PYTHON: [&str; 6] = [
    "PYTHONPATH",
    "PYTHONDEVMODE",
    "PYTHONSTARTUP",
    "PYTHONVERBOSE",
    "PYTHONPROFILEIMPORTTIME",
    "PYTHONDONTWRITEBYTECODE",
];
/// Before what Python answers: what it loads at its start may write, too.
const MARK: &str = "spawnscope asked: ";

fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(program) = machine.program("python3") {
        python(machine, programs, &program, findings);
    }
    for (name, interpreter, loading) in OPTIONS {
        let Some(value) = machine.variable_text(name) else {
            continue;
        };
        let loads = value
            .split_whitespace()
            .any(|word| loading.iter().any(|option| word.starts_with(option)));
        findings.add(
            Finding::problem_if(loads, format!("{name} changes each start of {interpreter}"))
                .evidence(format!("{name}={value}"))
                .evidence_if(loads.then(|| "it loads code into each process, also into small helpers".to_owned()))
                .fix(format!(
                    "set it for the one program that wants it: `{name}=... program`"
                ))
                .fix_cost("what it loads, such as a debugger or an agent, is missing elsewhere"),
        );
    }
}

fn python(machine: &Machine, programs: &Programs, program: &Path, findings: &mut Findings) {
    // Where it cannot tell, it is timed by the name in PATH.
    let python = executable(machine, programs, program).unwrap_or_else(|| program.to_owned());
    let with = |options: &[&str]| {
        let mut command: Command = machine.command(&python);
        command.args(options).args(["-c", "pass"]);
        command
    };
    let bare = programs.shortest(RUNS, || with(&["-I", "-S"])).and_then(Took::whole);
    let full = programs.shortest(RUNS, || with(&[]));
    let (full, bare) = match (full, bare) {
        (Ok(full), Ok(bare)) => (full, bare),
        (Err(why), _) | (_, Err(why)) => return findings.unseen(format!("`{} -c pass` {why}", python.display())),
    };
    let more = full.since(bare);
    if more.time >= SLOW {
        let table = programs.run(with(&["-X", "importtime"]), Reads::Errors);
        let table = table.map(|ran| ran.output).unwrap_or_default();
        let variables: Vec<String> = OF_PYTHON
            .iter()
            .filter_map(|name| Some(format!("{name}={}", machine.variable_text(name)?)))
            .collect();
        let times = format!(
            "`{} -c pass` takes {full}, with -I -S {}",
            python.display(),
            units::time(bare)
        );
        findings.add(
            slow_python(more, &variables)
                .evidence(times)
                .evidence_if(dearest(&table)),
        );
    }
}

fn slow_python(more: Took, variables: &[String]) -> Finding {
    let what = if variables.is_empty() {
        "site-packages"
    } else {
        "site-packages and its variables"
    };
    Finding::problem(format!("Python's start takes {more} for {what}"))
        .evidence_if((!variables.is_empty()).then(|| variables.join(", ")))
        .effect(more.effect("each start of Python"))
        .fix("see `python3 -X importtime -c pass`; .pth files with `import` in site-packages, sitecustomize and usercustomize run each time")
        .fix("scripts that need no packages can begin with `python3 -I -S`, or -E -s")
        .fix_cost("with -S, packages outside the standard library are not found")
}

/// What a program in PATH comes to: it may be a shim, whose time is not Python's.
fn executable(machine: &Machine, programs: &Programs, program: &Path) -> Option<PathBuf> {
    let mut command = machine.command(program);
    let script = format!("import sys; print('\\n{MARK}' + sys.executable)");
    // Nothing of the user's is loaded for that.
    command.args(["-I", "-S", "-c", &script]);
    let ran = programs.run(command, Reads::Output).ok()?;
    let answer = ran.output.lines().find_map(|line| line.strip_prefix(MARK))?;
    ran.succeeded.then(|| PathBuf::from(answer))
}

/// The modules that took longest by themselves: `import time:  self | cumulative | name`, in microseconds.
fn dearest(table: &str) -> Option<String> {
    let mut modules: Vec<(u64, &str)> = table
        .lines()
        .filter_map(|line| {
            let mut columns = line.strip_prefix("import time:")?.split('|');
            let own = columns.next()?.trim().parse().ok()?;
            Some((own, columns.nth(1)?.trim()))
        })
        .collect();
    modules.sort_by_key(|(own, _)| std::cmp::Reverse(*own));
    let named: Vec<String> = modules
        .iter()
        .take(MOST_NAMED)
        .map(|(own, name)| format!("{name} {}", units::time(Nanos(own * 1000))))
        .collect();
    (!named.is_empty()).then(|| format!("the dearest modules: {}", named.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dearest_modules_are_those_with_the_most_time_of_their_own() {
        let table = "\
import time: self [us] | cumulative | imported package
import time:       100 |        100 |   zipimport
import time:      9000 |      12000 | slow_plugin
import time:       200 |      99000 | site
warning: something";
        let dearest = dearest(table).unwrap();
        assert_eq!(
            dearest,
            "the dearest modules: slow_plugin 9.00 ms, site 200 us, zipimport 100 us"
        );
    }
}
