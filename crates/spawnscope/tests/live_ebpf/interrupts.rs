//! Ctrl-C, from a keyboard and by kill, and the other signals that end a process by default; and a
//! recorder that is killed outright.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::prelude::*;
use crate::support::pty::Session;

const INTERRUPTED: i32 = 128 + 2;

/// Waits until a shell has become the `sleep` that it executes.
fn await_sleep(pid: Pid) {
    await_some("sleep", || {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (name == "sleep\n").then_some(())
    });
}

#[apply(live_test)]
fn one_interrupt_ends_the_command_and_writes_the_report() {
    let record = Record::new();
    let running = Running::start(&mut record.command(["sh", "-c", "echo $$; exec sleep 60"]));
    await_sleep(Pid::from_raw(running.await_line().parse().expect("a pid")));
    kill(running.pid(), Signal::SIGINT).expect("the recorder runs");
    let finished = running.finish().expect_code(INTERRUPTED);
    finished.expect_errors(["sleep"]);
    assert_eq!(launches(&record.file()).root().exit_signal(), Some("SIGINT"));
}

#[apply(live_test)]
#[needs(Pty)]
fn control_c_on_a_terminal_ends_the_command_and_writes_the_report() {
    let record = Record::new();
    let file = record.directory().join("pid");
    let script = format!("echo $$ >{}; exec sleep 60", file.display());
    let mut session = Session::start(&record.command(["sh", "-c", &script]));
    let pid = await_some("a pid", || std::fs::read_to_string(&file).ok()?.trim().parse().ok());
    await_sleep(Pid::from_raw(pid));
    session.type_keys(b"\x03");
    let (status, screen) = session.finish();
    assert_eq!(status.signal(), Some(libc::SIGINT), "{}", String::from_utf8_lossy(&screen));
    let has_report = screen.windows(5).any(|bytes| bytes == b"sleep");
    assert!(has_report, "no report on the screen");
    assert_eq!(launches(&record.file()).root().exit_signal(), Some("SIGINT"));
}

/// Starts a recorder of a command that ignores interrupts. Returns both.
fn start_ignoring(record: &Record) -> (Running, Pid) {
    let ignoring = "trap '' INT; echo $$; exec sleep 60 >/dev/null 2>&1";
    let running = Running::start(&mut record.command(["sh", "-c", ignoring]));
    let command = Pid::from_raw(running.await_line().parse().expect("a pid"));
    await_sleep(command);
    (running, command)
}

#[apply(live_test)]
fn slow_interrupts_only_reach_the_command_however_many() {
    let record = Record::new();
    let (mut running, command) = start_ignoring(&record);
    for _ in 0..3 {
        kill(running.pid(), Signal::SIGINT).expect("the recorder runs");
        sleep(Duration::from_millis(600));
    }
    assert!(!running.has_ended(), "the recorder continues");
    kill(command, Signal::SIGTERM).expect("the command runs");
    running.finish().expect_code(128 + 15);
    assert_eq!(launches(&record.file()).root().exit_signal(), Some("SIGTERM"));
}

/// Each signal that ends a process by default, except those that a fault raises and those that
/// cannot be caught.
#[apply(live_test)]
fn no_signal_ends_the_recorder_and_each_reaches_the_command() {
    const SIGNALS: [&str; 13] =
        ["HUP", "USR1", "USR2", "ALRM", "VTALRM", "PROF", "XCPU", "XFSZ", "PWR", "IO", "STKFLT", "RTMIN", "RTMAX"];
    let record = Record::new().flags(&["-q"]);
    let traps: Vec<String> = SIGNALS.map(|signal| format!("trap 'echo {signal}' {signal};")).into();
    let script = format!("{} trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done", traps.join(" "));
    let running = Running::start(&mut record.command(["bash", "-c", &script]));
    let mut expected = "ready\n".to_owned();
    for signal in SIGNALS.into_iter().chain(["TERM"]) {
        await_some("a trap", || (running.stdout_so_far() == expected.as_bytes()).then_some(()));
        let sent =
            std::process::Command::new("bash").args(["-c", &format!("kill -{signal} {}", running.pid())]).status();
        assert!(sent.expect("bash").success(), "{signal}");
        expected += &format!("{signal}\n");
    }
    running.finish().expect_code(9);
}

#[apply(live_test)]
fn a_file_size_limit_ends_the_recording_and_not_the_command() {
    let record = Record::new().through(&["bash", "-c", "ulimit -f 200; exec \"$@\"", "limited"]);
    // The first launches are written before the later ones exceed the limit. Then the shell waits
    // for the end of its input.
    let script = "\"$0\" 101 \"$1\"; sleep 2; \"$0\" 3001 \"$1\"; read -r line; exit 7";
    let command = ["sh", "-c", script, &word("storm"), &word("tiny")];
    let mut running = Running::start(record.command(command).stdin(Stdio::piped()));
    let input = running.child.stdin.take();
    await_some("the message", || {
        let message = String::from_utf8_lossy(&running.written_so_far("stderr")).into_owned();
        message.contains("recording ends early").then_some(())
    });
    drop(input);
    let finished = running.finish().expect_code(7);
    finished.expect_errors(["ulimit -f", "the command is not affected"]);
    let kept = report(&record.file())["launches"].as_u64();
    assert!(kept > Some(0), "what was written is kept");
}

#[apply(live_test)]
fn three_interrupts_within_a_second_end_the_recorder_and_not_the_command() {
    let record = Record::new();
    let (mut running, command) = start_ignoring(&record);
    for _ in 0..2 {
        kill(running.pid(), Signal::SIGINT).expect("the recorder runs");
        sleep(Duration::from_millis(150));
    }
    assert!(!running.has_ended(), "two interrupts are left to the command");
    kill(running.pid(), Signal::SIGINT).expect("the recorder runs");
    let finished = running.finish();
    kill(command, None).expect("the command continues");
    kill(command, Signal::SIGKILL).expect("this test ends the command");
    let finished = finished.expect_code(INTERRUPTED);
    // The report is partial.
    finished.expect_errors(["keeps running", "sleep"]);
    assert_eq!(report(&record.file())["unfinished"], 1);
}

#[apply(live_test)]
fn a_killed_recorder_leaves_its_recording_and_the_command() {
    let record = Record::new();
    let proof = record.directory().join("proof");
    // The script makes some launches, waits until their batch is written, makes more launches
    // without a recorder, and writes a proof.
    let script = format!(
        "\"$0\" 101 \"$1\"; sleep 3; echo ready; sleep 1; \"$0\" 101 \"$1\"; echo unharmed >{}",
        proof.display()
    );
    let traced = ["sh", "-c", &script, &word("storm"), &word("tiny")];
    let running = Running::start(&mut record.command(traced));
    await_some("the command's first half", || running.stdout_so_far().ends_with(b"ready\n").then_some(()));
    kill(running.pid(), Signal::SIGKILL).expect("the recorder runs");
    running.finish().expect_code(128 + 9);

    await_some("the command's end", || {
        std::fs::read_to_string(&proof).is_ok_and(|text| text == "unharmed\n").then_some(())
    });
    let report = report(&record.file());
    assert!(report["ended"].is_null(), "the recorder wrote no end");
    assert_eq!(row_of(&report, "tiny")["count"], 101, "everything up to the last batch");
}
