//! `export --format parquet` on recordings: the files have the documented columns and the
//! recording's values, adding a recording again adds nothing, and no incomplete file is ever found.
//! SNAPSHOTS=overwrite updates the tables of the guide.

mod doctor;
mod files;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use parquet::record::Field;
use serde_json::Value;
use spawnscope::present::dataset::Table;

use crate::directory::Directory;
use crate::run::{Finished, SPAWNSCOPE, run, write_program};
use crate::stored::{AFTER, BEFORE, create_recording, execute};
use doctor::run_doctor;
use files::{GUIDE, HEAD, check_schema, documented, files, number, rows, text};

/// Adds a recording to a dataset.
const EXPORT: [&str; 6] = ["export", "--format", "parquet", "-o", "fleet", "recording.db"];
const LABELS: &str = "INSERT INTO label VALUES ('job', 'unit / linux'), ('commit', 'c0ffee'), ('attempt', '2');";

/// A directory with a recording, and perhaps with a dataset to which it was added.
struct Sample(Directory);

impl Sample {
    fn new(more: &str) -> Sample {
        Sample(Directory::with(&[("recording.db", &format!("{BEFORE}{more}"))]))
    }

    fn recording(&self) -> PathBuf {
        self.0.path("recording.db")
    }

    fn dataset(&self) -> PathBuf {
        self.0.path("fleet")
    }

    fn export(&self, more: &[&str]) -> Finished {
        self.0.run(&[&EXPORT, more].concat())
    }

    /// Adds the recording to the dataset. Returns the message.
    fn add(&self) -> String {
        self.export(&[]).expect_code(0).errors()
    }

    /// Returns the only file of a table.
    fn file(&self, table: &str) -> PathBuf {
        let files = files(&self.dataset().join(table));
        assert_eq!(files.len(), 1, "{files:?}");
        files.into_iter().next().unwrap()
    }

    fn rows(&self, table: &str) -> Vec<BTreeMap<String, Field>> {
        rows(&self.file(table))
    }
}

#[test]
fn files_are_partitioned_by_date_and_job_and_named_by_the_recording() {
    let started = "UPDATE recording SET started_unix_ns = 1700000000000000000;";
    let sample = Sample::new(&format!("{LABELS}{started}"));
    sample.add();
    for table in Table::FOR_RECORDINGS {
        let path = sample.file(table.name());
        let within = path.strip_prefix(sample.dataset()).unwrap();
        let parts: Vec<&str> = within.iter().map(|part| part.to_str().unwrap()).collect();
        let [directory, date, job, name] = parts.as_slice() else { panic!("{within:?}") };
        assert_eq!((*directory, *job), (table.name(), "job=unit%20%2F%20linux"));
        assert_eq!(*date, "date=2023-11-14");
        let run = name.strip_suffix(".parquet").unwrap();
        assert!(run.len() == 32 && run.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(rows(&path).iter().all(|row| text(&row["run"]) == Some(run)));
    }
    let without = Sample::new("");
    without.add();
    let file = without.file("runs").display().to_string();
    assert!(file.contains("job=__HIVE_DEFAULT_PARTITION__/"), "{file}");
}

#[test]
fn launches_have_the_values_of_the_report() {
    let sample = Sample::new(LABELS);
    sample.add();
    let lines = sample.0.text(&["export", "--format", "ndjson", "recording.db"]);
    let launches: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = sample.rows("launches");
    assert_eq!(rows.len(), launches.len());
    let mut execs = 0;
    for (row, launch) in rows.iter().zip(&launches) {
        assert_eq!(number(&row["launch"]), launch["id"].as_i64());
        assert_eq!(number(&row["parent"]), launch["parent"].as_i64());
        assert_eq!(text(&row["command"]), launch["command"].as_str());
        assert_eq!(number(&row["start_ns"]), launch["start_ns"].as_i64());
        assert_eq!(number(&row["exit_code"]), launch["exit"]["code"].as_i64());
        for phase in ["create", "queue", "setup", "exec", "load", "run", "teardown", "reap"] {
            let ns = number(&row[&format!("{phase}_ns")]);
            assert_eq!(ns, launch["phases"][phase].as_i64(), "{phase}");
        }
        for key in ["execs", "failed_execs"] {
            execs += launch[key].as_array().unwrap().len();
        }
    }
    assert_eq!(sample.rows("execs").len(), execs);
    let report = sample.0.json(&["report", "--json", "recording.db"]);
    let critical: i64 = rows.iter().filter_map(|row| number(&row["critical_tax_ns"])).sum();
    assert_eq!(Some(critical), report["critical_tax_ns"].as_i64());
    let run = &sample.rows("runs")[0];
    assert_eq!(number(&run["launches"]), report["launches"].as_i64());
    assert_eq!(number(&run["wall_ns"]), report["wall_ns"].as_i64());
    for (label, value) in [("commit", Some("c0ffee")), ("attempt", Some("2")), ("branch", None)] {
        assert_eq!(text(&run[label]), value, "{label}");
    }
    let labels: Value = serde_json::from_str(text(&run["labels"]).unwrap()).unwrap();
    assert_eq!(labels["job"], "unit / linux");
    assert_eq!(sample.rows("waits").len(), report["waits"].as_array().unwrap().len());
    let advice = sample.rows("advice");
    let rules: Vec<&str> = advice.iter().map(|row| text(&row["rule"]).unwrap()).collect();
    let expected = report["advice"].as_array().unwrap().iter();
    let expected: Vec<&str> = expected.map(|each| each["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, expected);
    assert!(!rules.is_empty(), "the sample has advice");
}

#[test]
fn each_caller_counts_the_launches_that_refer_to_it() {
    let sample = Sample::new("");
    sample.add();
    let launches = sample.rows("launches");
    let callers = sample.rows("callers");
    assert!(!callers.is_empty(), "the sample has call sites");
    for caller in &callers {
        let id = number(&caller["caller"]);
        let of_caller = launches.iter().filter(|row| number(&row["caller"]) == id);
        assert_eq!(number(&caller["launches"]), Some(of_caller.count() as i64));
    }
}

#[test]
fn adding_a_recording_again_adds_nothing_and_says_so() {
    let sample = Sample::new(LABELS);
    assert_eq!(sample.add(), "");
    let before = contents(&sample);
    assert_eq!(before.len(), Table::FOR_RECORDINGS.len());
    let message = sample.add();
    assert!(message.contains("already"), "{message}");
    // A recording whose pages SQLite has rearranged is still the same recording.
    execute(&sample.recording(), "PRAGMA page_size = 8192; VACUUM");
    sample.add();
    assert!(contents(&sample) == before, "nothing was added or changed");
    execute(&sample.recording(), "UPDATE recording SET cwd = 'elsewhere'");
    sample.add();
    // Another recording is added.
    assert_eq!(contents(&sample).len(), 2 * Table::FOR_RECORDINGS.len());
}

fn contents(sample: &Sample) -> Vec<(PathBuf, Vec<u8>)> {
    let files = files(&sample.dataset()).into_iter();
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn adding_again_completes_what_a_killed_writer_left() {
    let sample = Sample::new("");
    sample.add();
    let whole = files(&sample.dataset());
    // A writer that was killed before it renamed the file of the last table leaves this.
    let runs = sample.file("runs");
    let left = runs.with_file_name(".0123.abc.tmp");
    fs::rename(&runs, &left).unwrap();
    fs::write(&left, "PAR1").unwrap();
    sample.add();
    fs::remove_file(left).unwrap();
    assert_eq!(files(&sample.dataset()), whole);
    assert_eq!(sample.rows("runs").len(), 1);
}

#[test]
fn a_killed_writer_leaves_only_complete_files() {
    let sample = Sample::new("");
    // The delays range from before the first table is written to after the last.
    for milliseconds in 0..40 {
        let mut writer = sample.0.command(&EXPORT).spawn().unwrap();
        thread::sleep(Duration::from_millis(milliseconds * 4));
        writer.kill().unwrap();
        writer.wait().unwrap();
        if !sample.dataset().exists() {
            continue;
        }
        for file in files(&sample.dataset()) {
            let name = file.file_name().unwrap().to_str().unwrap();
            if name.starts_with('.') {
                fs::remove_file(file).unwrap();
            } else {
                assert!(rows(&file).iter().all(|row| text(&row["run"]).is_some()), "{file:?}");
            }
        }
        let runs = sample.dataset().join("runs");
        if runs.exists() && !files(&runs).is_empty() {
            // The table `runs` is written last.
            assert_eq!(files(&sample.dataset()).len(), Table::FOR_RECORDINGS.len());
            fs::remove_dir_all(sample.dataset()).unwrap();
        }
    }
    sample.add();
    assert_eq!(sample.rows("launches").len(), 21);
}

#[test]
fn concurrent_writers_add_a_recording_once() {
    let sample = Sample::new("");
    let writers: Vec<_> = (0..6).map(|_| sample.0.command(&EXPORT).spawn().unwrap()).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(files(&sample.dataset()).len(), Table::FOR_RECORDINGS.len());
    assert_eq!(sample.rows("launches").len(), 21);
}

#[test]
fn several_recordings_are_added_by_one_command() {
    let sample = Sample::new("");
    create_recording(&sample.0.path("other.db"), &format!("{AFTER}{LABELS}"));
    sample.export(&["other.db"]).expect_code(0);
    assert_eq!(contents(&sample).len(), 2 * Table::FOR_RECORDINGS.len());
    // One that cannot be read does not keep the others out.
    fs::write(sample.0.path("bad.db"), "no recording").unwrap();
    create_recording(&sample.0.path("third.db"), &format!("{BEFORE}UPDATE recording SET cwd = 'elsewhere';"));
    let finished = sample.export(&["bad.db", "third.db"]).expect_code(125);
    finished.expect_errors(["2 of 3 recordings were added", "bad.db is not"]);
    assert_eq!(contents(&sample).len(), 3 * Table::FOR_RECORDINGS.len());
    let message = sample.0.failure(&["export", "--format", "ndjson", "recording.db", "other.db"]);
    assert!(message.contains("one recording"), "{message}");
}

#[test]
fn files_have_the_mode_that_was_asked_for() {
    let sample = Sample::new("");
    for (mode, is_valid) in [("640", true), ("755", false), ("240", false), ("8", false)] {
        let finished = sample.export(&["--mode", mode]);
        assert_eq!(finished.status.success(), is_valid, "{mode}: {}", finished.errors());
    }
    let mode = |file: &PathBuf| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert!(files(&sample.dataset()).iter().all(|file| mode(file) == 0o640));
    let private = Sample::new("");
    private.add();
    assert!(files(&private.dataset()).iter().all(|file| mode(file) == 0o600));
}

#[test]
fn without_command_lines_no_file_has_an_argument() {
    let sample = Sample::new(LABELS);
    sample.export(&["--no-command-lines"]).expect_code(0);
    let [with, without] = [Sample::new(LABELS), sample];
    with.add();
    for (table, column) in [("execs", "command_line"), ("runs", "command"), ("advice", "fix")] {
        let known = |sample: &Sample| {
            let rows = sample.rows(table);
            rows.iter().any(|row| text(&row[column]).is_some_and(|text| !text.is_empty()))
        };
        assert!(known(&with) && !known(&without), "{table}.{column}");
    }
    // All else is the same.
    assert_eq!(with.rows("launches"), without.rows("launches"));
    assert_eq!(with.rows("execs").len(), without.rows("execs").len());
}

#[test]
fn a_recording_that_was_merged_is_not_added_again() {
    let sample = Sample::new("");
    sample.add();
    let runs = sample.file("runs");
    let run = runs.file_stem().unwrap().to_str().unwrap();
    // As `spawnscope fleet compact` leaves it.
    fs::write(runs.with_file_name(".compacted-000001"), format!("0123\n{run}\n")).unwrap();
    fs::rename(&runs, runs.with_file_name("compact-000001.parquet")).unwrap();
    let message = sample.add();
    assert!(message.contains("already"), "{message}");
    assert_eq!(contents(&sample).len(), Table::FOR_RECORDINGS.len() + 1);
}

#[test]
fn a_wrong_or_missing_output_is_refused() {
    let sample = Sample::new("");
    fs::write(sample.dataset(), "a file").unwrap();
    sample.export(&[]).expect_code(125).expect_errors(["is not a directory"]);
    assert!(sample.0.failure(&["export", "--format", "parquet", "recording.db"]).contains("name it with -o"));
}

#[test]
fn the_guide_has_the_columns_of_the_tables() {
    let mut guide = fs::read_to_string(GUIDE).unwrap();
    for table in Table::ALL {
        let old = documented(&guide, table);
        let new = table.documentation().join("\n") + "\n";
        if std::env::var_os("SNAPSHOTS").is_some() {
            let title = format!("### `{}`\n", table.name());
            let (before, section) = guide.split_once(&title).unwrap();
            let section = section.replacen(&format!("{HEAD}{old}"), &format!("{HEAD}{new}"), 1);
            guide = format!("{before}{title}{section}");
        } else {
            assert_eq!(old, new, "{}", table.name());
        }
    }
    if std::env::var_os("SNAPSHOTS").is_some() {
        fs::write(GUIDE, guide).unwrap();
    }
}

#[test]
fn written_files_have_the_documented_schema_version_and_compression() {
    let sample = Sample::new(LABELS);
    sample.add();
    for table in Table::FOR_RECORDINGS {
        check_schema(&sample.file(table.name()), table);
    }
}

/// Writes a program `spawnscope-fleet` that writes its arguments and the names of the tables that
/// it gets to the file `received`, and exits with this status. Returns a PATH that begins with its
/// directory. The tests of the real program push to a real store.
fn add_fleet_program(directory: &Path, status: u8) -> String {
    let program = directory.join("spawnscope-fleet");
    let received = directory.join("received");
    let script = format!(
        "#!/bin/sh\necho \"$1 $3\" >{received}\n(cd \"$2\" && find . -name '*.parquet' | cut -d/ -f2 | sort) >>{received}\nexit {status}\n",
        received = received.display()
    );
    write_program(&program, script);
    format!("{}:{}", directory.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_dataset_in_a_store_is_pushed_by_spawnscope_fleet() {
    let sample = Sample::new(LABELS);
    let directory = sample.0.path("");
    push(&sample, &add_fleet_program(&directory, 0)).expect_code(0);
    let received = fs::read_to_string(directory.join("received")).unwrap();
    let pushed = "push s3://builds/fleet\nadvice\ncallers\nexecs\nlaunches\nruns\nwaits\n";
    assert_eq!(received, pushed);
    let failed = push(&sample, &add_fleet_program(&directory, 7)).expect_code(125);
    failed.expect_errors(["failed to add all files to s3://builds/fleet"]);
    let finished = run_doctor("s3://builds/fleet", &[], &add_fleet_program(&directory, 0));
    assert!(matches!(finished.code(), 0 | 1), "{}", finished.errors());
    let received = fs::read_to_string(directory.join("received")).unwrap();
    assert_eq!(received, "push s3://builds/fleet\ndoctor\n");
    push(&sample, "/usr/bin:/bin").expect_errors(["make install-fleet"]);
}

fn push(sample: &Sample, path: &str) -> Finished {
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["export", "--format", "parquet", "-o", "s3://builds/fleet"]);
    run(command.arg(sample.recording()).env("PATH", path))
}
