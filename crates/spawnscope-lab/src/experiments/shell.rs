//! The cost of a needless shell: `sh -c COMMAND` in each installed shell, compared with the command alone.

use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::outcome::{Outcome, Unit, Value, key};
use crate::shell::find_program;
use crate::worker::protocol::{Program, Setting};
use crate::worker::{Mechanism, Worker};

/// Shells, with arguments that precede `-c`. `busybox` needs the name of its shell.
const SHELLS: [(&str, &[&str]); 8] = [
    ("sh", &[]),
    ("dash", &[]),
    ("bash", &[]),
    ("mksh", &[]),
    ("busybox", &["sh"]),
    ("ksh", &[]),
    ("yash", &[]),
    ("zsh", &["-f"]),
];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [key("shell", "shell", Unit::Text), key("text", "its command", Unit::Text)];
    let columns = keys.into_iter().chain(wall_and_call()).collect();
    let mut outcome = Outcome::new("A tiny command with and without a shell", columns);
    let (cases, absent) = cases(context)?;
    let measured = context.interleave(cases);
    outcome.add(&measured);
    if let Some(base) = measured.first() {
        outcome.compare("ratio", &measured, base, 0);
    }
    if !absent.is_empty() {
        outcome.note(format!("not installed: {}", absent.join(", ")));
    }
    if let Some(sh) = find_program("sh").and_then(|path| path.canonicalize().ok()) {
        outcome.note(format!("sh is {}", sh.display()));
    }
    Ok(outcome)
}

/// Returns cases for the command alone and through each shell, and the names of missing shells.
fn cases<'a>(context: &ExperimentContext<'_>) -> Result<(Vec<Case<'a>>, Vec<&'static str>), LabError> {
    let worker = Rc::new(Worker::start(&Setting::default())?);
    let command = shlex::try_quote(&super::text(&context.tiny_path()))
        .map_err(|error| LabError::Unavailable(error.to_string()))?
        .into_owned();
    let direct = [Value::from("none"), Value::from("COMMAND")];
    let mut cases = vec![launches(direct, &worker, Mechanism::VforkExec, &context.tiny())];
    let mut absent = Vec::new();
    for (name, arguments) in SHELLS {
        let Some(path) = find_program(name).map(|path| super::text(&path)) else {
            absent.push(name);
            continue;
        };
        // Some shells exec their last command instead of forking, others never do.
        for (shown, text) in [("COMMAND", command.clone()), ("COMMAND; exit $?", format!("{command}; exit $?"))] {
            let argv = [&[path.as_str()], arguments, &["-c", text.as_str()]].concat();
            let program = Program::new(argv).with_status(context.tiny().status);
            let keys = [Value::from(name), Value::from(shown)];
            cases.push(launches(keys, &worker, Mechanism::VforkExec, &program));
        }
    }
    Ok((cases, absent))
}
