//! The experiments, one file each, and the list of them.

mod child_kind;
mod copy_on_write;
mod first_launch;
mod growth;
mod loader;
mod mechanisms;
mod open_fds;
mod parent_size;
mod passes;
mod path_search;
mod phases;
mod runtimes;
mod scanners;
mod shell;
mod shims;
mod threads;
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
    /// Its name on the command line.
    pub name: &'static str,
    /// What it measures.
    pub about: &'static str,
    /// The minimum run time in seconds, whole and quick: time to fill parents, to compile programs, and for the required rounds.
    least: [f64; 2],
    run: fn(&ExperimentContext<'_>) -> Result<Outcome, LabError>,
}

impl Experiment {
    /// An estimate of its run time. Part of the time for its rounds is already included in the minimum.
    #[must_use]
    pub fn takes(&self, effort: Effort) -> Duration {
        let [whole, quick] = self.least;
        let least = Duration::from_secs_f64(if effort.quick { quick } else { whole });
        least.max(effort.time + least / 2)
    }

    /// Runs it. Failures are reported in the outcome's notes; an experiment that failed has no rows.
    #[must_use]
    pub fn run(&self, context: &ExperimentContext<'_>) -> Outcome {
        let failed = |error: LabError| {
            let mut outcome = Outcome::new(self.about, Vec::new());
            outcome.note(format!("not measured: {error}"));
            outcome
        };
        let mut outcome = (self.run)(context).unwrap_or_else(failed);
        self.name.clone_into(&mut outcome.name);
        for note in context.notes() {
            outcome.note(note);
        }
        outcome
    }
}

macro_rules! experiments {
    ($($name:literal $module:ident $about:literal $least:expr)*) => {
        /// All experiments.
        pub const ALL: &[Experiment] = &[$(Experiment { name: $name, about: $about, least: $least, run: $module::run }),*];
    };
}

experiments! {
    "mechanisms" mechanisms "all launch mechanisms, from a small parent" [1.5, 0.5]
    "parent-size" parent_size "all launch mechanisms, by the parent's memory" [45.0, 2.5]
    "growth" growth "a parent that grows between launches" [20.0, 0.5]
    "open-fds" open_fds "launches by the parent's open files, and ways to close them" [4.0, 0.5]
    "threads" threads "launches by the parent's threads, and how long these stall" [10.0, 3.0]
    "child-kind" child_kind "static, position-independent and dynamic children" [2.0, 0.5]
    "loader" loader "the dynamic loader's time for libraries and search paths" [7.0, 1.0]
    "first-launch" first_launch "the first launch of a file against the second, one alone and many at once" [1.0, 0.5]
    "shell" shell "a command through each shell's -c, compared with none" [1.0, 0.2]
    "path-search" path_search "the cost of PATH directories that lack the program" [2.0, 0.4]
    "shims" shims "wrappers before a program: env, scripts, version managers" [1.0, 0.4]
    "runtimes" runtimes "start-up of the installed interpreters" [18.0, 10.0]
    "throughput" throughput "launches per second, by threads and children in flight" [25.0, 10.0]
    "copy-on-write" copy_on_write "the parent's page copies after a fork" [9.0, 1.5]
}

/// The columns of launch times from a worker: wall, and time inside the call.
fn wall_and_call() -> [Column; 2] {
    [
        measure("wall_ns", "wall", Unit::Nanos),
        measure("call_ns", "call", Unit::Nanos),
    ]
}

/// A case of launches whose promised columns are wall and time inside the call.
fn launches<'a>(
    keys: impl IntoIterator<Item = Value>,
    worker: &Rc<Worker>,
    mechanism: Mechanism,
    program: &Program,
) -> Case<'a> {
    let (worker, program) = (Rc::clone(worker), program.clone());
    let run = move |count| {
        worker.ask(&Request::Launch {
            mechanism,
            program: program.clone(),
            count,
        })
    };
    Case::new(keys, run).promises(wall_and_call().len())
}

/// The path as text, for requests to workers.
fn text(path: &std::path::Path) -> String {
    path.display().to_string()
}
