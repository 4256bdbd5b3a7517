//! The cost of each PATH directory that does not contain the program.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;

use super::{launches, wall_and_call};
use crate::LabError;
use crate::batches::Case;
use crate::context::ExperimentContext;
use crate::outcome::{Outcome, Scale, Unit, Value, key};
use crate::worker::protocol::{Program, Setting};
use crate::worker::{Environment, Mechanism, Worker};

const MISSES: [usize; 5] = [0, 1, 10, 30, 100];
const QUICK_MISSES: [usize; 2] = [0, 20];

pub fn run(context: &ExperimentContext<'_>) -> Result<Outcome, LabError> {
    let keys = [
        key("search", "who searches", Unit::Text),
        key("folders", "directories", Unit::Text),
        key("misses", "misses", Unit::Count),
    ];
    let columns = keys.into_iter().chain(wall_and_call()).collect();
    let mut outcome = Outcome::new("A search in PATH, by the number of directories without the program", columns);
    outcome.draw("misses", "wall_ns", &["search", "folders"], [Scale::Linear, Scale::Linear]);
    let measured = context.interleave(cases(context)?);
    outcome.add(&measured);
    outcome.fit("misses", 1.0, "miss");
    outcome.note(
        "the directories are on the file system of the temporary directory; network and overlay file systems are slower",
    );
    Ok(outcome)
}

/// Returns the cases: each kind of search, with empty or missing directories before the directory of the program.
fn cases<'a>(context: &ExperimentContext<'_>) -> Result<Vec<Case<'a>>, LabError> {
    let root = context.directory().join("path");
    let tiny = context.tiny();
    let name = context.tiny_path().file_name().map(PathBuf::from).unwrap_or_default();
    let named = Program::new([&name]).with_status(tiny.status);
    let shell = Program::new([PathBuf::from("/bin/sh"), PathBuf::from("-c"), name]).with_status(tiny.status);
    let misses: &[usize] = context.pick(&MISSES, &QUICK_MISSES);
    let mut cases = Vec::new();
    for (kind, exists) in [("empty", true), ("missing", false)] {
        for &count in misses {
            let directories: Vec<PathBuf> = (0..count).map(|number| root.join(format!("{kind}{number}"))).collect();
            if exists {
                let made: Result<(), _> = directories.iter().try_for_each(fs::create_dir_all);
                made.map_err(LabError::doing("create directories"))?;
            }
            let path: OsString = std::env::join_paths(directories.into_iter().chain([context.directory().to_owned()]))
                .map_err(|error| LabError::Unavailable(error.to_string()))?;
            let worker = Rc::new(Worker::start_with(&Setting::default(), Environment::default().with("PATH", &path))?);
            for (name, mechanism, program) in [
                ("posix_spawnp", Mechanism::PosixSpawnp, &named),
                ("vspawn", Mechanism::Vspawn, &named),
                ("sh", Mechanism::VforkExec, &shell),
            ] {
                let keys = [Value::from(name), Value::from(kind), Value::from(count as u64)];
                cases.push(launches(keys, &worker, mechanism, program));
            }
        }
    }
    Ok(cases)
}
