//! The worker processes, which make the launches: with every mechanism, a worker detects a child
//! that behaves incorrectly.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use nix::sys::resource::{Resource, getrlimit};
use serde_json::{Value, json};

use crate::support::prelude::*;

const MECHANISMS: &str = "ForkExit ForkExec VforkExec Clone Clone3 CloneDetached PosixSpawn PosixSpawnPipe System Popen \
                          Vspawn VspawnPrepared VspawnPipe VspawnDetached VspawnCloseOthers";
const READERS: [&str; 3] = ["PosixSpawnPipe", "Popen", "VspawnPipe"];

/// A worker process, which the test controls as `bench` does.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(memory_bytes: u64, open_files: u64) -> Worker {
        Worker::with_limit(memory_bytes, open_files, None)
    }

    fn with_limit(memory_bytes: u64, open_files: u64, files_limit: Option<u64>) -> Worker {
        let setting = json!({
            "memory_bytes": memory_bytes, "pages": "Small", "open_files": open_files, "files_limit": files_limit
        });
        let mut child = Command::new(SPAWNSCOPE)
            .args(["lab-worker", &setting.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a worker");
        let input = child.stdin.take().expect("its input");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut worker = Worker { child, input, output };
        assert!(worker.reply()["Ok"].is_array(), "it is ready");
        worker
    }

    fn ask(&mut self, request: &Value) -> Value {
        writeln!(self.input, "{request}").expect("it listens");
        self.reply()
    }

    fn launch(&mut self, mechanism: &str, argv: &[&str], status: i32, output: &str) -> Value {
        let program = json!({"argv": argv, "status": status, "output": output});
        self.ask(&json!({"Launch": {"mechanism": mechanism, "program": program, "count": 3}}))
    }

    fn reply(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    fn end(self) {
        let Worker { mut child, input, .. } = self;
        drop(input);
        assert!(child.wait().expect("its end").success(), "it ends with its input");
    }
}

#[apply(live_test)]
fn every_mechanism_launches_and_checks_the_exit_status() {
    let mut worker = Worker::start(0, 0);
    for mechanism in MECHANISMS.split(' ') {
        let good = worker.launch(mechanism, &["/bin/sh", "-c", "exit 7"], 7, "");
        let values = good["Ok"].as_array().unwrap_or_else(|| panic!("{mechanism}: {good}"));
        let is_measured = values.len() == 5 && values[0].as_f64() > Some(0.0);
        assert!(is_measured, "{mechanism}: {good}");
        if mechanism != "ForkExit" {
            let bad = worker.launch(mechanism, &["/bin/sh", "-c", "exit 8"], 7, "");
            let reason = bad["Err"]["Invalid"].as_str().unwrap_or_else(|| panic!("{mechanism}: {bad}"));
            let expected = "ended with exit status: 8, not with exit status: 7";
            assert!(reason.contains(expected), "{mechanism}: {reason}");
        }
    }
    worker.end();
}

#[apply(live_test)]
fn the_output_of_a_child_is_compared() {
    let mut worker = Worker::start(0, 0);
    for mechanism in READERS {
        let argv = ["/bin/echo", "one word"];
        let good = worker.launch(mechanism, &argv, 0, "one word\n");
        assert!(good["Ok"].is_array(), "{mechanism}: {good}");
        let bad = worker.launch(mechanism, &argv, 0, "another\n");
        let reason = bad["Err"]["Invalid"].as_str().expect("a reason");
        assert!(reason.contains("one word"), "{mechanism}: {bad}");
    }
    worker.end();
}

/// A request for one launch makes just one. A request for several makes one more first, with cold
/// caches, which does not count.
#[apply(live_test)]
fn an_uncounted_launch_precedes_several_launches() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("launches");
    let script = format!("echo >>{}", file.display());
    let program = json!({"argv": ["/bin/sh", "-c", script], "status": 0, "output": ""});
    let mut worker = Worker::start(0, 0);
    for (count, launched) in [(1, 1), (2, 3), (5, 6)] {
        let answer = worker.ask(&json!({"Launch": {"mechanism": "VforkExec", "program": program, "count": count}}));
        assert!(answer["Ok"].is_array(), "{answer}");
        let written = std::fs::read_to_string(&file).expect("the file that the launches wrote");
        assert_eq!(written.lines().count(), launched, "{count}");
        std::fs::remove_file(&file).expect("the file exists");
    }
    worker.end();
}

/// The worker's files and pipes are close-on-exec. Children inherit other descriptors from this
/// test, unless the mechanism closes them.
#[apply(live_test)]
fn no_child_has_the_files_of_its_parent() {
    const OPEN: u64 = 50;
    let mut worker = Worker::start(0, OPEN);
    for mechanism in MECHANISMS.split(' ').filter(|mechanism| *mechanism != "ForkExit") {
        let limit = if mechanism == "VspawnCloseOthers" { 4 } else { OPEN };
        // The shell has the directory /proc/self/fd open while it lists its entries.
        let script = format!("set -- /proc/self/fd/*; test $# -le {limit}");
        let answer = worker.launch(mechanism, &["/bin/sh", "-c", &script], 0, "");
        assert!(answer["Ok"].is_array(), "{mechanism}: {answer}");
    }
    let pid = worker.child.id();
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files").count();
    assert!(open as u64 >= OPEN + 3, "the parent still has its own: {open}");
    worker.end();
}

#[apply(live_test)]
fn concurrent_children_are_all_waited_for() {
    let mut worker = Worker::start(0, 0);
    let paths: Vec<&str> = vec!["/bin/true"; 12];
    let answer = worker.ask(&json!({"Concurrent": {"paths": paths, "status": 0}}));
    assert_eq!(answer["Ok"].as_array().map(Vec::len), Some(12), "{answer}");
    let answer = worker.ask(&json!({"Concurrent": {"paths": ["/bin/false", "/bin/true", "/bin/true"], "status": 0}}));
    assert!(answer["Err"]["Invalid"].is_string(), "{answer}");
    let answer = worker.ask(&json!({"Concurrent": {"paths": paths, "status": 0}}));
    assert!(answer["Ok"].is_array(), "the failure has no later effect: {answer}");
    worker.end();
}

#[apply(live_test)]
fn children_inherit_the_open_file_limit_of_bench() {
    let (own_limit, _) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit");
    for (asked, expected) in [(None, own_limit), (Some(77), 77)] {
        let mut worker = Worker::with_limit(0, 0, asked);
        let check = format!("test $(ulimit -S -n) = {expected}");
        let answer = worker.launch("VforkExec", &["/bin/sh", "-c", &check], 0, "");
        assert!(answer["Ok"].is_array(), "{asked:?}: {answer}");
        worker.end();
    }
}

/// The kernel sends the parent-death signal when the thread that started the process has ended.
#[apply(live_test)]
fn launches_of_a_worker_die_with_the_thread_that_started_it() {
    let started = std::thread::spawn(|| {
        let mut worker = Worker::start(0, 0);
        let program = json!({"argv": ["/bin/sleep", "1000"], "status": 0, "output": ""});
        let request = json!({"Launch": {"mechanism": "VforkExec", "program": program, "count": 1}});
        writeln!(worker.input, "{request}").expect("it listens");
        let pid = worker.child.id();
        let sleeper = await_some("the worker's child", || {
            let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
            let child = children.trim().to_owned();
            let name = std::fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
            (name == "sleep\n").then_some(child)
        });
        (worker, sleeper)
    });
    let (mut worker, sleeper) = started.join().expect("a thread");
    worker.child.wait().expect("its end");
    await_some("the end of the launched process", || {
        let state = std::fs::read_to_string(format!("/proc/{sleeper}/stat")).unwrap_or_default();
        // An orphan whose new parent does not reap it counts as dead, too.
        (state.is_empty() || state.contains(") Z ")).then_some(())
    });
}
