//! What the child's own kind costs: no library, static, position-independent, dynamic.

use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::lab::LabError;
use crate::lab::compiler::Compiler;
use crate::lab::ground::Ground;
use crate::lab::outcome::{Outcome, Unit, Value, key};
use crate::lab::shell::find;
use crate::lab::worker::protocol::{Program, Setting};
use crate::lab::worker::{Mechanism, Worker};

const SOURCE: &str = "int main(void) { return 42; }";
const STATUS: i32 = 42;
/// Name, compiler, options.
const KINDS: [(&str, &str, &[&str]); 5] = [
    ("C, static", "cc", &["-static"]),
    ("C, static-pie", "cc", &["-static-pie"]),
    ("C, dynamic", "cc", &["-no-pie"]),
    ("C, dynamic, pie", "cc", &["-pie", "-fPIE"]),
    ("C, musl, static", "musl-gcc", &["-static"]),
];

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = [key("child", "child", Unit::Text)].into_iter().chain(wall_and_call());
    let mut outcome = Outcome::new("Launches against the kind of child, by vfork", columns.collect());
    let mut programs = vec![("no library".to_owned(), ground.tiny())];
    for (number, (kind, name, options)) in KINDS.iter().enumerate() {
        let Some(compiler) = Compiler::named(name) else {
            outcome.note(format!("{kind}: left out, since there is no {name}"));
            continue;
        };
        match compiler.compile(SOURCE, &ground.folder().join(format!("kind{number}")), options) {
            Ok(path) => programs.push(((*kind).to_owned(), Program::new([path]).ends_with(STATUS))),
            Err(error) => outcome.note(format!("{kind}: {error}")),
        }
    }
    for name in ["true", "dash", "bash"] {
        let arguments: &[&str] = if name == "true" { &[] } else { &["-c", "true"] };
        if let Some(path) = find(name) {
            let argv = [super::text(&path)]
                .into_iter()
                .chain(arguments.iter().map(|&text| text.to_owned()));
            programs.push((
                format!("{name} {}", arguments.join(" ")).trim().to_owned(),
                Program::new(argv),
            ));
        }
    }
    let worker = Rc::new(Worker::start(&Setting::default())?);
    let case = |(name, program): &(String, Program)| {
        launches([Value::from(name.as_str())], &worker, Mechanism::VforkExec, program)
    };
    let measured = ground.interleave(programs.iter().map(case).collect());
    outcome.add(&measured);
    if let Some(base) = measured.first() {
        outcome.compare("ratio", &measured, base, 0);
    }
    Ok(outcome)
}
