//! `--run COMMAND`: the held process continues when the command has attached, and the command is
//! ended after the process.

use std::fs;

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use super::holding::{await_end, hold_command, send};

use crate::support::prelude::*;

/// Holds a program while a tool attaches to it, and waits for both.
fn hold_run(tool: &str, program: &str) -> Finished {
    hold_run_for(1, tool, program)
}

/// Like `hold_run`, with a grace time in fifths of a second.
fn hold_run_for(fifths: u32, tool: &str, program: &str) -> Finished {
    let grace = (f64::from(fifths) / 5.0).to_string();
    let mut command = hold_command(["--grace", &grace, "--run", tool]);
    Running::start(command.arg(path(program))).finish()
}

/// Returns a temporary directory and the path of a file in it, which does not exist yet.
fn temporary_file() -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("file");
    (directory, file.into_os_string().into_string().expect("text"))
}

#[apply(live_test)]
#[needs(Strace)]
fn strace_run_by_hold_misses_nothing() {
    let (_directory, file) = temporary_file();
    let errors = hold_run(&format!("strace -o {file} -p {{pid}}"), "tiny").expect_code(0).errors();
    assert!(errors.contains("attached: continuing process"), "{errors}");
    let log = fs::read_to_string(&file).expect("a log");
    assert!(log.contains("exit_group(0)") || log.contains("exit(0)"), "{log}");
}

#[apply(live_test)]
#[needs(Perf)]
fn perf_run_by_hold_samples_from_the_start() {
    let (_directory, file) = temporary_file();
    let errors = hold_run(&format!("perf record -o {file} -p {{pid}}"), "run_long").expect_code(0).errors();
    assert!(errors.contains("attached: continuing process"), "{errors}");
    let report = run(std::process::Command::new("perf").args(["report", "--stdio", "-i", &file])).expect_code(0);
    assert!(report.output().contains("run_long"), "{}", report.output());
}

#[apply(live_test)]
#[needs(Gdb)]
fn gdb_run_by_hold_stops_at_main() {
    let (_directory, file) = temporary_file();
    let gdb = format!(
        "gdb -nx -batch -p {{pid}} -ex 'handle SIGCONT nostop noprint' -ex 'break main' -ex continue -ex 'info symbol $pc' >{file}"
    );
    hold_run(&gdb, "run_base").expect_code(0);
    let output = fs::read_to_string(&file).expect("the output of gdb");
    assert!(output.lines().any(|line| line.starts_with("main")), "{output}");
}

#[apply(live_test)]
fn a_run_command_that_fails_is_reported_and_the_process_continues() {
    for (tool, how) in
        [("exit 3", "exit status 3"), ("kill -TERM $$", "SIGTERM"), ("no-such-tool {pid}", "exit status 127")]
    {
        let finished =
            Running::start(&mut hold_command(["--run", tool, "sh", "-c", "echo ran; exit 5"])).finish().expect_code(5);
        let errors = finished.errors();
        assert!(errors.contains(&format!("the --run command ended ({how})")), "{errors}");
        assert_eq!(finished.output(), "ran\n");
    }
}

/// Slow, because it waits for the whole limit of 10 s: a variable that shortens it would be an
/// interface for tests only.
#[apply(live_test)]
fn a_run_command_that_never_attaches_delays_the_process_for_a_limited_time() {
    let errors = hold_run("sleep 60", "tiny").expect_code(0).errors();
    assert!(errors.contains("did not attach within 10 s"), "{errors}");
}

#[apply(live_test)]
#[needs(Strace)]
fn a_run_command_that_does_not_end_is_interrupted_or_else_terminated() {
    for (trap, sent, unused) in
        [("", "sending SIGINT", "SIGTERM"), ("trap '' INT; ", "sending SIGTERM", "left running")]
    {
        with_growing_lengths(|grace| {
            let tool = format!("{trap}strace -o /dev/null -p {{pid}}; sleep 60");
            let finished = hold_run_for(grace, &tool, "tiny").expect_code(0);
            finished.expect_errors([sent]);
            ok_if(!finished.errors().contains(unused), || finished.errors())
        });
    }
}

#[apply(live_test)]
#[needs(Strace)]
fn a_run_command_that_ignores_both_signals_is_left_running() {
    let errors =
        hold_run("trap '' INT TERM; strace -o /dev/null -p {pid}; exec sleep 60", "tiny").expect_code(0).errors();
    let (before, _) = errors.split_once(" is left running").expect("a notice");
    let (_, pid) = before.rsplit_once(' ').expect("a pid");
    let pid = Pid::from_raw(pid.parse().expect("a pid"));
    send(pid, Signal::SIGKILL);
    await_end(pid);
}

#[apply(live_test)]
fn a_run_command_does_not_read_the_commands_input() {
    let (_directory, file) = temporary_file();
    fs::write(&file, "for the command\n").expect("a file");
    let mut command = hold_command(["--run", "cat; exit 0 # {pid}", "cat"]);
    command.stdin(fs::File::open(&file).expect("the file"));
    let finished = Running::start(&mut command).finish().expect_code(0);
    assert_eq!(finished.output(), "for the command\n");
}

#[apply(live_test)]
#[needs(Strace)]
fn the_end_of_a_matched_launch_ends_its_run_command() {
    let script = "sleep 0; echo after; exit 6";
    let tool = "strace -o /dev/null -p {pid}; sleep 60";
    let flags = ["--match", "sleep 0", "--grace", "0.2", "--run", tool];
    let finished = Running::start(&mut hold_command(flags.iter().chain(&["sh", "-c", script]))).finish().expect_code(6);
    finished.expect_errors(["sending SIGINT"]);
    assert_eq!(finished.output(), "after\n");
}
