//! Labels: which ones `record` refuses, and how reports show those of a recording.

use super::{SampleRecording, failure, stdout};

/// The tests of `cli::labels` have the other mistakes.
#[test]
fn a_bad_label_is_refused_before_the_command_starts() {
    let directory = tempfile::tempdir().unwrap();
    let [started, output] = ["started", "x.db"].map(|name| directory.path().join(name));
    let words =
        ["record", "-o", output.to_str().unwrap(), "--label", "commit", "--", "touch", started.to_str().unwrap()];
    assert!(failure(&words).contains("write it as NAME=VALUE"));
    assert!(!started.exists() && !output.exists());
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
