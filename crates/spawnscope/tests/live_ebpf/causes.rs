//! Causes, on real recordings: the parts of the critical path sum to the wall, the replay
//! reproduces the wall, and clean work gets no advice. Each cause that gets advice is a pair of
//! `tests/fixes`, and each rule is tested on hand-written events.

use crate::support::prelude::*;

/// The largest permitted replay error, as a share of the wall. A model in which processes do not
/// share CPUs misses half of it.
const MAX_ERROR: f64 = 0.05;

const SERIAL: &str = "for ((i = 0; i < 400; i++)); do /bin/true; done";
const PARALLEL: &str = "seq 400 | xargs -P4 -n1 /bin/true";
const PIPES: &str = "for i in {1..60}; do x=$(seq 2000 | sort -n | tail -n 1); done";
const BUSY: &str = "for i in 1 2 3 4 5; do (for ((n = 0; n < 60000; n++)); do :; done) & done; wait";

live_test! {
    #[needs(Ebpf)]
    fn the_replay_of_serial_launches_reproduces_the_wall = assert_replay(SERIAL);
    fn the_replay_of_parallel_launches_reproduces_the_wall = assert_replay(PARALLEL);
    fn the_replay_of_pipes_and_substitutions_reproduces_the_wall = assert_replay(PIPES);
    fn the_replay_of_busy_children_that_share_cpus_reproduces_the_wall = assert_replay(BUSY);
}

fn record_and_report(script: &str) -> serde_json::Value {
    let record = Record::new().recorded(["bash", "-c", script]);
    let report = report(&record.file());
    let parts = report["critical_path"].as_array().expect("an array").iter();
    let charged: i64 = parts.map(|part| part["ns"].as_i64().expect("nanoseconds")).sum();
    let wall = report["wall_ns"].as_i64();
    assert_eq!(Some(charged), wall, "the parts sum to the wall of {script}");
    report
}

/// Checks the replay error of a script. How much other processes use the CPUs is known only while a
/// recorded thread waits for a CPU. On a busy machine, the replay error is therefore larger in some
/// runs; a wrong model causes one in every run.
fn assert_replay(script: &str) {
    best_of_three(|| {
        let error = record_and_report(script)["replay_error"].as_f64().expect("a number");
        ok_if(error.abs() <= MAX_ERROR, || format!("off by {error} of the wall: {script}"))
    });
}

/// The load of other processes may look like a habit of the script or a problem of the system, so
/// there are three attempts.
#[apply(live_test)]
fn clean_work_gets_no_advice() {
    let scripts = [
        "head -c 100000000 /dev/zero | cat | wc -c",
        "sleep 0.3",
        "cd $(mktemp -d) && for i in {1..400}; do echo \"int f$i(int x) { return x * $i; }\"; done >a.c && cc -O1 -c a.c && rm -r $PWD",
        "for i in $(seq $(nproc)); do (for ((n = 0; n < 40000; n++)); do :; done) & done; wait",
        "seq 200000 | sort -n | tail -n1",
        "perl -e 'my $x = 0; $x += $_ for 1..3000000'",
    ];
    for script in scripts {
        best_of_three(|| {
            let record = Record::new().recorded(["bash", "-c", script]);
            let findings = advice(&record.file());
            ok_if(findings.is_empty(), || format!("{script}: {findings:?}"))
        });
    }
}
