//! Many launches: none is missed, and a recording stays small.

use std::time::Duration;

use crate::support::recording::{read, report};
use crate::support::run::{Record, Running};
use crate::support::workloads::word;
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf)]
fn a_launch_takes_at_most_a_kibibyte_of_storage() {
    const LAUNCHES: u64 = 3000;
    let record = Record::new();
    let storm = format!("for ((i = 0; i < {LAUNCHES}; i++)); do /bin/true; done");
    record.run(["bash", "-c", &storm]).expect_code(0);
    let report = report(&record.file());
    assert_eq!(report["launches"], LAUNCHES + 1);
    let bytes = std::fs::metadata(record.file()).expect("the recording").len();
    assert!(bytes / (LAUNCHES + 1) <= 1024, "{bytes} bytes for {LAUNCHES} launches");
}

/// Takes about 20 s. The buffer is large, because a debug build decodes several times slower than the
/// release build, whose losses `benchmarks/` measures.
#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn a_hundred_thousand_launches_are_all_recorded() {
    const LAUNCHES: u64 = 100_000;
    const DEADLINE: Duration = Duration::from_secs(600);
    let record = Record::new().flags(&["--buffer", "262144"]);
    let command = [word("storm"), LAUNCHES.to_string(), word("tiny")];
    let running = Running::start(&mut record.command(command));
    running.finish_within(DEADLINE).expect_code(0);
    let report = report(&record.file());
    assert_eq!(report["lost_events"], 0);
    assert_eq!(report["launches"], LAUNCHES + 1);
    let tree = read(&["tree", "--unfold"], &record.file()).output();
    assert!(tree.lines().count() as u64 > LAUNCHES, "every launch has its line");
}
