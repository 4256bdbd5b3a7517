//! What a fork makes the parent pay afterwards: rewriting its memory before, during and after the child's life.

use std::rc::Rc;

use crate::lab::LabError;
use crate::lab::ground::Ground;
use crate::lab::harness::{Case, Measured};
use crate::lab::outcome::{Outcome, Unit, Value, key, measure};
use crate::lab::shell::find;
use crate::lab::worker::protocol::{Pages, Program, Request, Setting};
use crate::lab::worker::{Mechanism, Worker};

const BYTES: u64 = 100_000_000;
const QUICK_BYTES: u64 = 16_000_000;

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "child", Unit::Text),
        key("memory", "memory", Unit::Text),
        measure("before_ns", "before", Unit::Nanos),
        measure("during_ns", "during", Unit::Nanos),
        measure("after_ns", "after", Unit::Nanos),
    ];
    let bytes = ground.pick(BYTES, QUICK_BYTES).min(ground.most_memory);
    let title = format!(
        "Writing to each page of {} in the parent, before, during and after a child's life",
        crate::units::bytes(bytes)
    );
    let mut outcome = Outcome::new(&title, columns);
    let program = find("cat").map(|cat| Program::new([cat]));
    if program.is_none() {
        outcome.note("without cat, children that exec are left out");
    }
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (kind, pages) in [("small pages", Pages::Small), ("huge pages", Pages::Huge)] {
        let setting = Setting {
            memory_bytes: bytes,
            pages,
            ..Setting::default()
        };
        let worker = match Worker::start(&setting) {
            Ok(worker) => Rc::new(worker),
            Err(error) => {
                failed.push(Measured::failed(vec![Value::from(kind)], error));
                continue;
            }
        };
        cases.extend(ways(&worker, kind, program.as_ref()));
    }
    let mut measured = ground.interleave(cases);
    measured.extend(failed);
    outcome.add(&measured);
    outcome.note("each round has memory of its own: a fork splits huge pages that are then written to");
    Ok(outcome)
}

fn ways<'a>(worker: &Rc<Worker>, kind: &str, program: Option<&Program>) -> Vec<Case<'a>> {
    // Without a program to execute, the child is a copy that lives: a snapshot.
    let ways = [
        ("fork, no exec", Mechanism::ForkExit, Some(Program::new(["snapshot"]))),
        ("fork + exec", Mechanism::ForkExec, program.cloned()),
        ("posix_spawn", Mechanism::PosixSpawn, program.cloned()),
        ("vspawn", Mechanism::Vspawn, program.cloned()),
    ];
    let case = |(name, mechanism, program): (&str, Mechanism, Option<Program>)| {
        let (worker, program) = (Rc::clone(worker), program?);
        Some(Case::new([Value::from(name), Value::from(kind)], move |_| {
            let program = program.clone();
            worker.ask(&Request::Rewrite { mechanism, program })
        }))
    };
    ways.into_iter().filter_map(case).collect()
}
