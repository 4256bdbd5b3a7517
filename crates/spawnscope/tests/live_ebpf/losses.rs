//! What happens when the recorder cannot keep up or cannot write: losses are counted and reported,
//! the tree stays consistent, and the command never suffers.

use std::collections::HashSet;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::support::prelude::*;

#[apply(live_test)]
#[needs(MountNs)]
fn a_full_disk_ends_a_recording_of_the_machine() {
    let record = Record::new();
    let small = record.directory().join("small");
    std::fs::create_dir(&small).expect("a mount point");
    let script = "mount -t tmpfs -o size=128k none \"$1\" || exit 99
        \"$0\" record -a --duration 60 -o \"$1/recording.db\" & recorder=$!
        sleep 0.5
        \"$2\" 5003 \"$3\" >/dev/null
        wait $recorder";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, SPAWNSCOPE]).arg(&small);
    command.args([path("storm"), path("tiny")]);
    let began = std::time::Instant::now();
    let finished = run(&mut command).expect_code(125);
    // The recorder ended by itself.
    assert!(began.elapsed() < Duration::from_secs(55));
    finished.expect_errors(["no space is left"]);
}

#[apply(live_test)]
fn an_overflow_is_counted_and_leaves_a_consistent_tree() {
    let record = Record::new().flags(&["--buffer", "4"]);
    let script = "echo ready; exec \"$0\" 5003 \"$1\"";
    let traced = ["sh", "-c", script, &word("storm"), &word("tiny")];
    let running = Running::start(&mut record.command(traced));
    running.await_line();
    // A stopped recorder cannot empty its buffer, so events are lost on any machine.
    kill(running.pid(), Signal::SIGSTOP).expect("the recorder runs");
    sleep(Duration::from_millis(300));
    kill(running.pid(), Signal::SIGCONT).expect("the recorder is stopped");
    let finished = running.finish().expect_code(0);
    // The command did all it should.
    assert_contains(&finished.output(), ["children=5003"]);
    finished.expect_errors(["lost"]);

    let report = report(&record.file());
    assert!(report["lost_events"].as_u64() > Some(0), "a buffer of 4 KiB");
    assert_contains(&read(&["report"], &record.file()).output(), ["lost"]);
    let launches = launches(&record.file());
    assert!(launches.0.len() < 5004, "the pause hid launches");
    let ids: HashSet<u64> = launches.0.iter().map(Launch::id).collect();
    for launch in &launches.0 {
        match launch.parent() {
            Some(parent) => assert!(ids.contains(&parent), "an unknown parent: {launch}"),
            None => assert!(["command", "orphan"].contains(&launch.origin()), "{launch}"),
        }
    }
    let orphans = launches.all(|launch| launch.origin() == "orphan");
    assert_eq!(report["orphans"], orphans.len(), "orphans are counted");
}
