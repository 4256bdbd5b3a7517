//! `doctor -o DATASET` writes its findings as rows of the table `doctor`.

use std::path::PathBuf;
use std::process::Command;

use spawnscope::present::dataset::Table;

use super::Sample;
use super::files::{check_schema, files, number, rows, text};
use crate::run::{Finished, SPAWNSCOPE, run};

/// Runs the doctor, which takes seconds, and adds its findings to the dataset.
pub fn run_doctor(dataset: &str, more: &[&str], path: &str) -> Finished {
    run(Command::new(SPAWNSCOPE).args(["doctor", "--json", "-o", dataset]).args(more).env("PATH", path))
}

#[test]
fn findings_of_the_doctor_are_rows_of_their_own_table() {
    let directory = tempfile::tempdir().unwrap();
    let dataset = directory.path().join("fleet");
    let host = ["--host", "builder 7"];
    let finished = run_doctor(dataset.to_str().unwrap(), &host, "/usr/bin:/bin:/gone");
    assert!(matches!(finished.code(), 0 | 1), "{}", finished.errors());
    let printed = finished.json();
    let written: Vec<PathBuf> = files(&dataset).into_iter().collect();
    let [file] = written.as_slice() else { panic!("{written:?}") };
    let relative = file.strip_prefix(&dataset).unwrap().to_str().unwrap();
    assert!(relative.starts_with("doctor/date=2"), "{relative}");
    assert!(relative.contains("/job=__HIVE_DEFAULT_PARTITION__/"), "{relative}");
    let id = file.file_stem().unwrap().to_str().unwrap();
    let found = rows(file);
    let [findings, unseen] = ["findings", "unseen"].map(|key| printed[key].as_array().unwrap());
    assert_eq!(found.len(), findings.len() + unseen.len());
    for (row, finding) in found.iter().zip(findings) {
        assert_eq!(text(&row["check_name"]), finding["check"].as_str());
        assert_eq!(number(&row["effect_ns"]), finding["effect_ns"].as_i64());
        for column in "severity title evidence effect_of effect_basis fix fix_cost".split(' ') {
            assert_eq!(text(&row[column]), finding[column].as_str(), "{column}");
        }
    }
    for (row, unseen) in found.iter().rev().zip(unseen.iter().rev()) {
        assert_eq!(text(&row["severity"]), Some("unseen"));
        assert_eq!(text(&row["title"]), unseen["what"].as_str());
        assert_eq!(number(&row["effect_ns"]), None);
    }
    for (row, place) in found.iter().zip(1..) {
        assert_eq!(number(&row["place"]), Some(place));
        assert_eq!(text(&row["examination"]), Some(id));
        assert_eq!(text(&row["host"]), Some("builder 7"));
        let fork = &printed["launch_cost_ns"]["fork"];
        assert_eq!(number(&row["fork_ns"]), fork.as_i64());
    }
    check_schema(file, Table::Doctor);
}

#[test]
fn only_complete_examinations_are_added_and_only_to_datasets() {
    let sample = Sample::new("");
    let recording = sample.recording();
    assert!(refused(&["-o", recording.to_str().unwrap()]).contains("is not a directory"));
    assert!(refused(&["-o", "-"]).contains("s3://BUCKET/PREFIX"));
    assert!(refused(&["scanners", "-o", "fleet"]).contains("cannot be used with"));
    assert!(refused(&["--except", "scanners", "-o", "fleet"]).contains("cannot be used with"));
    assert!(refused(&["--host", "builder"]).contains("--output"));
}

fn refused(arguments: &[&str]) -> String {
    run(Command::new(SPAWNSCOPE).arg("doctor").args(arguments)).expect_code(125).errors()
}
