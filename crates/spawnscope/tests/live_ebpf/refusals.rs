//! Kernels that refuse BPF programs, simulated by a variable for tests: a refusal is reported, and
//! only what the refused program records becomes unknown. A kernel without task storage, simulated
//! in the same way, loses nothing.

use std::process::Command;

use crate::support::prelude::*;

const REFUSE: &str = "SPAWNSCOPE_EBPF_REFUSE";

/// A script with two launches, one of them with a pipe. bash execs the last command itself.
const SCRIPT: &str = "/bin/true\nx=$(/bin/echo a)\n/bin/true";

fn run_with_refusals(programs: &str, record: &Record, command: &[&str]) -> Finished {
    let mut recorder: Command = record.command(command.iter().copied());
    run(recorder.env(REFUSE, programs))
}

/// Checks that the phases of everything that the command launched are known.
fn assert_phases_are_known(launches: &Launches) {
    for launch in launches.all(|launch| launch.origin() == "launched") {
        for phase in ["create", "queue", "setup", "run", "teardown", "reap"] {
            assert!(launch.phase_ns(phase).is_some(), "{phase} of {launch}");
        }
    }
}

#[apply(live_test)]
fn nothing_is_lost_without_task_storage() {
    assert_storm_is_complete("task_storage");
}

#[apply(live_test)]
fn nothing_is_lost_if_threads_are_preempted_within_bpf_programs() {
    assert_storm_is_complete("preemption_off");
    assert_storm_is_complete("preemption_off,task_storage");
    assert_machine_is_followed("preemption_off");
}

fn assert_storm_is_complete(absent: &str) {
    let record = Record::new();
    run_with_refusals(absent, &record, &[&word("storm"), "2003", &word("tiny")]).expect_code(0);
    let printed = report(&record.file());
    assert_eq!(printed["launches"], 2004);
    assert_eq!(printed["lost_events"], 0, "{}", printed["lost"]);
    assert_phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
fn without_task_storage_a_process_and_the_machine_can_be_followed() {
    let own = std::process::id().to_string();
    let record = Record::new().flags(&["-p", &own, "--duration", "0.3"]);
    run_with_refusals("task_storage", &record, &[]).expect_code(0);
    assert_machine_is_followed("task_storage");
}

fn assert_machine_is_followed(absent: &str) {
    let record = Record::new().flags(&["-a"]);
    run_with_refusals(absent, &record, &["bash", "-c", SCRIPT]).expect_code(0);
    let launches = launches(&record.file());
    let root = launches.root();
    assert_eq!(launches.children_of(root).len(), 2);
}

#[apply(live_test)]
fn a_kernel_that_refuses_to_read_interpreters_loses_only_the_lines() {
    let record = Record::new();
    let finished = run_with_refusals("on_fork", &record, &["bash", "-c", SCRIPT]).expect_code(0);
    assert_contains(&finished.message(), ["unknown: the script lines that request launches"]);
    assert_eq!(report(&record.file())["launches"], 3);
    assert_phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
fn a_kernel_that_refuses_to_read_objects_loses_only_the_objects() {
    let record = Record::new();
    let refused = "on_switch,on_switch_before_5_18";
    let finished = run_with_refusals(refused, &record, &["bash", "-c", SCRIPT]).expect_code(0);
    assert_contains(&finished.message(), ["unknown: what blocked threads wait for"]);
    assert_phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
fn a_refused_essential_program_is_named_with_the_reason() {
    for (flags, code) in [(&["--collector", "ebpf"][..], 125), (&[], 0)] {
        let record = Record::new().flags(flags);
        let finished = run_with_refusals("on_exec", &record, &["true"]).expect_code(code);
        let text = finished.message();
        assert_contains(&text, ["the BPF program on_exec", "--verbose"]);
        assert_eq!(text.contains("collecting with ptrace"), code == 0, "{text}");
    }
    let record = Record::new().flags(&["--verbose"]);
    let text = run_with_refusals("on_switch", &record, &["true"]).expect_code(0).message();
    assert_contains(&text, ["refuses the BPF program on_switch: a test refuses it"]);
}
