//! Environment variables with options for Node, Ruby, Perl and Java, which can slow down each start. Times the interpreter with and without
//! the variable.

use std::path::Path;

use super::values;
use crate::programs::{Programs, RunError, RunTime};
use crate::{Finding, Findings, Machine};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// How many times an interpreter is timed, with and without its variable.
const RUNS: usize = 2;
/// Options that add this much to a start are a problem. The limit is the same as for Python.
const SLOW: Nanos = Nanos(20_000_000);

/// A variable with options.
struct OptionVariable {
    /// The name of the variable.
    name: &'static str,
    interpreter: &'static str,
    /// Arguments with which the interpreter does nothing but start.
    no_op_arguments: &'static [&'static str],
    /// The options that load code.
    loading_options: &'static [&'static str],
}

const NODE_LOADING: &[&str] = &["--require", "-r", "--import", "--loader", "--experimental-loader"];
const JAVA_LOADING: &[&str] = &["-javaagent", "-agentlib", "-agentpath"];
/// PERL5DB is not listed, because Perl reads it only if options such as those in PERL5OPT request the debugger.
const VARIABLES: [OptionVariable; 5] = [
    OptionVariable::new("NODE_OPTIONS", "node", &["-e", "0"], NODE_LOADING),
    OptionVariable::new("RUBYOPT", "ruby", &["-e", "0"], &["-r"]),
    OptionVariable::new("PERL5OPT", "perl", &["-e", "0"], &["-M", "-m", "-d"]),
    OptionVariable::new("JAVA_TOOL_OPTIONS", "java", &["-version"], JAVA_LOADING),
    OptionVariable::new("_JAVA_OPTIONS", "java", &["-version"], JAVA_LOADING),
];

/// Checks each variable that is set, if its interpreter is installed.
pub(super) fn report(machine: &Machine, programs: &Programs, findings: &mut Findings) {
    for options in &VARIABLES {
        let set = machine.variable_text(options.name);
        if let Some((value, program)) = set.zip(machine.program(options.interpreter)) {
            options.measure(machine, programs, &program, &value, findings);
        }
    }
}

/// The result of timing the interpreter.
enum Cost {
    /// The times with the options, and without.
    Times(RunTime, Nanos),
    /// The interpreter fails with the options.
    Refused,
    Unknown,
}

impl OptionVariable {
    const fn new(
        name: &'static str,
        interpreter: &'static str,
        no_op_arguments: &'static [&'static str],
        loading_options: &'static [&'static str],
    ) -> OptionVariable {
        OptionVariable { name, interpreter, no_op_arguments, loading_options }
    }

    fn measure(&self, machine: &Machine, programs: &Programs, program: &Path, value: &str, findings: &mut Findings) {
        let bare = machine.clone().without_variables(|name| name == self.name);
        let line = self.line();
        let cost = match self.shortest(&bare, programs, program).and_then(RunTime::complete) {
            Ok(bare) => match self.shortest(machine, programs, program) {
                Ok(full) => Cost::Times(full, bare),
                Err(RunError::Failed) => Cost::Refused,
                Err(why) => {
                    findings.add_not_examined(format!("`{line}` with {} {why}", self.name));
                    Cost::Unknown
                }
            },
            Err(why) => {
                findings.add_not_examined(format!("`{line}` without {} {why}", self.name));
                Cost::Unknown
            }
        };
        findings.add(self.finding(value, &cost));
    }

    fn shortest(&self, machine: &Machine, programs: &Programs, program: &Path) -> Result<RunTime, RunError> {
        programs.shortest(RUNS, || machine.command_with(program, self.no_op_arguments))
    }

    fn line(&self) -> String {
        format!("{} {}", self.interpreter, self.no_op_arguments.join(" "))
    }

    fn finding(&self, value: &str, cost: &Cost) -> Finding {
        let (name, interpreter, line) = (self.name, self.interpreter, self.line());
        let more = match cost {
            Cost::Times(full, bare) => full.beyond_noise(*bare),
            Cost::Refused | Cost::Unknown => None,
        };
        let title = match (cost, more) {
            (Cost::Refused, _) => format!("{interpreter} fails with {name}"),
            (_, Some(more)) => format!("{name} makes each start of {interpreter} {more} slower"),
            (_, None) => format!("{name} changes each start of {interpreter}"),
        };
        let times = match cost {
            Cost::Times(full, bare) => Some(format!("`{line}` takes {full} with it, {} without", units::time(*bare))),
            Cost::Refused => Some(format!("`{line}` fails with it, and succeeds without")),
            Cost::Unknown => None,
        };
        let is_slow = more.is_some_and(|more| more.time >= SLOW);
        Finding::problem_if(is_slow || matches!(cost, Cost::Refused), title)
            .evidence(self.evidence(value))
            .evidence_if(times)
            .effect(more.map(|more| more.effect("each start of the interpreter")))
            .fix(format!("set it only for the program that needs it: `{name}=... program`"))
            .fix_cost("the code it loads, such as a debugger or an agent, is missing elsewhere")
    }

    /// Returns the words of the value that load code. Other words may contain secrets and are only counted.
    fn evidence(&self, value: &str) -> String {
        let (loading, others) = values::loading_words(value, self.loading_options);
        let others = (others > 0).then(|| units::counted(others as u64, "other word", "other words"));
        if loading.is_empty() {
            let count = value.split_whitespace().count() as u64;
            let words = units::counted(count, "word", "words");
            let which = if count == 1 { "which is not" } else { "none of which is" };
            return format!("{} has {words}, {which} known to load code", self.name);
        }
        let words: Vec<String> = loading.into_iter().chain(others).collect();
        format!("{} loads code into each process, even into small helpers: {}", self.name, words.join(", "))
    }
}
