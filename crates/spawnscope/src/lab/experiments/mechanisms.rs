//! Story 5's table: every way to make a process, from a small parent, with a tiny static child.

use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::lab::LabError;
use crate::lab::ground::Ground;
use crate::lab::outcome::{Column, Outcome, Unit, Value, key, measure};
use crate::lab::worker::protocol::{CPU, Setting};
use crate::lab::worker::{Mechanism, Worker};

const ALL: [Mechanism; 14] = [
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
/// What CPU time is compared with.
const BASE: Mechanism = Mechanism::VforkExec;

/// CPU time against vfork + exec, as popen_noshell's author published it.
fn published(mechanism: Mechanism) -> Option<f64> {
    match mechanism {
        Mechanism::VforkExec => Some(1.0),
        Mechanism::PosixSpawn => Some(1.27),
        Mechanism::PosixSpawnPipe => Some(1.36),
        Mechanism::ForkExec => Some(9.36),
        Mechanism::System => Some(12.8),
        Mechanism::Popen => Some(13.04),
        _ => None,
    }
}

pub fn run(ground: &Ground<'_>) -> Result<Outcome, LabError> {
    let columns = [key("mechanism", "mechanism", Unit::Text)]
        .into_iter()
        .chain(wall_and_call())
        .chain([
            measure("cpu_ns", "cpu", Unit::Nanos),
            measure("user_ns", "user", Unit::Nanos),
            measure("system_ns", "system", Unit::Nanos),
        ]);
    let mut outcome = Outcome::new(
        "Ways to make a process: a small parent, a tiny static child",
        columns.collect(),
    );
    let mut cases = Vec::new();
    for mechanism in ALL {
        // A process each: after a fork the parent pays for every page that it writes, and others would be charged with it.
        let worker = Rc::new(Worker::start(&Setting::default())?);
        let program = if mechanism.reads() {
            ground.tiny_speaker()
        } else {
            ground.tiny()
        };
        cases.push(launches([Value::from(mechanism.name())], &worker, mechanism, &program));
    }
    let measured = ground.interleave(cases);
    outcome.add(&measured);
    if let Some(base) = measured.iter().zip(ALL).find(|(_, mechanism)| *mechanism == BASE) {
        outcome.compare("cpu ratio", &measured, base.0, CPU);
    }
    outcome
        .columns
        .push(measure("published_ratio", "published", Unit::Ratio));
    for row in &mut outcome.rows {
        let mechanism = ALL.into_iter().find(|one| Value::from(one.name()) == row.0[0].1);
        let ratio = mechanism.and_then(published).map_or(Value::Unknown, Value::Number);
        row.0.push(("published_ratio".to_owned(), ratio));
    }
    // The narrower a terminal, the fewer columns it shows.
    let (last, first) = outcome
        .columns
        .drain(..)
        .partition(|column| ["user_ns", "system_ns"].contains(&column.name.as_str()));
    outcome.columns = first;
    outcome.columns.extend::<Vec<Column>>(last);
    outcome.note("cpu ratio: against vfork + exec. call: time inside the starting call");
    outcome
        .note("user and system: where the kernel counts by clock ticks, it takes all of a short process for user time");
    outcome.note("published: popen_noshell's table of CPU time, whose own row, with pipes, is 1.08; the machine and the parent's memory differ");
    outcome.note("fork's cost is that of a small parent here: parent-size has large ones");
    Ok(outcome)
}
