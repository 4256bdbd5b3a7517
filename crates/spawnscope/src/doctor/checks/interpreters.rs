//! What interpreters do before the first line of a program: Python's site-packages, and options in the environment that load
//! something into each start.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Check;
use crate::doctor::{Effect, Examination, Finding, Findings};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "interpreters",
    looks_at: "Python's start with and without site-packages, options of others",
    run,
};

const RUNS: usize = 3;
/// The standard library's own part of `site` takes 3 to 8 ms.
const SLOW: Nanos = Nanos(20_000_000);
const MOST_NAMED: usize = 3;
/// Variables that have each start of an interpreter do more.
const OPTIONS: [(&str, &str); 7] = [
    ("NODE_OPTIONS", "node"),
    ("RUBYOPT", "ruby"),
    ("PERL5OPT", "perl"),
    ("PERL5DB", "perl"),
    ("JAVA_TOOL_OPTIONS", "java"),
    ("_JAVA_OPTIONS", "java"),
    ("PYTHONDEVMODE", "python3"),
];
/// What loads code, among the options of Node, Ruby, Perl and Java.
const LOADING: [&str; 7] = ["--require", "-r", "--import", "--loader", "-M", "-javaagent", "-agent"];

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(program) = machine.program("python3") {
        python(examination, &program, findings);
    }
    for (name, interpreter) in OPTIONS {
        let Some(value) = machine.variable_text(name) else {
            continue;
        };
        let loads = value
            .split_whitespace()
            .any(|word| LOADING.iter().any(|option| word.starts_with(option)));
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

fn python(examination: &Examination<'_>, program: &Path, findings: &mut Findings) {
    let (machine, programs) = (examination.machine, &examination.programs);
    let Some(python) = executable(examination, program) else {
        findings.unseen("Python failed to start, or took too long");
        return;
    };
    let with = |options: &[&str]| {
        let mut command: Command = machine.command(&python);
        command.args(options).args(["-c", "pass"]);
        command
    };
    let full = programs.shortest(RUNS, || with(&[]));
    let bare = programs.shortest(RUNS, || with(&["-I", "-S"]));
    let (Some(full), Some(bare)) = (full, bare) else {
        findings.unseen("Python failed to start, or took too long");
        return;
    };
    let more = full.since(bare);
    if more < SLOW {
        return;
    }
    let table = programs
        .run(&mut with(&["-X", "importtime"]))
        .map_or(String::new(), |ran| ran.output);
    let path = machine.variable_text("PYTHONPATH");
    findings.add(
        Finding::problem(format!("Python's start takes {} for site-packages", units::time(more)))
            .evidence(format!(
                "`{} -c pass` takes {}, with -I -S {}",
                python.display(),
                units::time(full),
                units::time(bare)
            ))
            .evidence_if(dearest(&table))
            .evidence_if(path.map(|path| format!("PYTHONPATH={path}")))
            .effect(Effect::measured(more, "each start of Python"))
            .fix("see `python3 -X importtime -c pass`; .pth files with `import` in site-packages, sitecustomize and usercustomize run each time")
            .fix("scripts that need no packages can begin with `python3 -I -S`, or -E -s")
            .fix_cost("with -S, packages outside the standard library are not found"),
    );
}

/// What a program in PATH comes to: it may be a shim, whose time is not Python's.
fn executable(examination: &Examination<'_>, program: &Path) -> Option<PathBuf> {
    let mut command = examination.machine.command(program);
    let ran = examination
        .programs
        .run(command.args(["-c", "import sys; print(sys.executable)"]))?;
    ran.succeeded.then(|| PathBuf::from(ran.output.trim()))
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
