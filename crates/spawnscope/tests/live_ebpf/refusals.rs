//! Kernels that refuse BPF programs, simulated by a variable for tests: a refusal makes only its own part unknown, and is reported.
//! Also the build for kernels without task storage, which records the same.

use std::process::Command;

use crate::support::launches::Launches;
use crate::support::recording::{launches, report};
use crate::support::run::{Finished, Record, run};
use crate::support::workloads::path;
use crate::support::{apply, live_test};

const REFUSE: &str = "SPAWNSCOPE_EBPF_REFUSE";

/// Two launches, one of them through a pipe: bash executes the last command in place.
const SCRIPT: &str = "/bin/true\nx=$(/bin/echo a)\n/bin/true";

fn refusing(programs: &str, record: &Record, command: &[&str]) -> Finished {
    let mut recorder: Command = record.command(command.iter().copied());
    run(recorder.env(REFUSE, programs))
}

/// The messages without line breaks.
fn said(finished: &Finished) -> String {
    finished.errors().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of all that the command launched.
fn phases_are_known(launches: &Launches) {
    for launch in launches.all(|launch| launch.origin() == "launched") {
        for phase in ["create", "queue", "setup", "run", "teardown", "reap"] {
            assert!(launch.phase_ns(phase).is_some(), "{phase} of {}", launch.json());
        }
    }
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn without_task_storage_the_same_is_recorded() {
    a_storm_is_whole("task_storage");
}

#[apply(live_test)]
#[needs(Ebpf, Cc)]
fn where_threads_lose_the_cpu_within_programs_the_same_is_recorded() {
    a_storm_is_whole("preemption_off");
    a_storm_is_whole("preemption_off,task_storage");
    machine_is_followed("preemption_off");
}

fn a_storm_is_whole(absent: &str) {
    let record = Record::new();
    let (storm, tiny) = (path("storm"), path("tiny"));
    let mut recorder = record.command([storm.as_os_str(), "2003".as_ref(), tiny.as_os_str()]);
    run(recorder.env(REFUSE, absent)).expect_code(0);
    let printed = report(&record.file());
    assert_eq!(printed["launches"], 2004);
    assert_eq!(printed["lost_events"], 0, "{}", printed["lost"]);
    phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
#[needs(Ebpf)]
fn without_task_storage_a_process_and_the_machine_can_be_followed() {
    let own = std::process::id().to_string();
    let record = Record::new().flags(&["-p", &own, "--duration", "0.3"]);
    refusing("task_storage", &record, &[]).expect_code(0);
    machine_is_followed("task_storage");
}

fn machine_is_followed(absent: &str) {
    let record = Record::new().flags(&["-a"]);
    refusing(absent, &record, &["bash", "-c", SCRIPT]).expect_code(0);
    let launches = launches(&record.file());
    let root = launches.root();
    assert_eq!(launches.children_of(root).len(), 2);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_kernel_that_refuses_to_read_interpreters_costs_the_lines_only() {
    let record = Record::new();
    let finished = refusing("on_fork", &record, &["bash", "-c", SCRIPT]).expect_code(0);
    assert!(
        said(&finished).contains("unknown: the script lines that request launches"),
        "{}",
        finished.errors()
    );
    assert_eq!(report(&record.file())["launches"], 3);
    phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_kernel_that_refuses_to_look_at_objects_costs_the_objects_only() {
    let record = Record::new();
    let refused = "on_switch,on_switch_before_5_18";
    let finished = refusing(refused, &record, &["bash", "-c", SCRIPT]).expect_code(0);
    assert!(
        said(&finished).contains("unknown: what blocked threads wait for"),
        "{}",
        finished.errors()
    );
    phases_are_known(&launches(&record.file()));
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_refused_essential_program_is_named_with_the_reason() {
    for (flags, code) in [(&["--collector", "ebpf"][..], 125), (&[], 0)] {
        let record = Record::new().flags(flags);
        let finished = refusing("on_exec", &record, &["true"]).expect_code(code);
        let text = said(&finished);
        assert!(
            text.contains("the BPF program on_exec") && text.contains("--verbose"),
            "{text}"
        );
        assert_eq!(text.contains("collecting with ptrace"), code == 0, "{text}");
    }
    let record = Record::new().flags(&["--verbose"]);
    let text = said(&refusing("on_switch", &record, &["true"]).expect_code(0));
    assert!(
        text.contains("refuses the BPF program on_switch: a test refuses it"),
        "{text}"
    );
}
