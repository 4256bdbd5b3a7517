//! Compares phases that ptrace and eBPF record of the same workload. The medians of many launches
//! differ by at most 5 % or 1 ms, except in the queue: on a busy machine, a child waits longer for
//! a CPU when no tracer holds it first.

use std::collections::BTreeMap;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::launches::PHASES;
use crate::support::recording::launches;
use crate::support::run::Record;
use crate::support::{apply, live_test};

/// Whether a measured span equals the true one, within 5 % or 1 ms.
fn is_close_to(measured: i64, truth: i64) -> bool {
    (measured - truth).abs() <= 1_000_000_i64.max(truth / 20)
}

/// Returns the medians of the phases of a program's launches, without the phases that are unknown
/// for more than a tenth of the launches.
fn medians(flags: &[&str], command: &[&str], program: &str) -> BTreeMap<&'static str, i64> {
    let record = Record::new().flags(flags).flags(&["-q"]).recorded(command);
    let all = launches(&record.file());
    let programs = all.all(|launch| launch.command() == program);
    assert!(programs.len() >= 100, "{} launches of {program}", programs.len());
    let medians = PHASES.into_iter().filter_map(|phase| {
        let mut spans: Vec<i64> = programs.iter().filter_map(|launch| launch.phase_ns(phase)).collect();
        spans.sort_unstable();
        (spans.len() * 10 >= programs.len() * 9).then(|| (phase, spans[spans.len() / 2]))
    });
    medians.collect()
}

#[track_caller]
fn assert_phases_are_those_of_ebpf(flags: &[&str], phases: &[&'static str], command: &[&str], program: &str) {
    best_of_three(|| {
        let exact = medians(&["--collector", "ebpf"], command, program);
        let known = medians(flags, command, program);
        for phase in phases {
            assert!(known.contains_key(phase), "{phase} is unknown: {known:?}");
        }
        let mut compared = phases.iter().filter(|phase| **phase != "queue");
        let is_close = compared.all(|phase| is_close_to(known[phase], exact[phase]));
        ok_if(is_close, || format!("{exact:?} {known:?}"))
    });
}

const LOOP: &str = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; exit 0";
const PIPES: &str =
    "i=0; while [ $i -lt 60 ]; do /bin/echo | /bin/true; /bin/echo | /bin/true; i=$((i+1)); done >/dev/null; exit 0";

#[apply(live_test)]
#[needs(Ebpf)]
fn phases_of_a_loop_are_those_of_ebpf() {
    let phases = ["queue", "setup", "exec", "load", "run", "teardown"];
    assert_phases_are_those_of_ebpf(&[], &phases, &["sh", "-c", LOOP], "true");
}

#[apply(live_test)]
#[needs(Ebpf)]
fn with_launcher_calls_all_phases_are_those_of_ebpf() {
    for shell in ["dash", "bash"] {
        assert_phases_are_those_of_ebpf(&["--launcher-calls"], &PHASES, &[shell, "-c", LOOP], "true");
        assert_phases_are_those_of_ebpf(
            &["--launcher-calls"],
            &["create", "queue", "reap"],
            &[shell, "-c", PIPES],
            "true",
        );
    }
}

#[apply(live_test)]
#[needs(Ebpf, Python)]
fn a_vfork_of_one_of_several_threads_has_a_create_phase() {
    let script = "import subprocess, threading\n\
                  work = lambda: [subprocess.run(['/bin/true'], check=True) for _ in range(60)]\n\
                  threads = [threading.Thread(target=work) for _ in range(2)]\n\
                  [thread.start() for thread in threads]; [thread.join() for thread in threads]\n";
    // The tracer is busy with the calls of both threads, which lengthens the other phases.
    let python = ["/usr/bin/python3", "-S", "-c", script];
    assert_phases_are_those_of_ebpf(&["--launcher-calls"], &["create", "queue"], &python, "true");
}
