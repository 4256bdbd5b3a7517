//! Environment variables with options for Node, Ruby, Perl and Java, which can slow down each
//! start. Times the interpreter with and without the variable. The values are not shown, since they
//! may contain secrets.

use std::path::Path;

use super::hanging;
use crate::programs::{Programs, RunError};
use crate::{Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// How many times an interpreter is timed, with and without its variable.
const RUNS: usize = 2;
/// Options that add this much to a start are a problem. The limit is the same as for Python.
const SLOW: Nanos = Nanos(20_000_000);

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
pub(super) fn report(machine: &Machine, programs: &Programs, findings: &mut Findings) {
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
            |machine: &Machine| programs.shortest(RUNS, || machine.command_with(program, self.no_op_arguments));
        let bare = shortest(&machine.clone().without_variables(|set| set == name));
        let Some(bare) = hanging::baseline(findings, interpreter, &line, bare) else { return };
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
