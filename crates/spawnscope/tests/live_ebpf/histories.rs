//! Process histories that confuse tracers: daemons, processes that outlive the root, reused pids,
//! stops and continues.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use crate::support::prelude::*;

#[apply(live_test)]
fn a_daemon_is_a_child_of_its_launcher() {
    let record = Record::new();
    let command = [path("daemonize").into_os_string(), "sleep".into(), "60".into()];
    let finished = record.run(command);
    let truth = Truth::new(&finished.stdout);
    let daemon = truth.one("daemon");
    kill_process(daemon);
    finished.expect_code(0);

    let launches = launches(&record.file());
    let middle = launches.with_pid(truth.one("middle"));
    assert_eq!(middle.parent(), Some(launches.root().id()));
    let daemon = launches.with_pid(daemon);
    // Its parent is the middle process, not init, which only adopted it.
    assert_eq!(daemon.parent(), Some(middle.id()));
    assert_eq!(daemon.json()["exit"], Value::Null, "it is still running");
}

#[apply(live_test)]
fn a_process_that_outlives_the_root_is_unfinished() {
    let record = Record::new();
    let finished = record.run(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo sleeper=$!; sleep 0.2"]);
    let sleeper = Truth::new(&finished.stdout).one("sleeper");
    // The sleeper is killed only after the recorder has ended. A recorder that waited for the
    // sleeper would miss its deadline.
    kill_process(sleeper);
    finished.expect_code(0);
    let launches = launches(&record.file());
    let sleeper = launches.with_pid(sleeper);
    assert_eq!(sleeper.json()["exit"], Value::Null);
    assert_eq!(sleeper.phase_ns("reap"), None);
    assert_eq!(report(&record.file())["unfinished"], 1);
}

#[apply(live_test)]
fn everything_that_the_command_launched_is_waited_for_on_request() {
    let record = Record::new().flags(&["--wait-for-all"]);
    let command = [path("daemonize").into_os_string(), "sleep".into(), "1.5".into()];
    let finished = record.run(command).expect_code(0);
    let launches = launches(&record.file());
    let daemon = launches.with_pid(Truth::new(&finished.stdout).one("daemon"));
    assert_eq!(daemon.exit_code(), Some(0), "{daemon}");
    let report = report(&record.file());
    assert_eq!(report["unfinished"], 0);
    let wall = &report["wall_ns"];
    assert!(wall.as_u64() > Some(1_500_000_000), "{wall}");
    let error = report["replay_error"].as_f64().expect("there was a replay");
    assert!(error.abs() < 0.3, "the path ends with the daemon: {error}");
}

#[apply(live_test)]
fn an_interrupt_ends_the_wait_for_all() {
    let record = Record::new().flags(&["--wait-for-all", "-q"]);
    let script = "sleep 60 >/dev/null 2>&1 & echo $!; exit 3";
    let recorder = record.command(["sh", "-c", script]);
    // A job in the background of a script ignores interrupts, and so would the recorder.
    let mut command = Command::new("env");
    command.arg("--default-signal").arg(recorder.get_program());
    let mut running = Running::start(command.args(recorder.get_args()));
    let sleeper: i64 = running.await_line().parse().expect("a pid");
    await_some("the exec of sleep", || {
        let name = fs::read_to_string(format!("/proc/{sleeper}/comm")).ok()?;
        (name == "sleep\n").then_some(())
    });
    while !running.has_ended() {
        // The first one may reach the command.
        kill(running.pid(), Signal::SIGINT).expect("the recorder runs");
        sleep(Duration::from_millis(700));
    }
    kill_process(sleeper);
    running.finish().expect_code(3);
    let report = report(&record.file());
    assert_eq!(report["still_running"], json!([{"command": "sleep", "count": 1}]));
}

#[apply(live_test)]
#[needs(PidNs)]
fn a_reused_pid_is_another_launch() {
    let (truth, launches) =
        Record::new().through(&["unshare", "--pid", "--fork", "--mount-proc"]).truth_and_launches([path("pid_reuse")]);
    let same_pid = launches.all(|launch| launch.pid() == Some(truth.one("pid")));
    let codes: Vec<Option<i64>> = same_pid.iter().map(|launch| launch.exit_code()).collect();
    let expected: Vec<Option<i64>> = (0..truth.one("children")).map(Some).collect();
    assert_eq!(codes, expected, "each launch has its own exit status");
    assert!(same_pid.iter().all(|launch| launch.phase_ns("reap").is_some()), "each was reaped");
    let in_order = same_pid.windows(2).all(|pair| pair[0].end_ns() <= pair[1].start_ns());
    assert!(in_order, "each launch starts after the previous one has ended");
}

#[apply(live_test)]
fn a_stopped_child_is_not_a_reaped_one() {
    best_of_three(try_stopped_child);
}

fn try_stopped_child() -> Result<(), String> {
    let (truth, launches) = Record::new().truth_and_launches([path("stopped_child")]);
    let child = launches.with_pid(truth.one("child"));
    assert_eq!(child.exit_code(), Some(3));
    let run_ns = child.phase_ns("run").expect("run is known");
    // The stop is part of run.
    assert!(run_ns >= truth.one("stopped_ns"), "run took {run_ns} ns");
    let reap_ns = child.phase_ns("reap").expect("reap is known");
    ok_if(reap_ns < 20_000_000, || format!("the last wait reaps the child at once, not after {reap_ns} ns"))
}

fn kill_process(pid: i64) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid"));
    kill(pid, Signal::SIGKILL).expect("the process still runs, since only this test ends it");
}
