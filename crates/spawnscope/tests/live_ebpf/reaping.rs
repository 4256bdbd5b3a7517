//! When a process is reaped, and by which process: wait calls of every kind, children of another
//! process, and children that are never reaped.

use crate::support::phases::{assert_only_this_phase_grows, assert_phase_grows, words};
use crate::support::prelude::*;

#[apply(live_test)]
fn reap_grows_when_the_parent_waits_late() {
    assert_phase_grows("reap");
}

#[apply(live_test)]
fn a_wait_with_wnowait_does_not_reap() {
    let [base, long] = ["base", "long"].map(|amount| words(&["long_reap"], &[amount, "look"]));
    assert_only_this_phase_grows(&[], "reap", &base, &long);
}

#[apply(live_test)]
fn every_way_to_reap_is_seen_when_it_happens() {
    const MS: i64 = 1_000_000;
    let (truth, launches) = Record::new().truth_and_launches([path("ways_to_reap")]);
    let late = truth.all("late");
    assert_eq!(late.len(), 4);
    for (pid, late_ns) in late.into_iter().zip(truth.all("late_ns")) {
        let child = launches.with_pid(pid);
        let reap = child.phase_ns("reap").unwrap_or_else(|| panic!("no reap: {child}"));
        // The workload notices a zombie a little after it became one, and much later on a busy
        // machine.
        assert!(reap >= late_ns - MS && reap < late_ns + 100 * MS, "{late_ns}: {child}");
    }
    for pid in truth.all("never") {
        let child = launches.with_pid(pid);
        assert_eq!(child.phase_ns("reap"), Some(0), "{child}");
    }
}

/// A tracer gets a signal for each thread that ends, and the thread stays a zombie until the tracer
/// reaps it.
#[apply(live_test)]
#[needs(Strace, Python)]
fn the_end_of_a_traced_thread_does_not_end_its_process() {
    let program = "import threading, time\nt = threading.Thread(target=int)\nt.start()\nt.join()\ntime.sleep(0.3)";
    let strace = ["strace", "-f", "-o", "/dev/null"].into_iter();
    let record = Record::new().recorded(strace.chain(["/usr/bin/python3", "-c", program]));
    let launches = launches(&record.file());
    let traced =
        launches.only(|launch| launch.programs().first().is_some_and(|program| program.starts_with("python3")));
    let run = traced.phase_ns("run").unwrap_or_default();
    assert!(run > 300_000_000, "{traced}");
}
