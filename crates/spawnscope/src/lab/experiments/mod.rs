//! The experiments: one file each, listed here with what they are about.

mod child_kind;
mod copy_on_write;
mod first_launch;
mod growth;
mod loader;
mod mechanisms;
mod open_fds;
mod parent_size;
mod path_search;
mod runtimes;
mod shell;
mod shims;
mod threads;
mod throughput;

use std::rc::Rc;

use super::LabError;
use super::ground::Ground;
use super::harness::Case;
use super::outcome::{Column, Outcome, Unit, Value, measure};
use super::worker::protocol::{Program, Request};
use super::worker::{Mechanism, Worker};

/// An experiment.
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    run: fn(&Ground<'_>) -> Result<Outcome, LabError>,
}

impl Experiment {
    /// Runs it. What cannot be done is in the outcome's notes: an experiment that failed has no rows.
    #[must_use]
    pub fn run(&self, ground: &Ground<'_>) -> Outcome {
        let failed = |error: LabError| {
            let mut outcome = Outcome::new(self.about, Vec::new());
            outcome.note(format!("not measured: {error}"));
            outcome
        };
        let mut outcome = (self.run)(ground).unwrap_or_else(failed);
        self.name.clone_into(&mut outcome.name);
        for note in ground.notes() {
            outcome.note(note);
        }
        outcome
    }
}

macro_rules! experiments {
    ($($name:literal $module:ident $about:literal)*) => {
        /// Every experiment.
        pub const ALL: &[Experiment] = &[$(Experiment { name: $name, about: $about, run: $module::run }),*];
    };
}

experiments! {
    "mechanisms" mechanisms "every way to make a process, from a small parent"
    "parent-size" parent_size "the same against the parent's memory"
    "growth" growth "a parent that grows between forks"
    "open-fds" open_fds "against the parent's open files, and ways to close them"
    "threads" threads "against the parent's threads, and how long these stand still"
    "child-kind" child_kind "static, position-independent and dynamic children"
    "loader" loader "what the dynamic loader takes for libraries and search paths"
    "first-launch" first_launch "the first launch of a file against the second, alone and at once"
    "shell" shell "a command through each shell's -c, against without"
    "path-search" path_search "what misses along PATH take"
    "shims" shims "wrappers before a program: env, scripts, version managers"
    "runtimes" runtimes "start-up of the interpreters that are found here"
    "throughput" throughput "launches a second, by threads and children in flight"
    "copy-on-write" copy_on_write "what a fork makes the parent pay afterwards, page by page"
}

/// Times of launches as a worker gives them: wall, time inside the call.
fn wall_and_call() -> [Column; 2] {
    [
        measure("wall_ns", "wall", Unit::Nanos),
        measure("call_ns", "call", Unit::Nanos),
    ]
}

/// A case that launches.
fn launches<'a>(
    keys: impl IntoIterator<Item = Value>,
    worker: &Rc<Worker>,
    mechanism: Mechanism,
    program: &Program,
) -> Case<'a> {
    let (worker, program) = (Rc::clone(worker), program.clone());
    Case::new(keys, move |count| {
        worker.ask(&Request::Launch {
            mechanism,
            program: program.clone(),
            count,
        })
    })
}

/// The path as arguments are told to workers.
fn text(path: &std::path::Path) -> String {
    path.display().to_string()
}
