//! How `hold` ends: with the command's status, or with 125 to 127 if there is none.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::holding::{await_end, hold, hold_and_continue, hold_command, run_hold, send, state};
use crate::support::inherited::assert_inherits_the_same_through;
use crate::support::job_control::assert_a_shell_sees_stops_through;
use crate::support::prelude::*;

#[apply(live_test)]
fn a_command_under_hold_inherits_what_it_would_inherit_without_it() {
    assert_inherits_the_same_through(&["hold", "--match", "nosuch"], |_| true);
}

#[apply(live_test)]
#[needs(Pty)]
fn a_shell_sees_that_the_command_under_hold_has_stopped() {
    assert_a_shell_sees_stops_through(&["hold", "--match", "nosuch"]);
}

#[apply(live_test)]
fn a_command_killed_by_a_signal_ends_hold_by_the_same_signal() {
    hold_and_continue(["sh", "-c", "kill -KILL $$"]).1.expect_signal(libc::SIGKILL);
}

#[apply(live_test)]
fn the_exit_status_is_the_commands_own() {
    for (script, code) in [("exit 7", 7), ("exit 0", 0)] {
        let finished = hold_and_continue(["sh", "-c", script]).1.expect_code(code);
        assert_eq!(finished.output(), "", "messages go to standard error");
    }
}

#[apply(live_test)]
fn a_command_that_cannot_run_has_the_exit_status_that_a_shell_gives() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    fs::write(&file, "#!/no/such/interpreter\n").expect("a file");
    for flags in [&[][..], &["--match", "*"]] {
        let path = file.to_str().expect("text");
        run_hold([flags, &["no-such-command-anywhere"]].concat()).expect_code(127).expect_errors(["not found"]);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode;
        fs::set_permissions(&file, permissions(0o644)).expect("chmod");
        run_hold([flags, &[path]].concat()).expect_code(126);
        fs::set_permissions(&file, permissions(0o755)).expect("chmod");
        run_hold([flags, &[path]].concat()).expect_code(127).expect_errors(["interpreter"]);
    }
    run_hold(["--match", "[", "true"]).expect_code(125).expect_errors(["'['"]);
    run_hold(["--match", "a", "--nth", "0", "true"]).expect_code(125);
}

#[apply(live_test)]
fn a_process_that_is_killed_while_held_is_reported() {
    let (running, pid) = hold(["sleep", "60"]);
    send(pid, Signal::SIGKILL);
    let errors = running.finish().expect_code(128 + 9).errors();
    assert_contains(&errors, [&format!("process {pid} ended while held (SIGKILL)")]);
}

#[apply(live_test)]
fn a_launch_that_is_killed_while_held_leaves_the_command_running() {
    let (running, pid) = hold(["--match", "sleep 60", "sh", "-c", "sleep 60; echo $?; exit 5"]);
    send(pid, Signal::SIGKILL);
    let finished = running.finish().expect_code(5);
    let errors = finished.errors();
    assert!(errors.contains(&format!("process {pid} ended while held")), "{errors}");
    assert!(finished.output().contains("137"), "{}", finished.output());
}

#[apply(live_test)]
fn a_terminating_signal_continues_the_held_process_and_ends_it() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let (running, pid) = hold(["sleep", "60"]);
        send(running.pid(), signal);
        running.finish().expect_code(128 + signal as i32);
        await_end(pid);
    }
    // The signal is sent to the command; processes that it launched continue.
    let (running, pid) = hold(["--match", "sleep 0", "sh", "-c", "trap 'exit 9' TERM; sleep 0; exit 1"]);
    send(running.pid(), Signal::SIGTERM);
    running.finish().expect_code(9);
    await_end(pid);
}

#[apply(live_test)]
fn other_signals_are_forwarded_and_continue_nothing() {
    let (running, pid) = hold(["sleep", "60"]);
    send(running.pid(), Signal::SIGUSR1);
    await_some("the signal", || is_pending(pid, Signal::SIGUSR1).then_some(()));
    assert_eq!(state(pid), Some('T'));
    send(pid, Signal::SIGCONT);
    running.finish().expect_code(128 + Signal::SIGUSR1 as i32);
}

fn is_pending(pid: Pid, signal: Signal) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let mask = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16);
    mask.expect("a mask") & 1 << (signal as u64 - 1) != 0
}

#[apply(live_test)]
fn the_command_outlives_a_killed_tracer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let proof = directory.path().join("proof");
    let script = "echo $$; while [ ! -e \"$0.go\" ]; do sleep 0.05; done; true; echo unharmed >\"$0\"";
    let mut command = hold_command(["--match", "nothing*", "sh", "-c", script]);
    let running = Running::start(command.arg(&proof));
    running.await_line();
    send(running.pid(), Signal::SIGKILL);
    running.finish().expect_code(128 + 9);
    fs::write(proof.with_extension("go"), "").expect("a file");
    await_some("the command's end", || fs::read_to_string(&proof).is_ok_and(|text| text == "unharmed\n").then_some(()));
}

#[apply(live_test)]
#[needs(Strace)]
fn a_command_that_another_tracer_traces_is_refused() {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-o", "/dev/null", SPAWNSCOPE, "hold", "--", "echo", "ran"]);
    let finished = run(&mut strace).expect_code(125);
    assert_eq!(finished.output(), "", "the command must not run unheld");
    finished.expect_errors(["already traces it"]);
}
