//! `record --with`: a command, and a daemon that ran before it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::prelude::*;

/// A Python daemon that serves each request in a thread of its own, by running a program, as build
/// daemons do.
const DAEMON: &str = "
import ctypes, socket, subprocess, sys, threading
ctypes.CDLL(None).prctl(15, sys.argv[2].encode(), 0, 0, 0)
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(8)
def serve(client):
    subprocess.run(['sleep', client.recv(16).decode()])
    client.sendall(b'done')
    client.close()
while True:
    threading.Thread(target=serve, args=[server.accept()[0]]).start()
";
/// A Python client that makes two requests, and waits for each answer in the call that its second
/// argument names.
const CLIENT: &str = "
import select, socket, sys
for _ in range(2):
    client = socket.socket(socket.AF_UNIX)
    client.connect(sys.argv[1])
    client.sendall(b'0.2')
    if sys.argv[2] == 'epoll':
        waiting = select.epoll()
        waiting.register(client, select.EPOLLIN)
        waiting.poll()
    elif sys.argv[2] == 'poll':
        waiting = select.poll()
        waiting.register(client, select.POLLIN)
        waiting.poll()
    assert client.recv(16) == b'done'
";
const PYTHON: &str = "/usr/bin/python3";

/// A daemon that ends with the test.
struct Daemon {
    /// Of this daemon only, since other tests run beside this one.
    name: &'static str,
    process: Child,
    directory: TempDir,
}

impl Daemon {
    fn start(name: &'static str) -> Daemon {
        let directory = TempDir::new().expect("a directory");
        let mut command = Command::new(PYTHON);
        command.args(["-c", DAEMON]).arg(directory.path().join("socket")).arg(name);
        let process = command.stdout(Stdio::null()).spawn().expect("the daemon starts");
        let daemon = Daemon { name, process, directory };
        await_some("the daemon's socket", || daemon.socket().exists().then_some(()));
        daemon
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("socket")
    }

    /// Records two requests. Returns the recording's launches.
    fn request(&self, flags: &[&str], call: &str) -> (Record, Launches) {
        let record = Record::new().flags(flags);
        let socket = self.socket().display().to_string();
        record.run([PYTHON, "-c", CLIENT, &socket, call]).expect_code(0);
        let launches = launches(&record.file());
        (record, launches)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[apply(live_test)]
#[needs(Python)]
fn what_a_daemon_launches_for_the_command_is_recorded() {
    let daemon = Daemon::start("spawning-daemon");
    for with in [daemon.process.id().to_string().as_str(), daemon.name] {
        let (record, launches) = daemon.request(&["--with", with], "recv");
        let daemon_launches = launches.all(|launch| launch.command() == "sleep");
        assert_eq!(daemon_launches.len(), 2, "--with {with}");
        let is_child_of_command =
            |launch: &&Launch| launch.parent().is_none() || launch.parent() == Some(launches.root().id());
        assert!(!daemon_launches.iter().any(is_child_of_command), "its parent is the daemon");
        // The client waits for the daemon, and the daemon for the programs that it launches.
        let report = report(&record.file());
        let sleep = row_of(&report, "sleep");
        assert!(sleep["depends_ns"].as_u64() > Some(350_000_000), "{sleep}");
        let error = report["replay_error"].as_f64();
        assert!(error.is_some_and(|error| error.abs() < 0.05), "{error:?}: {report}");
    }
}

/// Returns the wait of the client for the daemon's answers, in poll or epoll_wait.
fn wait_for_answers(report: &Value, call: &str) -> Value {
    let waits = report["waits"].as_array().expect("a list");
    let wait = waits.iter().find(|wait| {
        let syscall = wait["syscall"].as_str().unwrap_or_default();
        syscall.starts_with(call) && wait["object"]["kind"] == "unix_socket"
    });
    let wait = wait.unwrap_or_else(|| panic!("{call}: {waits:?}"));
    assert!(wait["total_ns"].as_u64() > Some(350_000_000), "{wait}");
    wait.clone()
}

#[apply(live_test)]
#[needs(Python)]
fn a_client_that_polls_waits_for_what_the_daemon_launches() {
    let daemon = Daemon::start("polling-daemon");
    for call in ["poll", "epoll"] {
        let (record, _) = daemon.request(&["--with", daemon.name], call);
        let report = report(&record.file());
        let sleep = row_of(&report, "sleep");
        assert!(sleep["depends_ns"].as_u64() > Some(350_000_000), "{call}: {sleep}");
        let wait = wait_for_answers(&report, call);
        assert_eq!(wait["on"][0]["command"], daemon.name, "{wait}");
    }
}

#[apply(live_test)]
#[needs(Python)]
fn a_client_that_polls_waits_for_a_daemon_that_is_not_recorded() {
    let daemon = Daemon::start("outside-daemon");
    for call in ["poll", "epoll"] {
        let (record, _) = daemon.request(&[], call);
        let wait = wait_for_answers(&report(&record.file()), call);
        assert_eq!(wait["on"][0]["process"], daemon.name, "{wait}");
    }
}

#[apply(live_test)]
fn a_daemon_that_does_not_run_is_an_error_before_the_command_starts() {
    for (with, why) in [
        // Above the largest pid that Linux assigns.
        ("4999999", "no process has this pid"),
        ("no-such-daemon", "no process has this name"),
    ] {
        let refused = spawnscope(["record", "--with", with, "--", "echo", "ran"]).expect_code(125);
        refused.expect_errors([why]);
        assert!(!refused.output().contains("ran"));
    }
    let refused = spawnscope(["record", "--collector", "ptrace", "--with", "1", "--", "true"]).expect_code(125);
    refused.expect_errors(["--with"]);
}
