//! The experiments, one file each, and the list of them.

mod child_kind;
mod first_launch;
mod growth;
mod loader;
mod mechanisms;
mod open_fds;
mod parent_size;

use std::rc::Rc;

use super::LabError;
use super::batches::Case;
use super::context::ExperimentContext;
use super::outcome::{Column, Outcome, Unit, Value, measure};
use super::worker::protocol::{Program, Request};
use super::worker::{Mechanism, Worker};

pub struct Experiment {
    pub name: &'static str,
    /// What the experiment measures, in a few words.
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

const fn experiment(
    name: &'static str,
    about: &'static str,
    run: fn(&ExperimentContext<'_>) -> Result<Outcome, LabError>,
) -> Experiment {
    Experiment { name, about, run }
}

pub const ALL: &[Experiment] = &[
    experiment("mechanisms", "all launch mechanisms, from a small parent", mechanisms::run),
    experiment("parent-size", "all launch mechanisms, by the parent's memory", parent_size::run),
    experiment("growth", "a parent that grows between launches", growth::run),
    experiment("open-fds", "launches by the parent's open files", open_fds::run),
    experiment("child-kind", "static, position-independent and dynamic children", child_kind::run),
    experiment("loader", "the dynamic loader's time for libraries and search paths", loader::run),
    experiment(
        "first-launch",
        "the first launch of a file against the second, one alone and many at once",
        first_launch::run,
    ),
];

/// Returns the columns of launch times from a worker: the wall, and the time inside the call.
fn wall_and_call() -> [Column; 2] {
    [measure("wall_ns", "wall", Unit::Nanos), measure("call_ns", "call", Unit::Nanos)]
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
        .quiet_columns(wall_and_call().len())
}

/// Returns the path as text, for requests to workers.
fn text(path: &std::path::Path) -> String {
    path.display().to_string()
}
