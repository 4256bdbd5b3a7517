//! Launches a second, by threads that launch and children that each keeps in flight.

use std::rc::Rc;

use crate::lab::LabError;
use crate::lab::ground::Ground;
use crate::lab::harness::Case;
use crate::lab::outcome::{Outcome, Scale, Unit, Value, key, measure};
use crate::lab::worker::protocol::{Request, Setting};
use crate::lab::worker::{Mechanism, Worker};

/// Threads, and children in flight of each.
const SHAPES: [(u32, u32); 9] = [
    (1, 1),
    (1, 8),
    (1, 64),
    (2, 1),
    (2, 8),
    (2, 64),
    (4, 1),
    (4, 8),
    (4, 64),
];
const QUICK_SHAPES: [(u32, u32); 4] = [(1, 1), (1, 8), (2, 1), (2, 8)];
const MECHANISMS: [Mechanism; 6] = [
    Mechanism::ForkExec,
    Mechanism::PosixSpawn,
    Mechanism::VforkExec,
    Mechanism::CloneDetached,
    Mechanism::Vspawn,
    Mechanism::VspawnDetached,
];
/// Fewer would measure the beginning and the end.
const FEWEST: u32 = 40;

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "mechanism", Unit::Text),
        key("threads", "threads", Unit::Count),
        key("in_flight", "in flight", Unit::Count),
        measure("launches_per_second", "launches a second", Unit::PerSecond),
    ];
    let mut outcome = Outcome::new("Launches a second, of a tiny static child", columns);
    outcome.draw(
        "in_flight",
        "launches_per_second",
        &["mechanism", "threads"],
        [Scale::Logarithmic, Scale::Linear],
    );
    let shapes: &[(u32, u32)] = ground.pick(&SHAPES, &QUICK_SHAPES);
    let mut cases = Vec::new();
    for mechanism in MECHANISMS {
        let worker = Rc::new(Worker::start(&Setting::default())?);
        for &(threads, in_flight) in shapes {
            let keys = [
                Value::from(mechanism.name()),
                Value::from(u64::from(threads)),
                Value::from(u64::from(in_flight)),
            ];
            let (worker, program) = (Rc::clone(&worker), ground.tiny());
            cases.push(Case::new(keys, move |count| {
                worker.ask(&Request::Throughput {
                    mechanism,
                    program: program.clone(),
                    threads,
                    in_flight,
                    count: count.max(FEWEST).max(2 * threads * in_flight),
                })
            }));
        }
    }
    let measured = ground.interleave(cases);
    outcome.add(&measured);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    outcome.note(format!("{cpus} CPUs may be used; in flight is of each thread"));
    Ok(outcome)
}
