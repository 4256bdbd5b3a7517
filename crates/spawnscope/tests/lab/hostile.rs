//! Machines that lack or forbid something (no compiler, directories without execution, a scanner of
//! executables), and signals.

use std::os::unix::fs::symlink;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::bench::{BRIEF, bench_command, notes, only_experiment, rows};
use crate::support::prelude::*;
use crate::support::pty::Session;
use crate::support::workloads;

/// Runs experiments with a PATH that leads only to these programs, and returns the report.
fn run_with_programs(experiments: &[&str], programs: &[&str]) -> Value {
    let directory = tempfile::tempdir().expect("a directory");
    for program in programs {
        symlink(format!("/usr/bin/{program}"), directory.path().join(program)).expect("a link");
    }
    let finished = run(bench_command(&["--json"]).args(experiments).env("PATH", directory.path()));
    finished.expect_code(0).json()
}

#[apply(live_test)]
fn without_any_program_only_the_tiny_program_is_measured() {
    let report = run_with_programs(&["parent-size", "loader", "first-launch"], &[]);
    let experiments = report["experiments"].as_array().expect("experiments");
    assert!(notes(&experiments[2]).contains("true not found: only the tiny program"));
    assert!([0, 2].iter().all(|number| !rows(&experiments[*number]).is_empty()));
    assert!(notes(&experiments[0]).contains("bash or true not found"));
    assert!(rows(&experiments[1]).is_empty() && !notes(&experiments[1]).contains("each library"));
    assert_contains(&notes(&experiments[1]), ["true not found: the search of empty directories is skipped"]);
}

/// Takes longer than other tests, because each new file waits 20 ms for a scanner with one thread:
/// only a real one shows that launches queue for it, and that the second launch of a file does not
/// wait.
#[apply(live_test)]
#[needs(Fanotify)]
fn first_launches_wait_for_a_scanner_in_a_queue_and_second_ones_do_not() {
    const SCAN_NS: f64 = 20e6;
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(workloads::path("scans_new_files"));
    command.arg(directory.path()).arg(SPAWNSCOPE).args(BRIEF).args(["--json", "first-launch"]);
    let experiment = only_experiment(&run(&mut command).expect_code(0).json());
    for row in rows(&experiment).iter().filter(|row| row["program"] == "tiny") {
        let at_once = row["at_once"].as_f64().expect("a number");
        let [first, second] =
            ["first_last_ns", "second_last_ns"].map(|column| row[column]["low"].as_f64().expect("an interval"));
        // The concurrent launches do not all start at the same moment, so half of their delays is
        // enough.
        let queue = SCAN_NS * (at_once / 2.0).max(1.0);
        assert!(first >= queue && second < queue, "one after the other: {row}");
    }
}

#[apply(live_test)]
fn signals_end_the_run_with_the_results_so_far() {
    for (signal, status) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143), (Signal::SIGHUP, 129)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("env");
        command.args(["--default-signal", SPAWNSCOPE]);
        command.args(["bench", "--seconds", "100", "--json", "growth", "mechanisms"]);
        let running = Running::start(command.env("TMPDIR", directory.path()));
        await_worker(&running);
        kill(running.pid(), signal).expect("it runs");
        let finished = running.finish().expect_code(status);
        let report = finished.json();
        assert_eq!(report["interrupted"], true);
        assert_eq!(report["not_run"], json!(["mechanisms"]));
        only_experiment(&report);
        let remaining = std::fs::read_dir(directory.path()).expect("the directory").count();
        assert_eq!(remaining, 0, "{signal}: the directory of bench is removed");
    }
}

#[apply(live_test)]
#[needs(MountNs)]
fn a_report_in_which_nothing_was_measured_is_a_failure() {
    let script = "umount --lazy /proc && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh", SPAWNSCOPE]);
    command.args(["bench", "--quick", "--json", "growth"]);
    let finished = run(&mut command).expect_code(125);
    finished.expect_errors(["nothing could be measured"]);
    let report = finished.json();
    assert!(rows(&only_experiment(&report)).is_empty());
}

/// Started with ignored signals, as by `nohup`, `bench` keeps them ignored. Other signals end the
/// run.
#[apply(live_test)]
fn ignored_signals_stay_ignored() {
    let mut command = Command::new("env");
    let script = "trap '' INT HUP; exec \"$@\"";
    command.args(["--default-signal", "sh", "-c", script, "sh", SPAWNSCOPE]);
    command.args(["bench", "--seconds", "100", "growth", "mechanisms"]);
    let running = Running::start(&mut command);
    await_worker(&running);
    let ignored = signal_mask(&running, "SigIgn:");
    let caught = signal_mask(&running, "SigCgt:");
    for signal in [Signal::SIGINT, Signal::SIGHUP] {
        let bit = 1 << (signal as u64 - 1);
        assert!(ignored & bit != 0 && caught & bit == 0, "{signal}");
    }
    kill(running.pid(), Signal::SIGTERM).expect("it runs");
    let text = running.finish().expect_code(143).output();
    assert_contains(&text, ["interrupted: 1 experiment was not run (mechanisms)"]);
}

fn signal_mask(running: &Running, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    u64::from_str_radix(line.expect("the line").trim(), 16).expect("a mask")
}

fn await_worker(running: &Running) -> Pid {
    await_child(running.pid(), |line| line.contains("lab-worker\0{"))
}

/// `bench` waits until bash has filled a variable. It must not wait forever for a bash that hangs.
#[apply(live_test)]
fn ctrl_c_ends_the_wait_until_bash_is_filled() {
    let directory = tempfile::tempdir().expect("a directory");
    let bash = directory.path().join("bash");
    write_program(&bash, "#!/bin/sh\nexec sleep 1000\n");
    symlink("/usr/bin/true", directory.path().join("true")).expect("a link");
    // The tests may run as a background job, with Ctrl-C ignored.
    let mut command = Command::new("/usr/bin/env");
    command.args(["--default-signal", SPAWNSCOPE]).args(BRIEF);
    command.args(["--json", "parent-size", "--max", "0"]);
    let path = std::env::join_paths([directory.path(), "/usr/bin".as_ref()]).expect("a path");
    let running = Running::start(command.env("PATH", path));
    await_child(running.pid(), |line| line.starts_with("sleep"));
    kill(running.pid(), Signal::SIGINT).expect("it runs");
    let report = running.finish().expect_code(130).json();
    assert_eq!(report["interrupted"], true);
}

/// After a worker was killed, `bench` starts a new worker for the next case.
#[apply(live_test)]
fn a_killed_worker_spoils_only_one_case() {
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["bench", "--quick", "--seconds", "2", "--json", "child-kind"]);
    let running = Running::start(&mut command);
    let worker = await_worker(&running);
    // The worker may be killed only after it has reported that it is ready, as its first launch
    // shows.
    await_some("a launch", || {
        let children = std::fs::read_to_string(format!("/proc/{worker}/task/{worker}/children")).ok()?;
        (!children.is_empty()).then_some(())
    });
    kill(worker, Signal::SIGKILL).expect("it runs");
    let experiment = only_experiment(&running.finish().expect_code(0).json());
    let text = notes(&experiment);
    let reason = "the launching process was killed, possibly out of memory";
    assert_eq!(text.matches(reason).count(), 1, "{text}");
    assert!(!rows(&experiment).is_empty());
}

/// Waits for a child whose command line matches, and returns its pid.
fn await_child(pid: Pid, is_wanted: impl Fn(&str) -> bool) -> Pid {
    await_some("a child", || {
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
        let fits =
            |child: &&str| std::fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|line| is_wanted(&line));
        let found = children.split_whitespace().find(fits)?;
        found.parse().ok().map(Pid::from_raw)
    })
}

#[apply(live_test)]
#[needs(Pty)]
fn on_a_terminal_progress_is_shown_and_ctrl_c_ends_it() {
    // The tests may run as a background job, with these signals ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal", SPAWNSCOPE, "bench", "--seconds", "100", "growth"]);
    let mut session = Session::start(&command);
    session.await_output(b"1/1 growth");
    session.await_output(b"Ctrl-C stops and keeps results");
    session.type_keys(b"\x03");
    let (status, screen) = session.finish();
    assert_eq!(status.code(), Some(130));
    let screen = String::from_utf8_lossy(&screen).into_owned();
    assert!(screen.contains("A parent that grows by 1 MiB between launches"), "{screen}");
}

#[apply(live_test)]
#[needs(Setpriv)]
fn no_privilege_is_needed() {
    let mut command = as_nobody();
    command.arg(SPAWNSCOPE).args(BRIEF).args(["--json", "open-fds"]);
    let report = run(command.env("HOME", "/nonexistent")).expect_code(0).json();
    assert!(rows(&only_experiment(&report)).len() >= 10);
}
