//! Launch cost by the number of the parent's threads, and how long a launch stalls another thread that needs the mmap lock.

use std::rc::Rc;

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::harness::Measurements;
use crate::outcome::{Outcome, Unit, Value, key, measure};
use crate::worker::protocol::{Program, Request, STALL, Setting, WALL};
use crate::worker::{Mechanism, Worker};

const COUNTS: [u64; 4] = [0, 10, 100, 1000];
const QUICK_COUNTS: [u64; 2] = [0, 10];
const LARGE_BYTES: u64 = 250_000_000;
const QUICK_LARGE_BYTES: u64 = 16_000_000;
/// The number of measured columns: wall and stall.
const MEASURED_COLUMNS: usize = 2;
/// The minimum number of launches in each batch with the neighbour, the thread of `worker/stall.rs`.
const MIN_STALLS: u32 = 5;
/// Baselines without a launch: pauses as long as launches by these mechanisms.
const PAUSES: [(&str, Mechanism); 2] =
    [("nothing, fork's time", Mechanism::ForkExec), ("nothing, vfork's time", Mechanism::VforkExec)];
const MECHANISMS: [Mechanism; 4] =
    [Mechanism::ForkExec, Mechanism::VforkExec, Mechanism::PosixSpawn, Mechanism::Vspawn];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "mechanism", Unit::Text),
        key("threads", "threads", Unit::Count),
        key("parent_bytes", "parent", Unit::Bytes),
        measure("wall_ns", "wall", Unit::Nanos),
        measure("stall_ns", "stall", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("Launches by the parent's threads", columns);
    outcome.draw_bars(&["wall_ns", "stall_ns"]);
    let counts: &[u64] = context.pick(&COUNTS, &QUICK_COUNTS);
    let large = context.size_for_each_parent(context.pick(LARGE_BYTES, QUICK_LARGE_BYTES), 1, &mut outcome);
    let large_parent = (large > 0).then_some((0, large));
    let settings = counts.iter().map(|threads| (*threads, 0)).chain(large_parent);
    let (mut cases, mut failed) = (Vec::new(), Vec::new());
    for (threads, memory_bytes) in settings {
        let setting = Setting { threads, memory_bytes, ..Setting::default() };
        match Worker::start(&setting) {
            Ok(worker) => {
                let worker = Rc::new(worker);
                for mechanism in MECHANISMS {
                    cases.push(stall_case(keys(mechanism.name(), setting), &worker, mechanism, context.tiny()));
                }
                for (name, mechanism) in PAUSES {
                    cases.push(baseline_case(keys(name, setting), &worker, mechanism, context.tiny()));
                }
            }
            Err(error) => failed.push(Measurements::failed(keys("every mechanism", setting), error)),
        }
    }
    let mut measured = context.interleave(cases);
    measured.extend(failed);
    outcome.add(&measured);
    outcome.note_indistinguishable_rows("wall_ns");
    outcome.note(
        "stall: the longest pause of another thread that maps and unmaps a page in a loop; waits for a CPU count too",
    );
    outcome.note(
        "nothing: no launch, but a pause as long as fork + exec or vfork + exec; its stall is a wait for a CPU, and only the \
         excess over it is caused by launches",
    );
    Ok(outcome)
}

fn keys(name: &str, setting: Setting) -> Vec<Value> {
    vec![Value::from(name), Value::from(setting.threads), Value::from(setting.memory_bytes)]
}

/// Returns a case of launches alone for the wall, and launches with the neighbour for the stall.
fn stall_case<'a>(keys: Vec<Value>, worker: &Rc<Worker>, mechanism: Mechanism, program: Program) -> Case<'a> {
    let worker = Rc::clone(worker);
    let case = Case::new(keys, move |count| {
        let alone = worker.request(&Request::Launch { mechanism, program: program.clone(), count })?;
        let with_neighbour = worker.request(&Request::Stall {
            mechanism,
            program: program.clone(),
            // The maximum over a single launch depends too much on chance.
            count: count.max(MIN_STALLS),
        })?;
        Ok(vec![alone[WALL], with_neighbour[STALL]])
    });
    case.quiet_columns(MEASURED_COLUMNS)
}

/// Returns a case of pauses with the neighbour. Each pause is as long as a launch currently takes.
fn baseline_case<'a>(keys: Vec<Value>, worker: &Rc<Worker>, mechanism: Mechanism, program: Program) -> Case<'a> {
    let worker = Rc::clone(worker);
    let case = Case::new(keys, move |count| {
        let launched = worker.request(&Request::Launch { mechanism, program: program.clone(), count })?;
        let with_neighbour =
            worker.request(&Request::Idle { pause_ns: launched[WALL], count: count.max(MIN_STALLS) })?;
        Ok(vec![with_neighbour[WALL], with_neighbour[STALL]])
    });
    case.quiet_columns(MEASURED_COLUMNS)
}
