//! The Perfetto export of a real recording, read by Perfetto's own classes (`tests/perfetto_check.py`).

use std::process::Command;

use crate::support::needs::python;
use crate::support::recording::{launches, read};
use crate::support::run::{Record, run};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto_check.py");

fn trace_of(record: &Record) -> Vec<u8> {
    read(&["export", "--format", "perfetto"], &record.file()).stdout
}

#[apply(live_test)]
#[needs(Ebpf, Cc, Perfetto)]
fn perfetto_reads_the_trace_of_a_recording() {
    let record = Record::new();
    record.run([path("mechanisms"), path("tiny")]).expect_code(0);
    let trace = trace_of(&record);
    let file = record.directory().join("trace.pftrace");
    std::fs::write(&file, &trace).expect("the trace");
    let drawn = launches(&record.file()).0.len().to_string();
    let mut check = Command::new(python());
    let checked = run(check.arg(CHECK).arg(&file).args(["--launches", &drawn]));
    assert!(checked.status.success(), "{}{}", checked.output(), checked.errors());
}
