//! Signals to a child, to its group, and to all its descendants.

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use vspawn::{Child, Command, Stage, Stdio};

use crate::support::needs::Need;
use crate::support::{Test, expect_error, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_child_gets_the_signal_that_was_sent", signal),
        test("killing_a_group_also_kills_grandchildren", group),
        test("a_group_can_be_signalled_after_its_leader_was_waited_for", group_after_leader).needs(&[Need::PidfdGroup]),
        test("signalling_a_group_without_members_fails_with_esrch", ended_group).needs(&[Need::PidfdGroup]),
        test("without_its_own_group_a_child_cannot_be_signalled_as_a_group", no_group),
        test("killing_a_tree_kills_all_descendants", tree),
        test("kill_tree_does_nothing_after_the_child_was_waited_for", tree_after_wait),
    ]
}

fn signal() {
    for signal in [libc::SIGTERM, libc::SIGUSR2, libc::SIGKILL] {
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        child.signal(signal).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
    }
    let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    expect_error(child.signal(1000), Stage::Kill, libc::EINVAL);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Starts a shell that prints the pids of its descendants, one per line, and waits for the first
/// `count` pids. Returns the shell and its output. All these processes keep the output open.
fn start_family(command: &mut Command, script: &str, count: usize) -> (Child, BufReader<vspawn::ChildStdout>) {
    let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..count {
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        line.trim().parse::<u32>().unwrap();
    }
    (child, lines)
}

const FAMILY: &str = "sleep 1000 & echo $!; (sleep 1000 & echo $!; wait) & wait";

/// Checks that all processes have ended: only then does their output end.
fn assert_all_ended(mut lines: BufReader<vspawn::ChildStdout>) {
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    assert_eq!(rest, "");
}

fn group() {
    for session in [false, true] {
        let mut command = Command::new("/bin/sh");
        if session {
            command.new_session(true)
        } else {
            command.process_group(0)
        };
        let (mut child, lines) = start_family(&mut command, FAMILY, 2);
        child.signal_group(libc::SIGKILL).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_all_ended(lines);
    }
}

/// Signals a group whose only member was waited for.
fn ended_group() {
    let mut child = Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap();
    child.signal_group(libc::SIGKILL).unwrap();
    child.wait().unwrap();
    expect_error(child.signal_group(libc::SIGKILL), Stage::Kill, libc::ESRCH);
}

fn group_after_leader() {
    let mut command = Command::new("/bin/sh");
    let (mut child, lines) = start_family(command.process_group(0), "sleep 1000 & echo $!", 1);
    assert!(child.wait().unwrap().success());
    child.signal_group(libc::SIGTERM).unwrap();
    assert_all_ended(lines);
}

fn no_group() {
    let mut child = Command::new("/bin/true").spawn().unwrap();
    expect_error(child.signal_group(libc::SIGTERM), Stage::Kill, libc::EINVAL);
    child.wait().unwrap();
}

fn tree() {
    for _ in 0..10 {
        let mut command = Command::new("/bin/sh");
        // Some descendants have their own session, which a signal to the child's group does not
        // reach.
        let script = "setsid sleep 1000 & (setsid sh -c 'sleep 1000 & echo $!; wait' & wait) & wait";
        let (mut child, lines) = start_family(&mut command, script, 1);
        // The first sleep, the subshell, the shell in its own session, and that shell's sleep.
        assert_eq!(child.kill_tree().unwrap(), 4);
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
        assert_all_ended(lines);
    }
    let mut alone = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
    assert_eq!(alone.kill_tree().unwrap(), 0);
    assert!(alone.wait_timeout(Duration::from_secs(100)).unwrap().is_some());
}

fn tree_after_wait() {
    let mut child = Command::new("/bin/true").spawn().unwrap();
    child.wait().unwrap();
    assert_eq!(child.kill_tree().unwrap(), 0);
}
