//! Causes, on real recordings: the critical path charges the wall once, and the replay gives it back.

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::report;
use crate::support::run::Record;
use crate::support::{apply, live_test};

/// The replay's error may be this share of the wall.
const MAX_ERROR: f64 = 0.03;

#[apply(live_test)]
#[needs(Ebpf)]
fn one_launch_after_another_is_played_again_as_it_was() {
    played_again("for ((i = 0; i < 400; i++)); do /bin/true; done", MAX_ERROR);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn parallel_launches_are_played_again_as_they_were() {
    played_again("seq 400 | xargs -P4 -n1 /bin/true", MAX_ERROR);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn pipes_and_substitutions_are_played_again_as_they_were() {
    let pipes = "for i in {1..60}; do x=$(seq 2000 | sort -n | tail -n 1); done";
    played_again(pipes, MAX_ERROR);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn busy_children_that_share_the_cpus_are_played_again_as_they_were() {
    let busy = "for i in 1 2 3 4 5; do (for ((n = 0; n < 60000; n++)); do :; done) & done; wait";
    played_again(busy, MAX_ERROR);
}

fn recorded(script: &str) -> serde_json::Value {
    let record = Record::new();
    record.run(["bash", "-c", script]).expect_code(0);
    let report = report(&record.file());
    let charged: i64 = report["critical_path"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|part| part["ns"].as_i64().expect("nanoseconds"))
        .sum();
    assert_eq!(Some(charged), report["wall_ns"].as_i64(), "all charges of {script}");
    report
}

/// How much other processes use the CPUs is known only while a recorded thread waits for a CPU. On a busy machine, the replay error is
/// therefore larger in some runs; a wrong model causes one in every run.
fn played_again(script: &str, most_error: f64) {
    best_of_three(|| {
        let error = recorded(script)["replay_error"].as_f64().expect("a number");
        ok_if(error.abs() <= most_error, || {
            format!("off by {error} of the wall: {script}")
        })
    });
}

#[apply(live_test)]
#[needs(Ebpf)]
fn a_sleep_on_the_critical_path_is_a_timer() {
    best_of_three(|| {
        let report = recorded("sleep 0.3");
        let parts = report["critical_path"].as_array().expect("an array");
        let timer = parts.iter().find(|part| part["on"] == "timer").expect("a timer");
        let slept = timer["ns"].as_i64().expect("nanoseconds");
        ok_if((300_000_000..310_000_000).contains(&slept), || format!("{slept}"))
    });
}
