//! The experiments, one file each, and the list of them.

mod child_kind;
mod first_launch;
mod growth;
mod loader;
mod mechanisms;
mod open_fds;
mod parent_size;
mod runtimes;

use std::rc::Rc;

use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::measurements::Value;
use crate::outcome::{Column, Outcome, Unit, measure};
use crate::worker::Worker;
use crate::worker::protocol::{Mechanism, Program, Request};

pub struct Experiment {
    pub name: &'static str,
    pub about: &'static str,
    run: fn(&ExperimentContext<'_>) -> Result<Outcome, LabError>,
}

impl Experiment {
    /// Runs the experiment. If it fails, the outcome has no rows, and a note with the reason.
    pub fn run(&self, context: &ExperimentContext<'_>) -> Outcome {
        let mut outcome = (self.run)(context).unwrap_or_else(|error| {
            let mut outcome = Outcome::new(self.about, Vec::new());
            outcome.note(format!("not measured: {error}"));
            outcome
        });
        self.name.clone_into(&mut outcome.name);
        outcome
    }
}

pub const ALL: &[Experiment] = &[
    Experiment { name: "mechanisms", about: "all launch mechanisms, from a small parent", run: mechanisms::run },
    Experiment { name: "parent-size", about: "all launch mechanisms, by the parent's memory", run: parent_size::run },
    Experiment { name: "runtimes", about: "installed runtimes: how they create processes", run: runtimes::run },
    Experiment { name: "growth", about: "a parent that grows between launches", run: growth::run },
    Experiment { name: "open-fds", about: "launches, by the number of the parent's open files", run: open_fds::run },
    Experiment { name: "child-kind", about: "static, position-independent and dynamic children", run: child_kind::run },
    Experiment { name: "loader", about: "the dynamic loader's time for libraries and search paths", run: loader::run },
    Experiment {
        name: "first-launch",
        about: "the first launch of a file against the second, one alone and many at once",
        run: first_launch::run,
    },
];

/// Returns keys, and the columns of launch times from a worker: the wall, and the time inside the
/// call.
fn columns(keys: impl IntoIterator<Item = Column>) -> Vec<Column> {
    let times = [measure("wall_ns", "wall", Unit::Nanos), measure("call_ns", "call", Unit::Nanos)];
    keys.into_iter().chain(times).collect()
}

/// Returns a case that makes launches. The wall and the time inside the call must be within the
/// wanted noise.
fn launches<'a>(
    keys: impl IntoIterator<Item = Value>,
    worker: &Rc<Worker>,
    mechanism: Mechanism,
    program: &Program,
) -> Case<'a> {
    let (worker, program) = (Rc::clone(worker), program.clone());
    Case::new(keys, move |count| worker.request(&Request::Launch { mechanism, program: program.clone(), count }))
        .quiet_columns(2)
}
