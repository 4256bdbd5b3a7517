//! What is followed: an existing process (`-p`), the whole machine (`-a`), a pid namespace of its
//! own.

use std::collections::HashSet;
use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::prelude::*;

/// Starts a shell whose script prints its pid, and runs the program `$0`. Returns the shell, its
/// pid and its standard input.
fn start_shell(script: &str) -> (Running, String, ChildStdin) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).arg(path("tiny")).stdin(Stdio::piped());
    let mut shell = Running::start(&mut shell);
    let lines = shell.child.stdin.take().expect("a pipe");
    let pid = shell.await_line();
    (shell, pid, lines)
}

#[apply(live_test)]
fn an_existing_process_is_followed_into_its_children() {
    // The shell prints its pid, and launches tiny for each line that it reads.
    let (shell, pid, mut lines) = start_shell("echo $$; while read -r line; do \"$0\"; done");
    let record = Record::new().flags(&["-p", &pid, "--duration", "2"]);
    let mut recorder = Running::start(&mut record.command([] as [&str; 0]));
    while !recorder.has_ended() {
        writeln!(lines).expect("the shell reads");
        sleep(Duration::from_millis(20));
    }
    recorder.finish().expect_code(0);
    drop(lines);
    shell.finish().expect_code(0);

    let launches = launches(&record.file());
    let count = launches.0.len();
    assert!(count > 20, "about a hundred were launched, {count} seen");
    // The recording may end in the midst of a launch. It has only the children of the shell, not
    // the shell itself.
    let ended = &launches.0[..count - 1];
    assert!(ended.iter().all(|launch| launch.programs() == ["tiny"]));
    let parents: HashSet<_> = launches.0.iter().map(|launch| launch.parent()).collect();
    assert_eq!(parents.len(), 1, "all of one parent");
    let incomplete = ended.iter().find(|launch| launch.phase_ns("reap").is_none());
    assert!(incomplete.is_none(), "incomplete: {:?}", incomplete.map(Launch::json));
}

#[apply(live_test)]
fn following_a_process_ends_when_the_process_ends() {
    let mut target = Running::start(Command::new("cat").stdin(Stdio::piped()));
    let record = Record::new().flags(&["-p", &target.pid().to_string()]);
    let mut recorder = Running::start(&mut record.command([] as [&str; 0]));
    // The recorder creates its file after it has attached.
    await_some("a recording", || record.file().exists().then_some(()));
    sleep(Duration::from_secs(1));
    assert!(!recorder.has_ended(), "the recorder runs as long as the process");
    let reader = rusqlite::Connection::open(record.file()).expect("a recording");
    reader.execute_batch("BEGIN; SELECT count(*) FROM launch").expect("a transaction");
    drop(target.child.stdin.take());
    recorder.finish().expect_code(0).expect_errors(["keep ", "-wal next to the recording"]);
    target.finish().expect_code(0);
}

#[apply(live_test)]
fn a_missing_process_is_an_error() {
    // The largest pid that a 64-bit kernel accepts in pid_max is one less.
    let record = Record::new().flags(&["-p", "4194304"]);
    let finished = run(&mut record.command([] as [&str; 0])).expect_code(125);
    finished.expect_errors(["4194304"]);
}

/// Slow, because everything that other tests launch meanwhile is recorded and read, too.
#[apply(live_test)]
fn the_whole_machine_is_recorded_for_a_given_time() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mine = directory.path().join("mine");
    std::fs::copy(path("tiny"), &mine).expect("a program that only this test runs");
    let record = Record::new().flags(&["-a", "--duration", "2"]);
    let start = Instant::now();
    let mut recorder = Running::start(&mut record.command([] as [&str; 0]));
    while !recorder.has_ended() {
        run(Command::new(path("storm")).arg("97").arg(&mine)).expect_code(0);
    }
    recorder.finish().expect_code(0);
    assert!(start.elapsed() >= Duration::from_secs(2), "the recorder ended early");

    let report = report(&record.file());
    let seen = row_of(&report, "mine");
    assert!(seen["count"].as_u64().expect("a number") > 97, "{seen}");
    assert_eq!(report["lost_events"], 0);
}

#[apply(live_test)]
#[needs(PidNs)]
fn pids_are_those_of_the_recorders_own_namespace() {
    let record = Record::new().through(&["unshare", "--pid", "--fork", "--mount-proc"]);
    let script = "echo root=$$; sh -c 'echo child=$$; exit 3'; exit 0";
    let (truth, launches) = record.truth_and_launches(["sh", "-c", script]);
    assert!(truth.one("root") < 100, "not in a namespace of its own");
    assert_eq!(launches.root().pid(), Some(truth.one("root")));
    assert_eq!(launches.with_pid(truth.one("child")).exit_code(), Some(3));
}

/// The processes of the container and their wait calls see other pids than the recorder.
#[apply(live_test)]
#[needs(PidNs)]
fn a_container_is_recorded_from_outside_of_its_pid_namespace() {
    let script = "echo first=$$; for i in 1 2 3; do \"$0\"; done; sh -c 'echo last=$$; exit 3'; exit 0";
    let words = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script].into_iter();
    let tiny = word("tiny");
    let command = words.chain([tiny.as_str()]);
    let (truth, launches) = Record::new().truth_and_launches(command);
    assert_eq!((truth.one("first"), truth.one("last")), (1, 5), "pids inside");

    let first = launches.only(|launch| launch.parent() == Some(launches.root().id()));
    let children = launches.children_of(first);
    let programs: Vec<_> = children.iter().map(|child| child.programs().concat()).collect();
    assert_eq!(programs, ["tiny", "tiny", "tiny", "sh"]);
    assert_eq!(children[3].exit_code(), Some(3));
    // The pids of the recorder's namespace differ.
    let pids: HashSet<_> = launches.0.iter().map(|launch| launch.pid()).collect();
    assert_eq!(pids.len(), launches.0.len(), "{pids:?}");
    assert!(!pids.contains(&Some(truth.one("first"))), "{pids:?}");
    let incomplete = children.iter().find(|child| child.phase_ns("reap").is_none());
    let incomplete = incomplete.map(|child| child.json());
    assert_eq!(incomplete, None, "the end of a wait is known");
}
