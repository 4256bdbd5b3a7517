//! Runs `bench` and reads its JSON output.

use std::process::Command;

use serde_json::Value;

use crate::support::prelude::*;

/// The shortest possible run: the minimum number of rounds that gives an interval.
pub const BRIEF: [&str; 4] = ["bench", "--quick", "--seconds", "0.01"];

/// Returns a `bench` command with these arguments, to which more can be added.
pub fn bench_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(SPAWNSCOPE);
    // Cargo's LD_LIBRARY_PATH has a directory for each of many crates, and every loader would
    // search them all.
    command.args(BRIEF).args(arguments).env_remove("LD_LIBRARY_PATH");
    command
}

pub fn bench(arguments: &[&str]) -> Finished {
    run(&mut bench_command(arguments)).expect_code(0)
}

/// Runs one experiment, and returns its part of the report.
pub fn run_experiment(name: &str) -> Value {
    only_experiment(&bench(&["--json", name]).json())
}

pub fn only_experiment(report: &Value) -> Value {
    let experiments = report["experiments"].as_array().expect("experiments");
    assert_eq!(experiments.len(), 1);
    experiments[0].clone()
}

pub fn rows(experiment: &Value) -> &[Value] {
    experiment["rows"].as_array().expect("rows")
}

/// Returns the rows with these keys; there must be at least one.
pub fn rows_with<'v>(experiment: &'v Value, keys: &[(&str, &str)]) -> Vec<&'v Value> {
    let found: Vec<&Value> =
        rows(experiment).iter().filter(|row| keys.iter().all(|(key, value)| row[key] == **value)).collect();
    assert!(!found.is_empty(), "{keys:?} in {experiment}");
    found
}

/// Returns the notes as one text.
pub fn notes(experiment: &Value) -> String {
    let notes = experiment["notes"].as_array().expect("notes");
    notes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
