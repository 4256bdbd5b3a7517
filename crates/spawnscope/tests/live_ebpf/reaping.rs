//! Who reaps a process, and when: wait calls of every kind, children that another process created, and no reaper at all.

use crate::support::recording::launches;
use crate::support::run::Record;
use crate::support::workloads::{Truth, path};
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn every_way_to_reap_is_seen_when_it_happens() {
    const MS: i64 = 1_000_000;
    let record = Record::new();
    let truth = Truth::new(&record.run([path("ways_to_reap")]).expect_code(0).stdout);
    let launches = launches(&record.file());
    let late = truth.all("late");
    assert_eq!(late.len(), 4);
    for (pid, late_ns) in late.into_iter().zip(truth.all("late_ns")) {
        let child = launches.with_pid(pid);
        let reap = child
            .phase_ns("reap")
            .unwrap_or_else(|| panic!("no reap: {}", child.json()));
        // The workload learns of the zombie a little after it is one; on a busy machine, much after.
        assert!(
            reap >= late_ns - MS && reap < late_ns + 100 * MS,
            "{late_ns}: {}",
            child.json()
        );
    }
    for pid in truth.all("never") {
        let child = launches.with_pid(pid);
        assert_eq!(child.phase_ns("reap"), Some(0), "{}", child.json());
    }
}
