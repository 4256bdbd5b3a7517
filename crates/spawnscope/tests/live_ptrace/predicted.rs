//! Predictions without recorded wakers: each interval contains the prediction of a recording by
//! eBPF of the same command.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::live_test;
use crate::support::recording::read;
use crate::support::run::Record;

/// Two runs of one command on a busy machine may differ by this share of the wall.
const RUN_DIFFERENCE: f64 = 0.15;
const MAKEFILE: &str =
    "all: a b c d\na b c d:\n\t@sh -c 'i=0; while [ $$i -lt 20000 ]; do i=$$((i+1)); done'; /bin/true\n";
const PYTHON: &str =
    "import subprocess\nfor _ in range(15): subprocess.run(['/bin/ls', '/usr'], stdout=subprocess.DEVNULL)\n";

/// A command, and the changes that are predicted.
struct Workload {
    command: &'static [&'static str],
    changes: &'static [&'static [&'static str]],
}

/// A loop of shells.
const LOOP: Workload = Workload {
    command: &["sh", "-c", "i=0; while [ $i -lt 40 ]; do sh -c /bin/true; i=$((i+1)); done; :"],
    changes: &[&["--remove", "true"], &["--remove", "sh"], &["--no-shell"]],
};
/// Pipelines whose output a shell reads.
const PIPELINE: Workload = Workload {
    command: &["bash", "-c", "for i in 1 2 3 4 5; do x=$(seq 20000 | sort -n | wc -l); done; :"],
    changes: &[&["--remove", "seq"], &["--remove", "sort"], &["--remove", "wc"]],
};
/// A build with two jobs. Its makefile is in the directory of the recording.
const BUILD: Workload =
    Workload { command: &["make", "-s", "-j2", "-f"], changes: &[&["--remove", "true"], &["--remove", "sh"]] };
/// A Python program that launches by vfork.
const SUBPROCESS: Workload =
    Workload { command: &["/usr/bin/python3", "-S", "-c", PYTHON], changes: &[&["--remove", "ls"]] };
/// A program that launches by posix_spawn, in system() of the C library.
const SYSTEM: Workload = Workload {
    command: &["awk", "BEGIN { for (i = 0; i < 60; i++) system(\": \" i) }"],
    changes: &[&["--remove", "sh"]],
};
/// A sleep in a grandchild, and one in a child.
const SLEEP: Workload = Workload {
    command: &["bash", "-c", "/bin/true; sh -c 'sleep 0.2; :'; /bin/true; sleep 0.1; :"],
    changes: &[&["--remove", "sleep"], &["--remove", "sh"], &["--remove", "true"]],
};

live_test! {
    #[needs(Ebpf)]
    fn the_interval_of_a_loop_of_shells_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&LOOP);
    fn the_interval_of_pipelines_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&PIPELINE);
    fn the_interval_of_a_build_with_two_jobs_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&BUILD);
    #[needs(Ebpf, Python)]
    fn the_interval_of_a_python_program_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&SUBPROCESS);
    #[needs(Ebpf)]
    fn the_interval_of_calls_of_system_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&SYSTEM);
    fn the_interval_of_sleeps_of_children_contains_the_prediction_of_ebpf =
        assert_intervals_contain_predictions(&SLEEP);
}

/// Checks that the interval of each saving from a recording by ptrace contains the saving from a
/// recording by eBPF.
fn assert_intervals_contain_predictions(workload: &Workload) {
    best_of_three(|| {
        let [exact, partial] = ["ebpf", "ptrace"].map(|collector| record_workload(collector, workload));
        for change in workload.changes {
            let exact = predict(&exact.file(), change);
            let partial = predict(&partial.file(), change);
            assert_eq!(partial["collector"], "ptrace");
            assert!(exact["unknown_waits"].is_null() && partial["unknown_waits"].is_object(), "{partial}");
            let [expected, ..] = shares(&exact);
            let [_, low, high] = shares(&partial);
            let range = low - RUN_DIFFERENCE..=high + RUN_DIFFERENCE;
            ok_if(range.contains(&expected), || format!("{change:?}: {expected} is not in {range:?}"))?;
            let error = partial["replay_error"].as_f64().expect("a replay");
            ok_if(error.abs() < 0.3, || format!("replay error {error}"))?;
        }
        Ok(())
    });
}

fn record_workload(collector: &str, workload: &Workload) -> Record {
    let record = Record::new().flags(&["--collector", collector, "-q"]);
    let makefile = record.directory().join("Makefile");
    fs::write(&makefile, MAKEFILE).expect("a file");
    let makefile = makefile.into_os_string();
    let words = workload.command.iter().map(AsRef::as_ref);
    let needs_file = workload.command.last() == Some(&"-f");
    let words = words.chain(needs_file.then_some(makefile.as_os_str()));
    record.run(words).expect_code(0);
    record
}

/// Returns the prediction of `whatif` for this change.
fn predict(file: &Path, change: &[&str]) -> Value {
    read(&[&["whatif", "--json"], change].concat(), file).json()
}

/// Returns the saving and the ends of its interval, as shares of the wall.
fn shares(prediction: &Value) -> [f64; 3] {
    let [unrecorded, savings @ ..] = ["unrecorded_ns", "saving_ns", "saving_low_ns", "saving_high_ns"]
        .map(|key| prediction[key].as_f64().expect("a number"));
    savings.map(|saving| saving / unrecorded)
}
