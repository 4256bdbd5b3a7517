//! Runs `bench` and reads its JSON.

use std::process::Command;

use serde_json::Value;

use crate::support::run::{Finished, SPAWNSCOPE, run};

/// As quick as it gets: the fewest rounds that have an interval.
pub const BRIEF: [&str; 4] = ["bench", "--quick", "--seconds", "0.01"];

/// A whole run, which the guide tells of.
pub const STORED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../benchmarks/runs/2026-11-22-vm/lab.json"
);

/// A command that runs experiments; anything may be added to it.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(SPAWNSCOPE);
    // Cargo's own search path, which has a folder for each of many crates, would be searched by every loader.
    command.args(BRIEF).args(arguments).env_remove("LD_LIBRARY_PATH");
    command
}

pub fn bench(arguments: &[&str]) -> Finished {
    run(&mut command(arguments)).expect_code(0)
}

/// The report of a run.
pub fn report(finished: &Finished) -> Value {
    serde_json::from_slice(&finished.stdout).expect("JSON")
}

/// The only experiment of a run.
pub fn measured(name: &str) -> Value {
    only_experiment(&report(&bench(&["--json", name])))
}

pub fn only_experiment(report: &Value) -> Value {
    let experiments = report["experiments"].as_array().expect("experiments");
    assert_eq!(experiments.len(), 1);
    experiments[0].clone()
}

pub fn rows(experiment: &Value) -> &[Value] {
    experiment["rows"].as_array().expect("rows")
}

/// The rows of a series.
pub fn rows_with<'v>(experiment: &'v Value, keys: &[(&str, &str)]) -> Vec<&'v Value> {
    let fits = |row: &&Value| keys.iter().all(|(key, value)| row[key] == **value);
    let found: Vec<&Value> = rows(experiment).iter().filter(fits).collect();
    assert!(!found.is_empty(), "{keys:?} in {experiment}");
    found
}

/// The notes as one text.
pub fn notes(experiment: &Value) -> String {
    let notes = experiment["notes"].as_array().expect("notes");
    notes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
