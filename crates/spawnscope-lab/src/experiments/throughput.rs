//! Launches per second, by the number of launching threads and of children that each keeps in flight.

use std::rc::Rc;

use super::mechanisms;
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::outcome::{Outcome, Scale, Unit, Value, key, measure};
use crate::worker::protocol::{Request, Setting};
use crate::worker::{Mechanism, Worker};

/// Numbers of threads, and of children in flight per thread.
const CONCURRENCY_LEVELS: [(u32, u32); 6] = [(1, 1), (1, 8), (1, 64), (4, 1), (4, 8), (4, 64)];
const QUICK_CONCURRENCY_LEVELS: [(u32, u32); 4] = [(1, 1), (1, 8), (2, 1), (2, 8)];
/// The minimum number of launches per thread.
const MIN_LAUNCHES: u32 = 40;
/// How many times all children in flight are replaced, at least. With more replacements, there would be fewer rounds and wider intervals.
const MIN_REPLACEMENTS: u32 = 3;
/// The maximum number of children in flight for mechanisms with a shell. They are ten times slower; with more children, all cases would get
/// fewer rounds.
const MAX_SHELLS_IN_FLIGHT: u32 = 8;

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "mechanism", Unit::Text),
        key("threads", "threads", Unit::Count),
        key("in_flight", "in flight", Unit::Count),
        measure("launches_per_second", "launches per second", Unit::PerSecond),
    ];
    let mut outcome = Outcome::new("Launches per second of a tiny static child", columns);
    outcome.draw("in_flight", "launches_per_second", &["mechanism", "threads"], [Scale::Logarithmic, Scale::Linear]);
    let levels: &[(u32, u32)] = context.pick(&CONCURRENCY_LEVELS, &QUICK_CONCURRENCY_LEVELS);
    let mut cases = Vec::new();
    for mechanism in mechanisms::COMPARED {
        let worker = Rc::new(Worker::start(&Setting::default())?);
        let possible = levels.iter().filter(|(_, in_flight)| *in_flight <= max_in_flight(mechanism));
        cases.extend(possible.map(|level| case(context, &worker, mechanism, *level)));
    }
    let measured = context.interleave(cases);
    outcome.add(&measured);
    outcome.note_flat_series();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    outcome.note(format!(
        "{} available; in flight: per thread",
        spawnscope_data::units::counted(cpus as u64, "CPU is", "CPUs are")
    ));
    outcome.note(
        "counting starts when all children are in flight; system() waits for its child, so it never has more than one",
    );
    if levels.iter().any(|(_, in_flight)| *in_flight > MAX_SHELLS_IN_FLIGHT) {
        outcome.note(format!(
            "popen: at most {MAX_SHELLS_IN_FLIGHT} in flight, since each is a shell that starts another process, and more of them would slow down \
             the other cases"
        ));
    }
    Ok(outcome)
}

fn max_in_flight(mechanism: Mechanism) -> u32 {
    match mechanism {
        Mechanism::System => 1,
        Mechanism::Popen => MAX_SHELLS_IN_FLIGHT,
        _ => u32::MAX,
    }
}

fn case<'a>(
    context: &ExperimentContext<'_>,
    worker: &Rc<Worker>,
    mechanism: Mechanism,
    (threads, in_flight): (u32, u32),
) -> Case<'a> {
    let keys = [Value::from(mechanism.name()), Value::from(u64::from(threads)), Value::from(u64::from(in_flight))];
    let program = context.tiny_for(mechanism);
    let worker = Rc::clone(worker);
    Case::with_fixed_work(keys, move || {
        worker.request(&Request::Throughput {
            mechanism,
            program: program.clone(),
            threads,
            in_flight,
            count: threads * MIN_LAUNCHES.max(MIN_REPLACEMENTS * in_flight),
        })
    })
}
