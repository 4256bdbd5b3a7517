//! Recordings of real programs in one dataset, which pyarrow and DuckDB read.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::needs::python;
use crate::support::prelude::*;

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dataset_check.py");

#[apply(live_test)]
#[needs(Parquet)]
fn two_engines_read_what_was_recorded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let dataset = directory.path().join("fleet");
    let mut expected = Vec::new();
    for (job, script) in
        [("a / b", "for n in 1 2 3; do /bin/true; done; ls / | wc -l"), ("nightly", "(exit 3); /bin/true")]
    {
        let record = Record::new().flags(&["-q", "--label", &format!("job={job}")]).recorded(["sh", "-c", script]);
        let output = dataset.to_str().expect("characters");
        for _ in 0..2 {
            read(&["export", "--format", "parquet", "-o", output], &record.file());
        }
        let report = report(&record.file());
        expected.push((job, report["launches"].clone(), report["launch_tax_ns"].clone()));
    }
    let output = run(Command::new(python()).arg(CHECK).arg(&dataset)).expect_code(0);
    let found: Value = output.json();
    assert_eq!(found["pyarrow"], found["duckdb"]);
    assert_eq!(found["duckdb"]["rows"]["runs"], 2, "adding twice adds nothing");
    let runs = found["duckdb"]["runs"].as_array().expect("runs");
    for (run, (job, launches, tax)) in runs.iter().zip(expected) {
        assert_eq!(json!([run[0], run[3], run[4]]), json!([job, launches, tax]));
    }
}
