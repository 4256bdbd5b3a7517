//! The experiments, one file each, and the list of them.

mod child_kind;
mod first_launch;
mod growth;
mod loader;
mod mechanisms;
mod open_fds;
mod parent_size;
mod passes;
mod scanners;
mod throughput;

use std::rc::Rc;
use std::time::Duration;

use super::LabError;
use super::batches::Case;
use super::context::ExperimentContext;
use super::harness::Effort;
use super::outcome::{Column, Outcome, Unit, Value, measure};
use super::worker::protocol::{Program, Request};
use super::worker::{Mechanism, Worker};

/// An experiment.
pub struct Experiment {
    /// The name on the command line.
    pub name: &'static str,
    /// What the experiment measures, in a few words.
    pub about: &'static str,
    /// The minimum run time of a full and of a quick run, in seconds. This time is needed to fill parents, to compile programs, and to make
    /// the minimum number of rounds.
    min_seconds: [f64; 2],
    run: fn(&ExperimentContext<'_>) -> Result<Outcome, LabError>,
}

impl Experiment {
    /// Returns an estimate of the run time. The minimum already includes part of the time for rounds.
    #[must_use]
    pub fn estimated_time(&self, effort: Effort) -> Duration {
        let [full, quick] = self.min_seconds;
        let minimum = Duration::from_secs_f64(if effort.quick { quick } else { full });
        minimum.max(effort.time + minimum / 2)
    }

    /// Runs the experiment. If it fails, the outcome has no rows, and a note with the reason.
    #[must_use]
    pub fn run(&self, context: &ExperimentContext<'_>) -> Outcome {
        let mut outcome = (self.run)(context).unwrap_or_else(|error| {
            let mut outcome = Outcome::new(self.about, Vec::new());
            outcome.note(format!("not measured: {error}"));
            outcome
        });
        self.name.clone_into(&mut outcome.name);
        for note in context.notes() {
            outcome.note(note);
        }
        outcome
    }
}

macro_rules! experiments {
    ($($name:literal $module:ident $about:literal $min_seconds:expr)*) => {
        /// All experiments.
        pub const ALL: &[Experiment] = &[$(Experiment { name: $name, about: $about, min_seconds: $min_seconds, run: $module::run }),*];
    };
}

experiments! {
    "mechanisms" mechanisms "all launch mechanisms, from a small parent" [1.5, 0.5]
    "parent-size" parent_size "all launch mechanisms, by the parent's memory" [45.0, 2.5]
    "growth" growth "a parent that grows between launches" [20.0, 0.5]
    "open-fds" open_fds "launches by the parent's open files, and ways to close them" [4.0, 0.5]
    "child-kind" child_kind "static, position-independent and dynamic children" [2.0, 0.5]
    "loader" loader "the dynamic loader's time for libraries and search paths" [7.0, 1.0]
    "first-launch" first_launch "the first launch of a file against the second, one alone and many at once" [1.0, 0.5]
    "throughput" throughput "launches per second, by threads and children in flight" [25.0, 10.0]
}

/// Returns the columns of launch times from a worker: the wall, and the time inside the call.
fn wall_and_call() -> [Column; 2] {
    [measure("wall_ns", "wall", Unit::Nanos), measure("call_ns", "call", Unit::Nanos)]
}

/// Returns a case that makes launches. The wall and the time inside the call must be within the wanted noise.
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
