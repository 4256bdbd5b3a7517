//! The Perfetto export of a real recording, read by Perfetto's own classes (`tests/perfetto_check.py`).

use std::process::Command;

use crate::support::needs::python;
use crate::support::recording::launches;
use crate::support::run::{Record, run, spawnscope};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/perfetto_check.py");

#[apply(live_test)]
#[needs(Ebpf, Cc, Perfetto)]
fn perfetto_reads_the_trace_of_a_recording() {
    let record = Record::new();
    record.run([path("mechanisms"), path("tiny")]).expect_code(0);
    let arguments = ["export", "--format", "perfetto"].map(AsRef::as_ref);
    let trace = spawnscope(arguments.into_iter().chain([record.file().as_os_str()])).expect_code(0);
    let file = record.directory().join("trace.pftrace");
    std::fs::write(&file, &trace.stdout).expect("the trace");
    let processes = launches(&record.file()).0.len().to_string();
    let checked = run(Command::new(python())
        .arg(CHECK)
        .arg(&file)
        .args(["--processes", &processes]));
    assert!(checked.status.success(), "{}{}", checked.output(), checked.errors());
}
