//! What happens when the recorder cannot keep up or cannot write: losses are counted and reported,
//! the tree stays consistent, and the command never suffers.

use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};

use crate::support::launches::Launch;
use crate::support::recording::{launches, read, report};
use crate::support::run::{Record, Running, SPAWNSCOPE, await_some, run, spawnscope};
use crate::support::texts::assert_contains;
use crate::support::workloads::{path, word};
use crate::support::{apply, live_test};

/// Longer than the recorder waits for a lock, and longer than the command takes.
const READ_DURATION: Duration = Duration::from_secs(7);

/// Slow, because only a reader that outlasts the wait for a lock shows that the recorder gives up,
/// and goes on.
#[apply(live_test)]
fn a_long_read_does_not_end_the_recording() {
    let record = Record::new();
    let script = "for n in $(seq 100); do /bin/true; sleep 0.04; done; read -r end; exit 0";
    let mut running = Running::start(record.command(["bash", "-c", script]).stdin(Stdio::piped()));
    await_some("the first stored launches", || launches_so_far(&record.file()).filter(|launches| *launches > 10));
    let reader = rusqlite::Connection::open(record.file()).expect("a recording");
    reader.execute_batch("BEGIN").expect("a transaction");
    let before = count_launches(&reader);
    sleep(READ_DURATION);
    // The reader sees the state when it began.
    assert_eq!(count_launches(&reader), before);
    drop(running.child.stdin.take());
    let finished = running.finish().expect_code(0);
    assert!(!finished.errors().contains("incomplete"), "{}", finished.errors());
    finished.expect_errors(["-wal next to the recording"]);
    // The recording is read with its write-ahead log.
    assert_eq!(report(&record.file())["launches"], 202);
    drop(reader);
    assert_eq!(report(&record.file())["launches"], 202);
    let files = std::fs::read_dir(record.directory()).expect("its directory").count();
    assert_eq!(files, 1, "one file is left");
}

fn count_launches(reader: &rusqlite::Connection) -> i64 {
    reader.query_row("SELECT count(*) FROM launch", [], |row| row.get(0)).expect("a number")
}

/// Returns the number of launches in a recording in progress, or `None` if there is no recording
/// yet.
fn launches_so_far(file: &Path) -> Option<i64> {
    let finished = spawnscope(["report".as_ref(), "--json".as_ref(), file.as_os_str()]);
    let report: serde_json::Value = serde_json::from_slice(&finished.stdout).ok()?;
    report["launches"].as_i64()
}

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

#[apply(live_test)]
#[needs(MountNs)]
fn a_full_disk_is_an_error_of_the_recorder_alone() {
    let record = Record::new();
    let small = record.directory().join("small");
    std::fs::create_dir(&small).expect("a mount point");
    // The file system is mounted only in this namespace, so the recording must be read before the
    // namespace ends.
    let script = "mount -t tmpfs -o size=256k none \"$1\" || exit 99
        \"$0\" record -o \"$1/recording.db\" -- sh -c '\"$0\" 5003 \"$1\"; exit 9' \"$3\" \"$4\"
        code=$?
        \"$0\" report --json \"$1/recording.db\" >\"$2\" || exit 98
        exit $code";
    let report_file = record.directory().join("report.json");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, SPAWNSCOPE]);
    command.args([small, report_file.clone(), path("storm"), path("tiny")]);
    let finished = run(&mut command).expect_code(9);

    assert_contains(&finished.output(), ["children=5003"]);
    let errors = finished.errors();
    let causes = ["full", "No space", "no space"];
    let names_cause = causes.iter().any(|words| errors.contains(words));
    assert!(names_cause && errors.contains("recording.db"), "{errors}");
    let report = std::fs::read(&report_file).expect("the report of what was written");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("the report is JSON");
    let ended = report["ended"].as_str();
    let has_failed = ended.is_none_or(|ended| ended.starts_with("failed"));
    assert!(has_failed, "not a normal end: {ended:?}");
}
