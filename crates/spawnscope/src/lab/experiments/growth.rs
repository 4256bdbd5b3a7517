//! Story 3: a parent that grows by 1 MiB between forks, and the mean time of these.

use std::time::Instant;

use crate::lab::LabError;
use crate::lab::ground::Ground;
use crate::lab::harness::Estimate;
use crate::lab::outcome::{Outcome, Row, Scale, Unit, Value, key, measure};
use crate::lab::worker::protocol::{Request, Setting};
use crate::lab::worker::{Mechanism, Worker};

const STEP_BYTES: u64 = 1 << 20;
const STEPS: u64 = 256;
const QUICK_STEPS: u64 = 24;
/// Forks at each size, in as many rounds as an interval needs.
const ROUNDS: usize = 6;
const FORKS: u32 = 2;
const MECHANISMS: [Mechanism; 2] = [Mechanism::ForkExit, Mechanism::Vspawn];

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "mechanism", Unit::Text),
        key("parent_bytes", "growth", Unit::Bytes),
        measure("wall_ns", "wall", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("A parent that grows by 1 MiB between launches", columns);
    outcome.draw(
        "parent_bytes",
        "wall_ns",
        &["mechanism"],
        [Scale::Linear, Scale::Linear],
    );
    let worker = Worker::start(&Setting::default())?;
    let program = ground.tiny();
    let steps = ground.pick(STEPS, QUICK_STEPS).min(ground.most_memory / STEP_BYTES);
    let began = Instant::now();
    for step in 0..=steps {
        // Twice the time, since less than all of the curve says less.
        if !ground.goes_on("", step as f64 / steps as f64)
            || began.elapsed() > 2 * ground.effort.time && step > QUICK_STEPS
        {
            outcome.note(format!("ended after {step} of {steps} steps"));
            break;
        }
        if step > 0 {
            worker.ask(&Request::Grow { bytes: STEP_BYTES })?;
        }
        for mechanism in MECHANISMS {
            let mut walls = Vec::new();
            for _ in 0..ROUNDS {
                let request = Request::Launch {
                    mechanism,
                    program: program.clone(),
                    count: FORKS,
                };
                walls.extend(worker.ask(&request)?.first());
            }
            outcome.rows.push(Row(vec![
                ("mechanism".to_owned(), mechanism.name().into()),
                ("parent_bytes".to_owned(), (step * STEP_BYTES).into()),
                ("wall_ns".to_owned(), Value::from(Estimate::of(&walls))),
            ]));
        }
    }
    outcome.fit("parent_bytes", 1e6, "MB");
    Ok(outcome)
}
