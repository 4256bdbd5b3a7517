//! Runs `bench` and reads its JSON output.

use std::process::Command;

use serde_json::Value;

use crate::support::run::{Finished, SPAWNSCOPE, run};

/// As fast as possible: the minimum number of rounds for an interval.
pub const BRIEF: [&str; 4] = ["bench", "--quick", "--seconds", "0.01"];

/// The stored run that the guide describes.
pub const STORED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../benchmarks/runs/2026-11-22-vm/lab.json"
);

/// A command that runs experiments, to which more can be added.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(SPAWNSCOPE);
    // Cargo's LD_LIBRARY_PATH has a directory for each of many crates, and every loader would search them all.
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

/// The rows with these keys.
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
