//! Labels: which ones `record` refuses, and how reports show those of a recording.

use super::{SampleRecording, failure, stdout};

#[test]
fn a_bad_label_is_refused_before_the_command_starts() {
    assert!(refused_without_start(&["commit"]).contains("write it as NAME=VALUE"));
    assert!(refused_without_start(&["my key=x"]).contains("only letters, digits"));
    assert!(refused_without_start(&[&format!("k={}", "x".repeat(1_025))]).contains("longer than 1024 bytes"));
    assert!(refused_without_start(&["a=1", "a=2"]).contains("--label a is given twice"));
}

fn refused_without_start(labels: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let started = directory.path().join("started");
    let output = directory.path().join("x.db");
    let mut arguments = vec!["record", "-o", output.to_str().unwrap()];
    arguments.extend(labels.iter().flat_map(|label| ["--label", label]));
    arguments.extend(["--", "touch", started.to_str().unwrap()]);
    let message = failure(&arguments);
    assert!(!started.exists() && !output.exists(), "{labels:?}");
    message
}

#[test]
fn labels_are_shown_escaped_and_within_the_width() {
    let sample = SampleRecording::new();
    sample.execute("INSERT INTO label VALUES ('job', 'a' || char(27) || '[31m' || char(10) || 'b'), ('note', replace(hex(zeroblob(60)), '00', 'word '))");
    let path = &sample.word();
    let report = stdout(&["report", "--full", path]);
    let labels = report.split_once("Labels\n").unwrap().1;
    assert!(labels.contains("job"), "{report}");
    assert!(!report.contains('\u{1b}'), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    let json: serde_json::Value = serde_json::from_str(&stdout(&["report", "--json", path])).unwrap();
    assert_eq!(json["labels"]["job"], "a\u{1b}[31m\nb");
}
