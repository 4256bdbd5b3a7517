//! The launch cost by kind of child: without a library, static, position-independent, dynamic.

use super::{columns, launches};
use crate::LabError;
use crate::compiler::{Compiler, PROGRAM, STATUS};
use crate::context::ExperimentContext;
use crate::measurements::Value;
use crate::outcome::{Outcome, Unit, key};
use crate::runtimes::find_program;
use crate::worker::protocol::{Mechanism, Program, Setting};
use crate::worker::{Worker, removal_note, without_loader_variables};

/// The name, the compiler and the compiler options of each kind.
const KINDS: [(&str, &str, &[&str]); 5] = [
    ("C, static", "cc", &["-static"]),
    ("C, static-pie", "cc", &["-static-pie"]),
    ("C, dynamic", "cc", &["-no-pie"]),
    ("C, dynamic, pie", "cc", &["-pie", "-fPIE"]),
    ("C, musl, static", "musl-gcc", &["-static"]),
];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = columns([key("child", "child", Unit::Text)]);
    let mut outcome = Outcome::new("Launches by kind of child, with vfork", columns);
    let mut programs = vec![("no library".to_owned(), context.tiny())];
    for (number, (kind, name, options)) in KINDS.iter().enumerate() {
        let Some(compiler) = Compiler::named(name) else {
            outcome.note(format!("{kind}: skipped, no {name} found"));
            continue;
        };
        match compiler.compile(PROGRAM, &context.directory().join(format!("kind{number}")), options) {
            Ok(path) => programs.push(((*kind).to_owned(), Program::new([path]).with_status(STATUS))),
            Err(error) => outcome.note(format!("{kind}: {error}")),
        }
    }
    programs.extend(installed_programs(&mut outcome));
    // Variables of the loader could add or replace libraries, and thus change the kind of child.
    let environment = without_loader_variables();
    removal_note(&environment).into_iter().for_each(|note| outcome.note(note));
    let worker = Worker::start_with(&Setting::default(), environment)?;
    let measured = context.interleave(
        programs
            .iter()
            .map(|(name, program)| launches([Value::from(name.as_str())], &worker, Mechanism::VforkExec, program))
            .collect(),
    );
    outcome.add(&measured);
    if let Some(base) = measured.first() {
        outcome.compare("ratio", &measured, base, 0);
    }
    Ok(outcome)
}

/// Returns the installed programs with their names, and adds a note on missing ones.
fn installed_programs(outcome: &mut Outcome) -> Vec<(String, Program)> {
    let (mut found, mut absent) = (Vec::new(), Vec::new());
    for (name, arguments) in [("true", [].as_slice()), ("dash", &["-c", "true"]), ("bash", &["-c", "true"])] {
        let Some(path) = find_program(name) else {
            absent.push(name);
            continue;
        };
        let argv = [path].into_iter().chain(arguments.iter().map(|text: &&str| text.into()));
        let label = format!("{name} {}", arguments.join(" "));
        found.push((label.trim().to_owned(), Program::new(argv)));
    }
    if !absent.is_empty() {
        outcome.note(format!("not installed: {}", absent.join(", ")));
    }
    found
}
