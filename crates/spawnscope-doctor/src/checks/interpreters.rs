//! The time that interpreters spend before the first line of a program: Python on site-packages and
//! its environment variables; Node, Ruby, Perl and Java on options from environment variables. The
//! values of those are not shown, since they may contain secrets.

use std::path::{Path, PathBuf};

use super::{baseline, report_failure, without_secrets};
use crate::programs::{Capture, Programs, RunError, RunTime};
use crate::{Examination, Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// How many times Python is timed, with and without site-packages.
const RUNS: usize = 3;
/// Site-packages, or options, that add this much are a problem. The standard library's own part of
/// `site` takes 3 to 8 ms.
const SLOW: Nanos = Nanos(20_000_000);
/// At most this many slow modules are listed.
const MAX_LISTED: usize = 3;
/// Variables that make Python do more, or search more directories, at each start.
const PYTHON_VARIABLES: [&str; 4] = ["PYTHONPATH", "PYTHONDEVMODE", "PYTHONVERBOSE", "PYTHONPROFILEIMPORTTIME"];
/// Marks the line with Python's answer, because modules that are loaded at start may print, too.
const ANSWER_PREFIX: &str = "spawnscope asked: ";

pub(super) fn run(examination: &Examination<'_>, programs: &Programs, findings: &mut Findings) {
    let machine = examination.machine;
    if let Some(program) = machine.program("python3") {
        check_python(machine, programs, &program, findings);
    }
    report_options(machine, programs, findings);
}

fn check_python(machine: &Machine, programs: &Programs, program: &Path, findings: &mut Findings) {
    let line = format!("{} -I -S -c pass", program.display());
    let python = match executable(machine, programs, program) {
        Ok(python) => python,
        Err(why @ RunError::DidNotEnd(_)) => return report_failure(findings, "python3", &line, why),
        // If the interpreter is unknown, the program in PATH is timed instead.
        Err(_) => program.to_owned(),
    };
    let bare = programs.shortest(RUNS, || machine.command_with(&python, &["-I", "-S", "-c", "pass"]));
    let Some(bare) = baseline(findings, "python3", &line, bare) else { return };
    let full = match programs.shortest(RUNS, || machine.command_with(&python, &["-c", "pass"])) {
        Ok(full) => full,
        Err(why) => return findings.add_not_examined(format!("`{} -c pass` {why}", python.display())),
    };
    if let Some(more) = full.beyond_noise(bare).filter(|more| more.time >= SLOW) {
        let table = programs.run(machine.command_with(&python, &["-X", "importtime", "-c", "pass"]), Capture::Stderr);
        let table = table.map(|ran| ran.output).unwrap_or_default();
        let times = format!("`{} -c pass` takes {full}, with -I -S {}", python.display(), units::time(bare));
        findings
            .add(slow_python_finding(more, &variables(machine)).evidence(times).evidence_if(slowest_modules(&table)));
    }
}

/// Returns the variables that are set, with their values.
fn variables(machine: &Machine) -> Vec<String> {
    PYTHON_VARIABLES
        .iter()
        .filter_map(|name| Some(format!("{name}={}", without_secrets(&machine.variable_text(name)?))))
        .collect()
}

fn slow_python_finding(more: RunTime, variables: &[String]) -> Finding {
    let what = if variables.is_empty() { "site-packages" } else { "site-packages and its variables" };
    Finding::problem(format!("Python spends {more} at each start on {what}"))
        .evidence_if((!variables.is_empty()).then(|| variables.join(", ")))
        .effect(more.effect("each start of Python"))
        .fix("see `python3 -X importtime -c pass`; .pth files with `import`, sitecustomize and usercustomize run at each start")
        .fix("run scripts that need no packages with `python3 -I -S`, or with `-E -s`")
        .fix_cost("with -S, packages outside the standard library are not found")
}

/// Returns the interpreter that a program in PATH executes. The program itself may be a shim, whose
/// time must not count as Python's.
fn executable(machine: &Machine, programs: &Programs, program: &Path) -> Result<PathBuf, RunError> {
    let script = format!("import sys; print('\\n{ANSWER_PREFIX}' + sys.executable)");
    // These options keep user code from being loaded.
    let ran = programs.run(machine.command_with(program, &["-I", "-S", "-c", &script]), Capture::Stdout)?;
    let path = prefixed_answer(&ran.output).filter(|_| ran.succeeded);
    path.map(PathBuf::from).ok_or(RunError::Failed)
}

fn prefixed_answer(output: &str) -> Option<&str> {
    output.lines().find_map(|line| line.strip_prefix(ANSWER_PREFIX))
}

/// Returns the modules with the most time of their own, from lines
/// `import time: OWN | CUMULATIVE | NAME` with times in microseconds.
fn slowest_modules(table: &str) -> Option<String> {
    let mut modules: Vec<(u64, &str)> = table
        .lines()
        .filter_map(|line| {
            let mut columns = line.strip_prefix("import time:")?.split('|');
            let own_time = columns.next()?.trim().parse().ok()?;
            Some((own_time, columns.nth(1)?.trim()))
        })
        .collect();
    modules.sort_by_key(|(own, _)| std::cmp::Reverse(*own));
    let named: Vec<String> = modules
        .iter()
        .take(MAX_LISTED)
        .map(|(own, name)| format!("{name} {}", units::time(Nanos(own * 1000))))
        .collect();
    (!named.is_empty()).then(|| format!("the slowest modules: {}", named.join(", ")))
}

/// How many times an interpreter is timed, with and without its variable.
const OPTION_RUNS: usize = 2;

struct OptionVariable {
    name: &'static str,
    interpreter: &'static str,
    /// Arguments with which the interpreter does nothing but start.
    no_op_arguments: &'static [&'static str],
}

/// PERL5DB is not listed, because Perl reads it only if options such as those in PERL5OPT request
/// the debugger.
const VARIABLES: [OptionVariable; 5] = [
    OptionVariable { name: "NODE_OPTIONS", interpreter: "node", no_op_arguments: &["-e", "0"] },
    OptionVariable { name: "RUBYOPT", interpreter: "ruby", no_op_arguments: &["-e", "0"] },
    OptionVariable { name: "PERL5OPT", interpreter: "perl", no_op_arguments: &["-e", "0"] },
    OptionVariable { name: "JAVA_TOOL_OPTIONS", interpreter: "java", no_op_arguments: &["-version"] },
    OptionVariable { name: "_JAVA_OPTIONS", interpreter: "java", no_op_arguments: &["-version"] },
];

/// Checks each variable that is set, if its interpreter is installed.
fn report_options(machine: &Machine, programs: &Programs, findings: &mut Findings) {
    for options in VARIABLES.iter().filter(|options| machine.variable(options.name).is_some()) {
        if let Some(program) = machine.program(options.interpreter) {
            options.check(machine, programs, &program, findings);
        }
    }
}

impl OptionVariable {
    fn check(&self, machine: &Machine, programs: &Programs, program: &Path, findings: &mut Findings) {
        let (name, interpreter, line) = (self.name, self.interpreter, self.line());
        let shortest =
            |machine: &Machine| programs.shortest(OPTION_RUNS, || machine.command_with(program, self.no_op_arguments));
        let bare = shortest(&machine.clone().without_variables(|set| set == name));
        let Some(bare) = baseline(findings, interpreter, &line, bare) else { return };
        let (title, times, effect) = match shortest(machine) {
            Ok(full) => {
                let Some(more) = full.beyond_noise(bare) else { return };
                let times = format!("`{line}` takes {full} with it, {} without", units::time(bare));
                (format!("{name} makes each start of {interpreter} {more} slower"), times, Some(more))
            }
            Err(RunError::Failed) => {
                let times = format!("`{line}` fails with it, and succeeds without");
                (format!("{interpreter} fails with {name}"), times, None)
            }
            Err(why) => return findings.add_not_examined(format!("`{line}` with {name} {why}")),
        };
        findings.add(
            Finding::problem_if(effect.is_none_or(|more| more.time >= SLOW), title)
                .evidence(times)
                .effect(effect.map(|more| more.effect("each start of the interpreter")))
                .fix(format!(
                    "see what it loads: `echo ${name}`; set it only for the program that needs it: `{name}=... program`"
                ))
                .fix_cost("the code it loads, such as a debugger or an agent, is missing elsewhere"),
        );
    }

    fn line(&self) -> String {
        format!("{} {}", self.interpreter, self.no_op_arguments.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_sorted_by_the_time_of_their_own() {
        let table = "\
import time: self [us] | cumulative | imported package
import time:       100 |        100 |   zipimport
import time:      9000 |      12000 | slow_plugin
import time:       200 |      99000 | site
warning: something";
        let slowest_modules = slowest_modules(table).unwrap();
        assert_eq!(slowest_modules, "the slowest modules: slow_plugin 9.00 ms, site 200 us, zipimport 100 us");
    }
}
