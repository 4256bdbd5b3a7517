//! What threads wait for, and which process ends the wait: pipes, fifos, children and scanners that
//! the tests themselves create.

use serde_json::{Value, json};

use crate::support::prelude::*;

/// Numbers of system calls, as in an export.
const READ: u64 = 0;
const POLL: u64 = 7;
const SELECT: u64 = 23;
const EXECVE: u64 = 59;
const EPOLL_WAIT: u64 = 232;
const OPENAT: u64 = 257;
const PSELECT6: u64 = 270;

live_test! {
    #[needs(Ebpf)]
    fn a_read_waits_on_the_pipe_that_the_child_writes_to = assert_waits_on_pipe("read", &[READ]);
    fn a_poll_waits_on_the_first_descriptor_in_use = assert_waits_on_pipe("poll", &[POLL]);
    fn a_select_waits_on_its_first_descriptor = assert_waits_on_pipe("select", &[SELECT, PSELECT6]);
}

/// Returns the wanted rows of the report's waits. Checks the sum of the parts of all rows.
fn attribution(record: &Record, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let report = report(&record.file());
    let rows = report["waits"].as_array().expect("an array");
    for row in rows {
        let parts = ["tax_ns", "run_ns", "reap_ns", "queue_ns", "other_ns"];
        let sum: u64 = parts.iter().map(|part| row[*part].as_u64().expect("nanoseconds")).sum();
        assert_eq!(Some(sum), row["total_ns"].as_u64(), "{row}");
    }
    rows.iter().filter(|row| wanted(row)).cloned().collect()
}

#[track_caller]
fn only(mut rows: Vec<Value>) -> Value {
    assert_eq!(rows.len(), 1, "{rows:#?}");
    rows.remove(0)
}

/// Returns the longest wait of the command's own process in one of these calls.
#[track_caller]
fn longest(launches: &Launches, calls: &[u64]) -> Value {
    let waits = launches.root().json()["waits"].as_array().expect("waits").iter();
    let in_call = waits.filter(|wait| wait["syscall"].as_u64().is_some_and(|call| calls.contains(&call)));
    in_call
        .max_by_key(|wait| wait["end_ns"].as_u64().map(|end| end - wait["start_ns"].as_u64().expect("a start")))
        .expect("a wait in that call")
        .clone()
}

fn assert_waits_on_pipe(how: &str, calls: &[u64]) {
    let record = Record::new();
    let (truth, launches) = record.truth_and_launches([&word("wait_on_pipe"), how]);
    let wait = longest(&launches, calls);
    assert_eq!(wait["object"]["kind"], "pipe", "{wait}");
    assert_eq!(wait["object"]["inode"], truth.one("inode"), "{wait}");
    assert_eq!(wait["object"]["device"], truth.one("device"), "{wait}");
    let child = launches.with_pid(truth.one("child")).id();
    assert_eq!(wait["waker"]["launch"], child, "{wait}");

    let row = only(attribution(&record, |row| row["object"]["kind"] == "pipe"));
    assert_eq!(row["command"], "wait_on_pipe");
    assert_eq!(row["object"]["inode"], truth.one("inode"));
    assert_eq!(row["on"], json!([{"command": "(wait_on_pipe)", "count": 1}]));
    // The child sleeps in its run phase, and the parent waits for most of that.
    assert!(row["run_ns"].as_u64() > Some(50_000_000), "{row}");
}

#[apply(live_test)]
fn epoll_wait_waits_on_an_epoll_descriptor() {
    let record = Record::new().recorded([&word("wait_on_pipe"), "epoll"]);
    let wait = longest(&launches(&record.file()), &[EPOLL_WAIT]);
    assert_eq!(wait["object"]["kind"], "epoll", "{wait}");
    let row = only(attribution(&record, |row| row["syscall"] == "epoll_wait"));
    assert_eq!(row["on"][0]["command"], "(wait_on_pipe)");
}

#[apply(live_test)]
fn a_fifo_is_named_by_its_path() {
    let record = Record::new();
    let directory = record.directory().canonicalize().expect("it is there");
    let fifo = directory.join("a fifo").display().to_string();
    let script = "mkfifo \"$1\"; exec 3<>\"$1\"; (sleep 0.1; echo hi >&3) & read -r x <&3; wait";
    record.run(["bash", "-c", script, "bash", &fifo]).expect_code(0);
    let row = only(attribution(&record, |row| row["object"]["kind"] == "fifo"));
    assert_eq!(row["object"]["path"], fifo);
    assert_eq!((&row["command"], &row["syscall"]), (&"bash".into(), &"read".into()));
    assert_eq!(row["on"][0]["command"], "(bash)");
}

#[apply(live_test)]
fn a_wait_for_a_pipeline_is_attributed_to_its_programs() {
    let script = "x=$(sleep 0.1 | cat; :); y=$(sleep 0.1)";
    let record = Record::new().recorded(["bash", "-c", script]);
    let row = only(attribution(&record, |row| row["command"] == "bash" && row["object"]["kind"] == "pipe"));
    assert_eq!(row["syscall"], "read");
    let on = row["on"].as_array().expect("an array");
    assert!(on.iter().any(|each| each["command"] == "sleep"), "{row}");
    // The substitution's own process.
    assert!(on.iter().any(|each| each["command"] == "(bash)"), "{row}");
    // cat waits for its neighbour, which is not its child.
    let cat = only(attribution(&record, |row| row["command"] == "cat" && row["object"]["kind"] == "pipe"));
    assert_eq!(cat["on"][0]["command"], "sleep", "{cat}");
}

#[apply(live_test)]
fn a_parent_that_sleeps_while_its_child_is_a_zombie_reaps_late() {
    best_of_three(try_late);
}

fn try_late() -> Result<(), String> {
    let record = Record::new();
    let finished = record.run([&word("long_reap"), "long"]).expect_code(0);
    let slept: i64 = Truth::new(&finished.stdout).all("amount_ns").iter().sum();
    let row = only(attribution(&record, |row| row["syscall"].as_str().is_some_and(|call| call.ends_with("nanosleep"))));
    assert_eq!(row["on"], json!([{"command": "(long_reap)", "count": 7}]));
    let reap = row["reap_ns"].as_i64().expect("nanoseconds");
    assert!(reap <= slept, "{reap} of {slept}");
    // The parent learns of each end through a pidfd of the child.
    let row = only(attribution(&record, |row| row["syscall"] == "ppoll"));
    assert_eq!(row["object"]["kind"], "pidfd");
    ok_if(reap > slept * 9 / 10, || format!("{reap} of {slept}"))
}

fn record_under_scanner(record: &Record, scanner: &str, words: &[&str]) -> Launches {
    record.run(words).expect_code(0);
    for call in ["execve", "openat"] {
        let row = only(attribution(record, |row| row["syscall"] == call && row["object"]["kind"] == "permission"));
        assert_eq!(row["on"], json!([{"scanner": scanner, "count": 1}]), "{row}");
        assert!(row["total_ns"].as_u64() >= Some(15_000_000), "{row}");
    }
    let found = report(&record.file());
    let on_path = found["critical_path"].as_array().expect("an array").iter();
    let of_scanner = on_path.filter(|part| part["on"] == "scanner" && part["process"] == scanner);
    assert_eq!(of_scanner.count(), 1, "{}", found["critical_path"]);
    launches(&record.file())
}

#[apply(live_test)]
#[needs(MountNs, Fanotify)]
fn a_scanner_is_named_if_exec_and_open_wait_for_it() {
    let scanned = tempfile::tempdir().expect("a temporary directory");
    let directory = scanned.path().to_str().expect("a path of characters");
    let record = Record::new().through(&[&word("scanned"), &word("tiny"), directory]);
    let script = "\"$1/tiny\"; exec 3<\"$1/tiny\"; true";
    let launches = record_under_scanner(&record, "test-scanner", &["bash", "-c", script, "bash", directory]);
    let wait = longest(&launches, &[OPENAT]);
    assert_eq!(wait["object"]["kind"], "permission", "{wait}");
    // The name of the process, not of the thread that answered.
    assert_eq!(wait["waker"]["name"], "test-scanner", "{wait}");
}

/// Here the recorded command is the scanner.
#[apply(live_test)]
#[needs(MountNs, Fanotify)]
fn a_recorded_scanner_is_a_scanner_too() {
    let scanned = tempfile::tempdir().expect("a temporary directory");
    let words = [path("long_exec"), "long".into(), path("tiny"), scanned.path().into()];
    let record = Record::new().recorded(words);
    let rows = attribution(&record, |row| row["object"]["kind"] == "permission");
    assert_eq!(rows.len(), 7, "one for each program: {rows:#?}");
    for row in rows {
        assert_eq!(row["syscall"], "execve");
        assert_eq!(row["on"], json!([{"scanner": "long_exec", "count": 1}]));
    }
    let launches = launches(&record.file());
    let children = launches.all(|launch| launch.command().starts_with("tiny"));
    let waits = children.into_iter().flat_map(|launch| launch.json()["waits"].as_array().expect("waits"));
    let scans = waits.filter(|wait| wait["object"]["kind"] == "permission" && wait["syscall"] == EXECVE);
    assert!(scans.count() >= 7, "one for each exec");
}

#[apply(live_test)]
#[needs(MountNs)]
fn if_the_kernel_hides_its_addresses_a_message_says_that_scanners_are_unknown() {
    let hide = "mount --bind /dev/null /proc/kallsyms && exec \"$@\"";
    let report =
        report(&Record::new().through(&["unshare", "--mount", "sh", "-c", hide, "sh"]).recorded(["true"]).file());
    let missing = report["missing"].as_array().expect("an array");
    let reported =
        missing.iter().filter(|part| part["effect"].as_str().is_some_and(|effect| effect.contains("scanner")));
    assert_eq!(reported.count(), 1, "{missing:?}");
}
