//! What a child costs the parent: the time to write to its memory before, during and after the child's life.

use std::rc::Rc;

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::harness::Measured;
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::shell::find;
use crate::worker::protocol::{Companion, Pages, Program, Request, Setting};
use crate::worker::{Mechanism, Worker};

const BYTES: u64 = 100_000_000;
const QUICK_BYTES: u64 = 16_000_000;
/// The measured columns: before, during and after.
const MEASURES: usize = 3;
/// One with small pages, one with huge ones, and the copy that a child keeps of one of them.
const PARENTS_AND_COPY: u64 = 3;

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
    let bytes = context.size_of_each(context.pick(BYTES, QUICK_BYTES), PARENTS_AND_COPY, &mut outcome);
    outcome.title = format!(
        "Writing to each page of {} in the parent, before, during and after a child's life",
        spawnscope_data::units::bytes(bytes)
    );
    outcome.draw_bars(&["before_ns", "during_ns", "after_ns"]);
    let program = find("cat").map(|cat| Program::new([cat]));
    if program.is_none() {
        outcome.note("cat not found: children that exec are skipped");
    }
    let (cases, failed) = cases(bytes, program.as_ref());
    let mut measured = context.interleave(cases);
    measured.extend(failed);
    outcome.add(&measured);
    outcome.note_equal_columns("before_ns", &["during_ns", "after_ns"]);
    outcome.note("each round uses new memory, because writes after a fork split huge pages");
    outcome.note("after: a child has ended, and nothing was written during its life");
    Ok(outcome)
}

/// The cases by kind of memory, and those whose parent could not be started.
fn cases<'a>(bytes: u64, program: Option<&Program>) -> (Vec<Case<'a>>, Vec<Measured>) {
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (kind, pages) in [("small pages", Pages::Small), ("huge pages", Pages::Huge)] {
        let setting = Setting {
            memory_bytes: bytes,
            pages,
            ..Setting::default()
        };
        match Worker::start(&setting).map(Rc::new) {
            Ok(worker) => cases.extend(ways(&worker, (kind, bytes), program)),
            Err(error) => failed.push(Measured::failed(vec![Value::from(kind), Value::from(bytes)], error)),
        }
    }
    (cases, failed)
}

fn ways<'a>(worker: &Rc<Worker>, (kind, bytes): (&str, u64), program: Option<&Program>) -> Vec<Case<'a>> {
    let executing = |mechanism| {
        program.map(|program| Companion::Program {
            mechanism,
            program: program.clone(),
        })
    };
    let ways = [
        ("fork, no exec", Some(Companion::Copy)),
        ("fork + exec", executing(Mechanism::ForkExec)),
        ("posix_spawn", executing(Mechanism::PosixSpawn)),
        ("vspawn", executing(Mechanism::Vspawn)),
    ];
    let case = |(name, child): (&str, Option<Companion>)| {
        let (worker, child) = (Rc::clone(worker), child?);
        let keys = [Value::from(name), Value::from(kind), Value::from(bytes)];
        let run = move || worker.ask(&Request::Rewrite { child: child.clone() });
        Some(Case::whole(keys, run).promises(MEASURES))
    };
    ways.into_iter().filter_map(case).collect()
}
