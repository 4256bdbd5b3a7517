//! Compares all launch mechanisms, with a small parent and a tiny static child.

use super::{columns, launches};
use crate::LabError;
use crate::context::ExperimentContext;
use crate::measurements::{Measurements, Value};
use crate::outcome::{Outcome, Unit, key, measure};
use crate::worker::Worker;
use crate::worker::protocol::{CPU, Mechanism, SYSTEM, Setting};

/// The mechanisms that are compared. Left out are those that differ from these only in how they
/// close descriptors.
pub(super) const COMPARED: [Mechanism; 14] = [
    Mechanism::ForkExit,
    Mechanism::VforkExec,
    Mechanism::Clone,
    Mechanism::Clone3,
    Mechanism::CloneDetached,
    Mechanism::Vspawn,
    Mechanism::VspawnPrepared,
    Mechanism::VspawnDetached,
    Mechanism::VspawnPipe,
    Mechanism::PosixSpawn,
    Mechanism::PosixSpawnPipe,
    Mechanism::ForkExec,
    Mechanism::System,
    Mechanism::Popen,
];
const BASE: Mechanism = Mechanism::VforkExec;

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let mut columns = columns([key("mechanism", "mechanism", Unit::Text)]);
    columns.extend(
        [("cpu_ns", "cpu"), ("user_ns", "user"), ("system_ns", "system")]
            .map(|(name, title)| measure(name, title, Unit::Nanos)),
    );
    let mut outcome = Outcome::new("Launch mechanisms: a small parent, a tiny static child", columns);
    let mut cases = Vec::new();
    for mechanism in COMPARED {
        // Each mechanism has a worker of its own. After a fork, the parent pays for each page it
        // writes, which would slow down other mechanisms.
        let worker = Worker::start(&Setting::default())?;
        let program = context.tiny_for(mechanism);
        let case = launches([Value::from(mechanism.name())], &worker, mechanism, &program);
        cases.push(case.quiet_columns(CPU + 1));
    }
    let measured = context.interleave(cases);
    outcome.add(&measured);
    let base = measured.iter().zip(COMPARED).find(|(_, mechanism)| *mechanism == BASE);
    let mut cpu_times = outcome.rows.iter().filter_map(|row| row.get("cpu_ns").estimate());
    // The kernel may count CPU time in whole ticks. Most launches then appear to take none.
    if cpu_times.any(|estimate| estimate.median == 0.0) {
        clear_columns(&mut outcome, &["cpu_ns", "user_ns", "system_ns"]);
        outcome.note("CPU time is unknown: the kernel counts it in ticks longer than a launch");
    } else {
        if is_split_by_ticks(&measured) {
            clear_columns(&mut outcome, &["user_ns", "system_ns"]);
            outcome.note(
                "user and system are unknown: the kernel splits CPU time by clock ticks, which counts all of a short process as \
                 user time; cpu, their sum, is exact",
            );
        }
        if let Some((base, _)) = base {
            outcome.compare("cpu ratio", &measured, base, CPU);
        }
    }
    outcome.note("call: time inside the launching call");
    outcome.note("fork is measured with a small parent; for large ones see parent-size");
    Ok(outcome)
}

/// Returns whether the kernel splits CPU time by clock ticks. Every launch makes system calls, so a
/// round can only lack system time if no tick occurred during one.
fn is_split_by_ticks(measured: &[Measurements]) -> bool {
    let mut rounds = measured.iter().flat_map(|case| &case.rounds);
    rounds.any(|round| {
        let [cpu, system] = [CPU, SYSTEM].map(|column| round.get(column));
        cpu.is_some_and(|cpu| *cpu > 0.0) && system == Some(&0.0)
    })
}

fn clear_columns(outcome: &mut Outcome, columns: &[&str]) {
    let values = outcome.rows.iter_mut().flat_map(|row| row.0.iter_mut());
    let cleared = values.filter(|(name, _)| columns.contains(&name.as_str()));
    cleared.for_each(|(_, value)| *value = Value::Unknown);
}
