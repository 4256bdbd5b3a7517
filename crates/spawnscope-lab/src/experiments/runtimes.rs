//! How the installed runtimes of languages create processes, and what a launch costs them with
//! little and with much memory. The sizes of one runtime take turns; the runtimes are measured one
//! after the other, so that their memory is needed only then.

use std::path::{Path, PathBuf};

use super::parent_size::{MB, count_fitting};
use crate::LabError;
use crate::batches::Case;
use crate::context::{ExperimentContext, STATUS};
use crate::machine::AvailableMemory;
use crate::measurements::{Measurements, Value};
use crate::outcome::{Outcome, Scale, Unit, key, measure};
use crate::runtimes::{self, FILL_MEMORY_FACTOR, Runtime, RuntimeParent};

const SIZES_MB: [u64; 4] = [0, 250, 500, 1000];
const QUICK_SIZES_MB: [u64; 4] = [0, 16, 32, 64];

const FORKING: &str = "fork, which copies the page tables: start programs before the process grows, or from a small helper \
                       process, or with a library that shares the memory, such as vspawn";

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("runtime", "runtime", Unit::Text),
        key("creation", "creation", Unit::Text),
        key("parent_bytes", "parent", Unit::Bytes),
    ];
    let columns = keys.into_iter().chain([measure("wall_ns", "wall", Unit::Nanos)]).collect();
    let mut outcome = Outcome::new("Launches by the runtimes of languages", columns);
    outcome.draw("parent_bytes", "wall_ns", &["runtime", "creation"], Scale::Linear);
    let installed: Vec<(Runtime, PathBuf)> =
        runtimes::ALL.into_iter().filter_map(|runtime| Some((runtime, runtime.find()?))).collect();
    let missing = runtimes::ALL.iter().filter(|runtime| runtime.find().is_none()).map(|runtime| runtime.name);
    let missing = missing.collect::<Vec<_>>().join(", ");
    let (mut measured, mut forking) = (Vec::new(), Vec::new());
    for (index, (runtime, program)) in installed.iter().enumerate() {
        let (done, share) = (index as f64 / installed.len() as f64, 1.0 / installed.len() as f64);
        if !context.report_progress(&format!("preparing {}", runtime.name), done) {
            break;
        }
        match Launcher::of(context, runtime, program) {
            Ok(launcher) => {
                forking.extend(launcher.creation.starts_with("fork").then(|| launcher.label.clone()));
                measured.extend(launcher.measure(context, done, share));
            }
            Err(error) => outcome.note(format!("{}: {error}", runtime.name)),
        }
    }
    outcome.add(&measured);
    outcome.fit(MB as f64, "MB");
    for (list, text) in [(missing, "not installed"), (forking.join(", "), FORKING)] {
        if !list.is_empty() {
            outcome.note(format!("{list}: {text}"));
        }
    }
    Ok(outcome)
}

/// A runtime that is ready to launch.
struct Launcher {
    label: String,
    creation: String,
    command: Vec<PathBuf>,
    program: PathBuf,
}

impl Launcher {
    fn of(context: &ExperimentContext<'_>, runtime: &Runtime, interpreter: &Path) -> Result<Launcher, LabError> {
        let program = context.tiny_path();
        let program = program.canonicalize().map_err(LabError::doing("find a program"))?;
        let label = runtime.label(interpreter);
        let command = runtime.prepare(interpreter, context.directory())?;
        let mut launcher = Launcher { label, creation: String::new(), command, program };
        if let Some(parent) = launcher.start(0, &|| true)? {
            launcher.creation = parent.creation(&launcher.program)?;
        }
        Ok(launcher)
    }

    fn start(&self, bytes: u64, may_continue: &dyn Fn() -> bool) -> Result<Option<RuntimeParent>, LabError> {
        RuntimeParent::start(&self.command, &self.label, bytes, (&self.program, STATUS), may_continue)
    }

    /// Measures all sizes that fit into memory.
    fn measure(&self, context: &ExperimentContext<'_>, done: f64, share: f64) -> Vec<Measurements> {
        let sizes = context.pick(SIZES_MB, QUICK_SIZES_MB).map(|size| size * MB);
        let sizes: Vec<u64> = sizes.into_iter().filter(|size| *size <= context.max_memory).collect();
        let fitting = &sizes[..count_fitting(&sizes, FILL_MEMORY_FACTOR, AvailableMemory::now())];
        let (mut cases, mut failed) = (Vec::new(), Vec::new());
        let may_continue = || context.report_progress(&format!("filling {}", self.label), done);
        for &bytes in fitting {
            let keys = vec![Value::from(&*self.label), Value::from(&*self.creation), Value::from(bytes)];
            match self.start(bytes, &may_continue) {
                Ok(Some(parent)) => cases.push(Case::new(keys, move |count| Ok(vec![parent.launch(count)?]))),
                Ok(None) => return failed,
                Err(error) => failed.push(Measurements::failed(keys, error)),
            }
        }
        let mut measured = context.interleave_part(cases, done, share);
        measured.extend(failed);
        measured
    }
}
