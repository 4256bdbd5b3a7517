//! Recordings of real programs in one dataset, which pyarrow and DuckDB read.

use std::process::Command;

use serde_json::{Value, json};

use crate::support::needs::python;
use crate::support::recording::report;
use crate::support::run::{Record, run, spawnscope};
use crate::support::{apply, live_test};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dataset_check.py");

#[apply(live_test)]
#[needs(Ebpf, Parquet)]
fn two_engines_read_what_was_recorded() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let dataset = directory.path().join("fleet");
    let mut expected = Vec::new();
    for (job, script) in [
        ("a / b", "for n in 1 2 3; do /bin/true; done; ls / | wc -l"),
        ("nightly", "(exit 3); /bin/true"),
    ] {
        let record = Record::new().flags(&["-q", "--label", &format!("job={job}")]);
        record.run(["sh", "-c", script]).expect_code(0);
        let arguments = ["export", "--format", "parquet", "-o"].map(AsRef::as_ref);
        for _ in 0..2 {
            let file = record.file();
            spawnscope(arguments.into_iter().chain([dataset.as_os_str(), file.as_os_str()])).expect_code(0);
        }
        let report = report(&record.file());
        expected.push((job, report["launches"].clone(), report["launch_tax_ns"].clone()));
    }
    let output = run(Command::new(python()).arg(CHECK).arg(&dataset)).expect_code(0);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["pyarrow"], found["duckdb"]);
    assert_eq!(found["duckdb"]["rows"]["runs"], 2, "adding twice adds nothing");
    let runs = found["duckdb"]["runs"].as_array().expect("runs");
    for (run, (job, launches, tax)) in runs.iter().zip(expected) {
        assert_eq!(json!([run[0], run[3], run[4]]), json!([job, launches, tax]));
    }
}
