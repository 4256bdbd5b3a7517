//! What a child costs the parent: the time to write to the parent's memory before, during and after the child's life.

use std::rc::Rc;

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::harness::Measurements;
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::shell::find_program;
use crate::worker::protocol::{Companion, Pages, Program, Request, Setting};
use crate::worker::{Mechanism, Worker};

/// The size of the parent's memory that is written to.
const BYTES: u64 = 100_000_000;
const QUICK_BYTES: u64 = 16_000_000;
/// The number of measured columns: before, during and after.
const MEASURED_COLUMNS: usize = 3;
/// How many copies of the memory exist at the same time: a parent with small pages, one with huge pages, and a child's copy of one of them.
const CONCURRENT_COPIES: u64 = 3;

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "child", Unit::Text),
        key("memory", "memory", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
        measure("before_ns", "before", Unit::Nanos),
        measure("during_ns", "during", Unit::Nanos),
        measure("after_ns", "after", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("", columns);
    let bytes = context.size_for_each_parent(context.pick(BYTES, QUICK_BYTES), CONCURRENT_COPIES, &mut outcome);
    outcome.title = format!(
        "Writing to each page of {} in the parent, before, during and after a child's life",
        spawnscope_data::units::bytes(bytes)
    );
    outcome.draw_bars(&["before_ns", "during_ns", "after_ns"]);
    let program = find_program("cat").map(|cat| Program::new([cat]));
    if program.is_none() {
        outcome.note("cat not found: children that exec are skipped");
    }
    let (cases, failed) = cases(bytes, program.as_ref());
    let mut measured = context.interleave(cases);
    measured.extend(failed);
    outcome.add(&measured);
    outcome.note_indistinguishable_columns("before_ns", &["during_ns", "after_ns"]);
    outcome.note("each round uses new memory, because writes after a fork split huge pages");
    outcome.note("after: a child has ended, and nothing was written during its life");
    Ok(outcome)
}

/// Returns the cases for each kind of memory, and the cases whose parent could not be started.
fn cases<'a>(bytes: u64, program: Option<&Program>) -> (Vec<Case<'a>>, Vec<Measurements>) {
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (kind, pages) in [("small pages", Pages::Small), ("huge pages", Pages::Huge)] {
        let setting = Setting { memory_bytes: bytes, pages, ..Setting::default() };
        match Worker::start(&setting).map(Rc::new) {
            Ok(worker) => cases.extend(mechanism_cases(&worker, (kind, bytes), program)),
            Err(error) => failed.push(Measurements::failed(vec![Value::from(kind), Value::from(bytes)], error)),
        }
    }
    (cases, failed)
}

fn mechanism_cases<'a>(worker: &Rc<Worker>, (kind, bytes): (&str, u64), program: Option<&Program>) -> Vec<Case<'a>> {
    let mut children = vec![("fork, no exec", Companion::Copy)];
    if let Some(program) = program {
        for (name, mechanism) in [
            ("fork + exec", Mechanism::ForkExec),
            ("posix_spawn", Mechanism::PosixSpawn),
            ("vspawn", Mechanism::Vspawn),
        ] {
            children.push((name, Companion::Program { mechanism, program: program.clone() }));
        }
    }
    let cases = children.into_iter().map(|(name, child)| {
        let worker = Rc::clone(worker);
        let keys = [Value::from(name), Value::from(kind), Value::from(bytes)];
        let case = Case::with_fixed_work(keys, move || worker.request(&Request::Rewrite { child: child.clone() }));
        case.quiet_columns(MEASURED_COLUMNS)
    });
    cases.collect()
}
