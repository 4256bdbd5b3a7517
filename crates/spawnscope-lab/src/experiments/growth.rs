//! Measures launches of a parent that grows by a step before each launch. Repeats this sweep with
//! new parents, so that disturbances of the machine do not look like a slope.

use std::time::Instant;

use crate::LabError;
use crate::context::ExperimentContext;
use crate::machine::AvailableMemory;
use crate::measurements::{MIN_ROUNDS, Measurements};
use crate::outcome::{Outcome, Scale, Unit, key, measure};
use crate::worker::Worker;
use crate::worker::protocol::{Mechanism, Request, Setting, WALL};

const STEP_BYTES: u64 = 1 << 20;
const STEPS: u64 = 256;
const QUICK_STEPS: u64 = 24;
const MAX_SWEEPS: usize = 100;
const MECHANISMS: [Mechanism; 2] = [Mechanism::ForkExit, Mechanism::Vspawn];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let columns = vec![
        key("mechanism", "mechanism", Unit::Text),
        key("parent_bytes", "growth", Unit::Bytes),
        measure("wall_ns", "wall", Unit::Nanos),
    ];
    let mut outcome = Outcome::new("A parent that grows by 1 MiB between launches", columns);
    outcome.draw("parent_bytes", "wall_ns", &["mechanism"], Scale::Linear);
    let wanted = STEP_BYTES * context.pick(STEPS, QUICK_STEPS);
    let steps = growth_that_fits(wanted.min(context.max_memory), &mut outcome) / STEP_BYTES;
    let mut measured: Vec<Measurements> =
        (0..=steps).flat_map(|step| MECHANISMS.map(|mechanism| empty_case(mechanism, step))).collect();
    let began = Instant::now();
    for sweep in 0..MAX_SWEEPS {
        let is_over = began.elapsed() >= context.effort.time && sweep >= MIN_ROUNDS;
        if is_over || !run_sweep(context, sweep, &mut measured)? {
            break;
        }
    }
    outcome.add(&measured);
    outcome.fit_sweeps(1e6, "MB", &measured);
    outcome.note("the slope is the median over sweeps, with its interval over sweeps");
    outcome.note("each value is the median over several parents, each of which grew from its initial size");
    Ok(outcome)
}

/// Returns how much each parent can grow: `wanted`, or less if memory is short. In that case, adds
/// a note.
fn growth_that_fits(wanted: u64, outcome: &mut Outcome) -> u64 {
    let available = AvailableMemory::now();
    let size = wanted.min(available.per_process).min(available.total / MECHANISMS.len() as u64);
    if size < wanted {
        let [size, wanted] = [size, wanted].map(spawnscope_data::units::bytes);
        outcome.note(format!("parents of {size} instead of {wanted}: not enough memory"));
    }
    size
}

fn empty_case(mechanism: Mechanism, step: u64) -> Measurements {
    let keys = vec![mechanism.name().into(), (step * STEP_BYTES).into()];
    Measurements { keys, launches: Some(1), ..Measurements::default() }
}

/// Makes one sweep over all steps. Each mechanism has a parent of its own, so that none pays for
/// the forks of another. Returns false if the run must stop.
fn run_sweep(context: &ExperimentContext<'_>, sweep: usize, measured: &mut [Measurements]) -> Result<bool, LabError> {
    let mut parents = Vec::new();
    for mechanism in MECHANISMS {
        let parent = Worker::start(&Setting::default())?;
        // An uncounted launch, because the first one finds cold caches.
        parent.request(&single_launch(context, mechanism))?;
        parents.push((mechanism, parent));
    }
    let count = measured.len() / MECHANISMS.len();
    for (step, cases) in measured.chunks_mut(MECHANISMS.len()).enumerate() {
        let share = (sweep * count + step) as f64 / (MIN_ROUNDS * count) as f64;
        if !context.report_progress("", share.min(1.0)) {
            return Ok(false);
        }
        let mut order: Vec<_> = parents.iter().zip(cases).collect();
        // The second mechanism finds the caches warmed by the first, so the order alternates.
        if (sweep + step) % 2 == 1 {
            order.reverse();
        }
        for ((mechanism, parent), case) in order {
            if step > 0 {
                parent.request(&Request::Grow { bytes: STEP_BYTES })?;
            }
            case.rounds.push(vec![parent.request(&single_launch(context, *mechanism))?[WALL]]);
        }
    }
    Ok(true)
}

fn single_launch(context: &ExperimentContext<'_>, mechanism: Mechanism) -> Request {
    Request::Launch { mechanism, program: context.tiny(), count: 1 }
}
