//! `record --metrics`: the file, read by Prometheus' own parser, agrees with the report of the same
//! recording.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::needs::python;
use crate::support::prelude::*;

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/metrics_check.py");

/// The samples of a file, in the sense of Prometheus.
struct Samples(Vec<Value>);

impl Samples {
    fn read(file: &Path) -> Samples {
        let output = run(Command::new(python()).arg(CHECK).arg(file)).expect_code(0);
        Samples(serde_json::from_slice(&output.stdout).expect("JSON"))
    }

    /// Returns the value of the only series with this name and all of these labels.
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.0.iter().filter(|sample| {
            sample["name"] == name && labels.iter().all(|(label, value)| sample["labels"][*label] == *value)
        });
        let value = found.next()?["value"].as_f64();
        assert!(found.next().is_none(), "{name} {labels:?} is not one series");
        value
    }

    fn commands(&self) -> Vec<&str> {
        let launches = self.0.iter().filter(|s| s["name"] == "spawnscope_launches_total");
        let commands = launches.map(|sample| sample["labels"]["command"].as_str());
        commands.map(|command| command.expect("a label")).collect()
    }
}

fn whole_number(value: &Value) -> f64 {
    value.as_u64().expect("a whole number") as f64
}

#[apply(live_test)]
#[needs(Prometheus)]
fn metrics_agree_with_the_report() {
    let record = Record::new();
    let file = record.directory().join("spawnscope.prom");
    let record = record.flags(&["-q", "--metrics", file.to_str().expect("a path")]);
    let script = "for i in 1 2 3 4 5; do \"$0\"; done; (exit 3); false; (:); sh -c 'kill -9 $$'; exit 0";
    record.run(["bash", "-c", script, &word("tiny")]).expect_code(0);

    let samples = Samples::read(&file);
    let report = report(&record.file());
    for row in report["commands"].as_array().expect("commands") {
        let command = row["command"].as_str().expect("a name");
        let labels = [("command", command)];
        let launches = samples.value("spawnscope_launches_total", &labels);
        assert_eq!(launches, Some(whole_number(&row["count"])), "{command}");
        for (phase, time) in row["phases"].as_object().expect("phases") {
            let labels = [("command", command), ("phase", phase)];
            let seconds = samples.value("spawnscope_phase_seconds_sum", &labels).unwrap_or(0.0);
            let reported = time.as_f64().unwrap_or(0.0) / 1e9;
            assert!((seconds - reported).abs() < 1e-8, "{command} {phase}: {seconds} {reported}");
        }
    }
    for (name, expected) in [
        ("spawnscope_launches_started_total", whole_number(&report["launches"])),
        ("spawnscope_launches_running", 0.0),
        ("spawnscope_recorder_running", 0.0),
    ] {
        assert_eq!(samples.value(name, &[]), Some(expected), "{name}");
    }
    let lost = samples.value("spawnscope_lost_events_total", &[("kind", "launch")]);
    assert_eq!(lost, Some(0.0), "a counter exists before it counts, so that its increase is seen");
    // The fork is `(exit 3)`, and sh is killed by a signal.
    for (command, expected) in [("(bash)", 1.0), ("sh", 1.0), ("bash", 0.0)] {
        let failed = samples.value("spawnscope_launch_failures_total", &[("command", command)]);
        assert_eq!(failed, Some(expected), "{command}");
    }
    let commands = samples.commands().into_iter().filter(|command| command.starts_with('('));
    let forks =
        commands.map(|command| samples.value("spawnscope_launches_total", &[("command", command)]).expect("a value"));
    assert_eq!(forks.sum::<f64>(), whole_number(&report["forks_without_exec"]));
    assert_dashboard_names_metrics(&std::fs::read_to_string(&file).expect("the file"));
}

/// Checks that the dashboard names only these metrics. Grafana shows an empty panel for a metric
/// that does not exist.
#[track_caller]
fn assert_dashboard_names_metrics(metrics: &str) {
    let dashboard = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/spawnscope.json");
    let dashboard = std::fs::read_to_string(dashboard).expect("the dashboard");
    serde_json::from_str::<Value>(&dashboard).expect("JSON");
    let words = dashboard.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let mut checked = 0;
    for word in words.filter(|word| word.starts_with("spawnscope_")) {
        let family = ["_bucket", "_sum"].iter().find_map(|end| word.strip_suffix(end));
        let family = family.unwrap_or(word);
        assert!(metrics.contains(&format!("# TYPE {family} ")), "{word}");
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

#[apply(live_test)]
#[needs(Prometheus)]
fn the_file_exists_while_the_recording_is_in_progress() {
    let record = Record::new();
    let file = record.directory().join("spawnscope.prom");
    let record = record.flags(&["-q", "--metrics", file.to_str().expect("a path")]);
    let script = "/bin/true; read -r line < \"$0\"; exit 7";
    let gate = record.directory().join("gate");
    run(Command::new("mkfifo").arg(&gate)).expect_code(0);
    let words = ["bash", "-c", script, gate.to_str().expect("a path")];
    let recorder = Running::start(&mut record.command(words));
    await_some("the first file", || file.exists().then_some(()));
    let samples = await_some("the launch", || {
        let samples = Samples::read(&file);
        let ended = samples.value("spawnscope_launches_total", &[("command", "true")]);
        ended.map(|_| samples)
    });
    assert_eq!(samples.value("spawnscope_recorder_running", &[]), Some(1.0));
    assert_eq!(samples.value("spawnscope_launches_running", &[]), Some(1.0));
    std::fs::write(&gate, "go\n").expect("the reader is there");
    recorder.finish().expect_code(7);
    let samples = Samples::read(&file);
    assert_eq!(samples.value("spawnscope_recorder_running", &[]), Some(0.0));
}
