//! Compares predictions from recordings without wakers with those from eBPF recordings of the same command.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::attempts::{best_of_three, ok_if};
use crate::support::run::{Record, spawnscope};

/// Two runs of one command on a busy machine may differ by this share of the wall.
const RUN_DIFFERENCE: f64 = 0.15;
const MAKEFILE: &str =
    "all: a b c d\na b c d:\n\t@sh -c 'i=0; while [ $$i -lt 20000 ]; do i=$$((i+1)); done'; /bin/true\n";
const PYTHON: &str =
    "import subprocess\nfor _ in range(15): subprocess.run(['/bin/ls', '/usr'], stdout=subprocess.DEVNULL)\n";

/// A command, and the changes that are predicted.
pub struct Workload {
    pub command: &'static [&'static str],
    pub changes: &'static [&'static [&'static str]],
}

/// A loop of shells.
pub const LOOP: Workload = Workload {
    command: &[
        "sh",
        "-c",
        "i=0; while [ $i -lt 40 ]; do sh -c /bin/true; i=$((i+1)); done; :",
    ],
    changes: &[&["--remove", "true"], &["--remove", "sh"], &["--no-shell"]],
};
/// Pipelines whose output a shell reads.
pub const PIPELINE: Workload = Workload {
    command: &[
        "bash",
        "-c",
        "for i in 1 2 3 4 5; do x=$(seq 20000 | sort -n | wc -l); done; :",
    ],
    changes: &[&["--remove", "seq"], &["--remove", "sort"], &["--remove", "wc"]],
};
/// A build with two jobs. Its makefile is in the directory of the recording.
pub const BUILD: Workload = Workload {
    command: &["make", "-s", "-j2", "-f"],
    changes: &[&["--remove", "true"], &["--remove", "sh"]],
};
/// A Python program that launches by vfork.
pub const SUBPROCESS: Workload = Workload {
    command: &["/usr/bin/python3", "-S", "-c", PYTHON],
    changes: &[&["--remove", "ls"]],
};
/// A program that launches by posix_spawn, in system() of the C library.
pub const SYSTEM: Workload = Workload {
    command: &["awk", "BEGIN { for (i = 0; i < 60; i++) system(\": \" i) }"],
    changes: &[&["--remove", "sh"]],
};
/// A sleep in a grandchild, and one in a child.
pub const SLEEP: Workload = Workload {
    command: &["bash", "-c", "/bin/true; sh -c 'sleep 0.2; :'; /bin/true; sleep 0.1; :"],
    changes: &[&["--remove", "sleep"], &["--remove", "sh"], &["--remove", "true"]],
};

/// Checks that the interval of each saving from a recording by `collector` contains the saving from a recording by eBPF.
pub fn assert_intervals_contain_predictions_of_ebpf(collector: &str, workload: &Workload) {
    best_of_three(|| {
        let [exact, partial] = ["ebpf", collector].map(|collector| record_command(collector, workload));
        for change in workload.changes {
            let exact = predict(&exact.file(), change);
            let partial = predict(&partial.file(), change);
            assert_eq!(partial["collector"], collector);
            assert!(
                exact["unknown_waits"].is_null() && partial["unknown_waits"].is_object(),
                "{partial}"
            );
            let [expected, ..] = shares(&exact);
            let [_, low, high] = shares(&partial);
            let range = low - RUN_DIFFERENCE..=high + RUN_DIFFERENCE;
            ok_if(range.contains(&expected), || {
                format!("{change:?}: {expected} is not in {range:?}")
            })?;
            let error = partial["replay_error"].as_f64().expect("a replay");
            ok_if(error.abs() < 0.3, || format!("replay error {error}"))?;
        }
        Ok(())
    });
}

/// Records the workload.
pub fn record_command(collector: &str, workload: &Workload) -> Record {
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
pub fn predict(file: &Path, change: &[&str]) -> Value {
    let words = ["whatif", "--json"].iter().chain(change).map(AsRef::as_ref);
    let finished = spawnscope(words.chain([file.as_os_str()])).expect_code(0);
    serde_json::from_slice(&finished.stdout).expect("JSON")
}

/// Returns the saving and the ends of its interval, as shares of the wall.
pub fn shares(prediction: &Value) -> [f64; 3] {
    let number = |key: &str| prediction[key].as_f64().expect("a number");
    ["saving_ns", "saving_low_ns", "saving_high_ns"].map(|key| number(key) / number("unrecorded_ns"))
}
