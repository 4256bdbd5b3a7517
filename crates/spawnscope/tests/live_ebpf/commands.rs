//! What the command sees and returns: exit status, standard streams, and what happens when it
//! cannot be started or traced.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::inherited::assert_inherits_the_same_through;
use crate::support::prelude::*;

const README: &str = include_str!("../../../../README.md");

#[apply(live_test)]
fn a_command_whose_interpreter_is_missing_leaves_the_earlier_recording() {
    let record = Record::new();
    let script = record.directory().join("script");
    write_program(&script, "#!/nonexistent/interpreter\n");
    record.run(["true"]).expect_code(0);
    let before = fs::read(record.file()).expect("a recording");
    let finished = record.run([&script]).expect_code(127);
    finished.expect_errors(["interpreter"]);
    assert!(fs::read(record.file()).expect("a recording") == before, "the earlier recording is restored");
}

#[apply(live_test)]
fn a_report_that_cannot_be_written_does_not_change_the_exit_status() {
    let record = Record::new();
    let mut command = record.command(["sh", "-c", "exit 7"]);
    let full = fs::File::options().write(true).open("/dev/full");
    command.stderr(full.expect("a full device"));
    assert_eq!(command.status().expect("spawnscope runs").code(), Some(7));
    assert_eq!(launches(&record.file()).root().exit_code(), Some(7));
}

#[apply(live_test)]
fn closed_streams_stay_closed() {
    let record = Record::new();
    let script = "exec \"$0\" record -q -o \"$1\" -- sh -c 'ls /proc/self/fd' <&- 2>&-";
    let mut command = Command::new("sh");
    command.args(["-c", script, SPAWNSCOPE]).arg(record.file());
    let open = run(&mut command).expect_code(0).output();
    // `ls` opens the directory itself at the first free number, which is 0.
    assert!(open.lines().all(|fd| fd != "2"), "standard error was opened: {open}");
}

/// The command must sleep until the recorder has ended.
#[apply(live_test)]
fn after_the_duration_the_command_continues_unrecorded() {
    with_growing_lengths(try_duration);
}

fn try_duration(sleep_seconds: u32) -> Result<(), String> {
    let record = Record::new().flags(&["--duration", "0.3"]);
    let script = format!("sleep {sleep_seconds}; sh -c 'exit 3'");
    let finished = record.run(["sh", "-c", &script]).expect_code(3);
    assert!(!finished.errors().contains("incomplete"), "{}", finished.errors());
    let report = report(&record.file());
    let wall = report["wall_ns"].as_u64().expect("a wall");
    assert!(wall >= 300_000_000, "{wall}");
    assert_eq!(report["ended"], "duration");
    let launches = report["launches"].as_u64();
    ok_if(launches == Some(2) && wall < u64::from(sleep_seconds) * 800_000_000, || format!("{launches:?} in {wall}"))
}

/// Returns how much of the wall was spent on this, in nanoseconds.
fn ns_spent(report: &Value, on: &str) -> u64 {
    let parts = report["critical_path"].as_array().expect("an array");
    let part = parts.iter().find(|part| part["on"] == on);
    part.map_or(0, |part| part["ns"].as_u64().expect("nanoseconds"))
}

/// The last slice can be recorded by luck, so this is repeated. Launch times depend on the machine:
/// the critical path must have no more launch tax than all launches together, and almost none of
/// the wall may be unknown.
#[apply(live_test)]
fn a_shells_wait_for_a_sleep_that_outlasts_the_duration_is_attributed_to_a_timer() {
    for _ in 0..rounds(3) {
        best_of_three(|| {
            let report =
                report(&Record::new().flags(&["--duration", "0.3"]).recorded(["sh", "-c", "sleep 0.6; :"]).file());
            let [critical, tax, wall] =
                ["critical_tax_ns", "launch_tax_ns", "wall_ns"].map(|key| report[key].as_u64().expect("nanoseconds"));
            let path = &report["critical_path"];
            assert!(critical <= tax + 1_000_000 && ns_spent(&report, "unknown") < wall / 10, "{path}");
            let error = report["replay_error"].as_f64().expect("a number");
            let slept = ns_spent(&report, "timer");
            ok_if(slept > 200_000_000 && error.abs() < 0.05, || format!("off by {error}: {path}"))
        });
    }
}

#[apply(live_test)]
fn work_that_outlasts_the_duration_is_attributed_to_run() {
    best_of_three(|| {
        let script = "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done; done";
        let record = Record::new().flags(&["--duration", "0.5"]).recorded(["sh", "-c", script]);
        let report = report(&record.file());
        let worked = ns_spent(&report, "run") + ns_spent(&report, "run_queue");
        ok_if(worked > 400_000_000, || format!("worked {worked}: {}", report["critical_path"]))
    });
}

#[apply(live_test)]
fn what_threads_did_last_is_reported_as_unknown_if_the_kernel_refuses_the_bpf_program() {
    let record = Record::new().flags(&["--duration", "0.5"]);
    let mut command = record.command(["sleep", "1.2"]);
    let finished = run(command.env("SPAWNSCOPE_EBPF_REFUSE", "on_end")).expect_code(0);
    let message = finished.message();
    let reason = "what threads were doing when the recording ended";
    assert_contains(&message, [reason, "No verdict"]);
    let report = report(&record.file());
    let (unknown, tax) = (ns_spent(&report, "unknown"), ns_spent(&report, "launch_tax"));
    // Another process of the machine can have the CPU when the command starts.
    let queued = ns_spent(&report, "run_queue");
    assert!(unknown > 400_000_000 && tax < 100_000_000 && queued < 100_000_000, "{}", report["critical_path"]);
    let words = ["whatif", "--cpus", "8"].map(OsStr::new).into_iter();
    let whatif = spawnscope(words.chain([record.file().as_os_str()]));
    whatif.expect_code(125).expect_errors(["no prediction"]);
}

#[apply(live_test)]
fn a_recorder_ends_by_the_signal_that_killed_the_command() {
    let record = Record::new();
    record.run(["sh", "-c", "kill -KILL $$"]).expect_signal(libc::SIGKILL);
    assert_eq!(launches(&record.file()).root().exit_signal(), Some("SIGKILL"));
}

#[apply(live_test)]
fn the_report_goes_to_standard_error_alone() {
    let finished = Record::new().run(["echo", "hello"]).expect_code(0);
    assert_eq!(finished.output(), "hello\n");
    finished.expect_errors(["echo"]);
    // The README ends with that line, for another recording.
    let line = |text: &str| text.lines().rfind(|line| line.contains("spawnscope: recorded ")).map(words_of);
    assert_eq!(line(&finished.errors()), line(README));
    let finished = Record::new().flags(&["--quiet"]).run(["echo", "hello"]).expect_code(0);
    assert_eq!(finished.errors(), "", "--quiet");
}

/// Returns the words of a line, without numbers and names of files.
fn words_of(line: &str) -> Vec<String> {
    let is_word = |word: &&str| !word.contains(".db") && word.parse::<u64>().is_err();
    line.split_whitespace().filter(is_word).map(|word| word.replace("launches", "launch")).collect()
}

#[apply(live_test)]
fn the_report_as_json_goes_to_its_own_file_or_descriptor() {
    let record = Record::new();
    let file = record.directory().join("report.json");
    let finished = record_json(file.to_str().expect("text")).expect_code(0);
    assert_eq!([finished.output(), finished.errors()], ["hello\n", ""]);
    let from_file = fs::read(&file).expect("the report");
    let script = "exec \"$0\" record -q --json /dev/fd/3 -o \"$1\" -- echo hello 3>&1 >/dev/null";
    let mut shell = Command::new("sh");
    let from_descriptor = run(shell.args(["-c", script, SPAWNSCOPE]).arg(record.file())).expect_code(0);
    for bytes in [from_file, from_descriptor.stdout] {
        let report: Value = serde_json::from_slice(&bytes).expect("JSON and nothing else");
        assert_eq!((&report["argv"][0], &report["launches"]), (&"echo".into(), &1.into()));
    }
    let refused = record_json("/nonexistent/report.json");
    assert_eq!(refused.output(), "", "the command did not start");
    refused.expect_code(125).expect_errors(["/nonexistent/report.json"]);
}

fn record_json(name: &str) -> Finished {
    Record::new().flags(&["--json", name, "--quiet"]).run(["echo", "hello"])
}

#[apply(live_test)]
#[needs(Setpriv)]
fn without_permission_the_message_says_what_to_grant() {
    let words = ["record", "--collector", "ebpf", "--", "echo", "ran"];
    let finished = PublicDirectory::new().run(&[], &words).expect_code(125);
    assert_eq!(finished.output(), "", "the command must not run untraced");
    finished.expect_errors(["CAP_BPF", "CAP_PERFMON", "setcap"]);
}

#[apply(live_test)]
fn each_run_is_a_recording_of_its_own_with_the_same_launches() {
    let record = Record::new();
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["record", "--runs", "3", "-o", "run.db", "--", "sh", "-c"]);
    // No run of the command may have blocked signals.
    command.arg("grep -q '^SigBlk:.0000000000000000$' /proc/self/status && /bin/true && /bin/true");
    let finished = run(command.current_dir(record.directory())).expect_code(0);
    finished.expect_errors(["recorded run 3 of 3 to run.3.db"]);
    for run in 1..=3 {
        let found = launches(&record.directory().join(format!("run.{run}.db")));
        assert_eq!(found.all(|_| true).len(), 4, "sh, grep, true, true");
    }
}

#[apply(live_test)]
fn a_failing_run_is_the_last_one() {
    let record = Record::new();
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["record", "--runs", "3", "-o", "run.db", "--", "sh", "-c", "exit 7"]);
    run(command.current_dir(record.directory())).expect_code(7);
    assert!(record.directory().join("run.1.db").exists());
    assert!(!record.directory().join("run.2.db").exists());
}

#[apply(live_test)]
fn a_command_under_accel_inherits_what_it_would_inherit_without_it() {
    crate::preload::build_library();
    let is_changed = |line: &str| line.starts_with("environment: LD_PRELOAD=");
    assert_inherits_the_same_through(&["accel"], |line| !is_changed(line));
}

#[apply(live_test)]
fn git_ignores_a_default_recording() {
    let record = Record::new();
    let directory = record.directory();
    let list = directory.join(".git/info/exclude");
    fs::create_dir_all(list.parent().expect("a directory")).expect("a repository");
    fs::write(&list, "").expect("a list");
    for is_first in [true, false] {
        let mut command = Command::new(SPAWNSCOPE);
        let recorded = run(command.args(["record", "--", "true"]).current_dir(directory)).expect_code(0);
        assert_eq!(recorded.errors().contains("added spawnscope.db* to"), is_first);
    }
    assert_eq!(fs::read_to_string(&list).expect("the list"), "spawnscope.db*\n");
}
