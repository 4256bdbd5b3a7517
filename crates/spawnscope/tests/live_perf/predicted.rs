//! Predictions without recorded wakers: each interval contains the prediction of a recording by eBPF of the same command.

use crate::predictions::{
    BUILD, LOOP, PIPELINE, SLEEP, SUBPROCESS, SYSTEM, assert_intervals_contain_predictions_of_ebpf, predict,
    record_command, shares,
};
use crate::support::attempts::{best_of_three, ok_if};
use crate::support::recording::report;
use crate::support::run::spawnscope;
use crate::support::{apply, live_test};

#[apply(live_test)]
#[needs(Ebpf)]
fn the_interval_of_a_loop_of_shells_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &LOOP);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_interval_of_pipelines_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &PIPELINE);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_interval_of_a_build_with_two_jobs_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &BUILD);
}

#[apply(live_test)]
#[needs(Ebpf, Python)]
fn the_interval_of_a_python_program_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &SUBPROCESS);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_interval_of_calls_of_system_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &SYSTEM);
}

#[apply(live_test)]
#[needs(Ebpf)]
fn the_interval_of_sleeps_of_children_contains_the_prediction_of_ebpf() {
    assert_intervals_contain_predictions_of_ebpf("perf", &SLEEP);
}

/// The critical path is reconstructed, because wakers are not recorded.
#[apply(live_test)]
fn a_report_has_a_critical_path_and_says_that_it_is_reconstructed() {
    let record = record_command("perf", &LOOP);
    let file = record.file();
    let report = report(&file);
    assert_eq!(
        (&report["collector"], &report["waits_reconstructed"]),
        (&"perf".into(), &true.into())
    );
    assert!(
        report["critical_tax_ns"].as_u64().is_some_and(|tax| tax > 0),
        "{report}"
    );
    let culprits = report["depends_on"].as_array().expect("an array");
    assert!(culprits.iter().any(|each| each["command"] == "sh"), "{report}");
    let text = spawnscope(["report".as_ref(), "--full".as_ref(), file.as_os_str()]).expect_code(0);
    let text = text.output().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("perf does not record what ends a wait"), "{text}");
}

/// It is proved that the shell waits for each child of the loop, so part of the saving is certain.
#[apply(live_test)]
fn part_of_the_saving_in_a_loop_is_certain() {
    best_of_three(|| {
        let record = record_command("perf", &LOOP);
        let [expected, low, _] = shares(&predict(&record.file(), &["--remove", "sh"]));
        ok_if(expected > 0.5 && low > 0.1, || format!("{expected}, at least {low}"))
    });
}
