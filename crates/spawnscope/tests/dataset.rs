//! `export --format parquet` on recordings: the files have the documented columns and the recording's values, adding twice adds nothing, and
//! nothing half written is ever found. SNAPSHOTS=overwrite renews the tables of the guide.

#![cfg(feature = "parquet")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use parquet::basic::{LogicalType, Repetition, Type};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use rusqlite::Connection;
use serde_json::Value;
use spawnscope::present::dataset::{DATASET_VERSION, Table};

const SCHEMA: &str = include_str!("../../spawnscope-recording/src/schema.sql");
const BEFORE: &str = include_str!("recordings/relocate_before.sql");
const LABELS: &str = "INSERT INTO label VALUES ('job', 'unit / linux'), ('commit', 'c0ffee'), ('attempt', '2');";

/// A recording, and the folder of a dataset.
struct Sample {
    folder: tempfile::TempDir,
}

impl Sample {
    fn new(more: &str) -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let connection = Connection::open(folder.path().join("recording.db")).unwrap();
        connection.execute_batch(&format!("{SCHEMA}{BEFORE}{more}")).unwrap();
        Sample { folder }
    }

    fn recording(&self) -> PathBuf {
        self.folder.path().join("recording.db")
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("fleet")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
        command.args(["export", "--format", "parquet", "-o"]);
        command.arg(self.dataset()).arg(self.recording());
        command
    }

    /// Adds the recording to the dataset.
    fn add(&self) -> Output {
        let output = self.command().output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// The only file of a table.
    fn file(&self, table: &str) -> PathBuf {
        let files = files(&self.dataset().join(table));
        assert_eq!(files.len(), 1, "{files:?}");
        files.into_iter().next().unwrap()
    }

    fn rows(&self, table: &str) -> Vec<BTreeMap<String, Field>> {
        rows(&self.file(table))
    }

    fn json(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
        let output = command.args(arguments).arg(self.recording()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { [path].into() })
        .collect()
}

fn rows(file: &Path) -> Vec<BTreeMap<String, Field>> {
    let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
    let columns = |row: Row| row.into_columns().into_iter().collect();
    reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| columns(row.unwrap()))
        .collect()
}

fn number(field: &Field) -> Option<i64> {
    match field {
        Field::Long(value) => Some(*value),
        Field::Int(value) => Some(i64::from(*value)),
        Field::Null => None,
        other => panic!("{other:?}"),
    }
}

fn word(field: &Field) -> Option<&str> {
    match field {
        Field::Str(value) => Some(value),
        Field::Null => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn files_are_partitioned_by_date_and_job_and_named_by_the_recording() {
    let started = "UPDATE recording SET started_unix_ns = 1700000000000000000;";
    let sample = Sample::new(&format!("{LABELS}{started}"));
    sample.add();
    for table in Table::OF_A_RECORDING {
        let path = sample.file(table.name());
        let within = path.strip_prefix(sample.dataset()).unwrap();
        let parts: Vec<&str> = within.iter().map(|part| part.to_str().unwrap()).collect();
        let [folder, date, job, name] = parts.as_slice() else {
            panic!("{within:?}")
        };
        assert_eq!((*folder, *job), (table.name(), "job=unit%20%2F%20linux"));
        assert_eq!(*date, "date=2023-11-14");
        let run = name.strip_suffix(".parquet").unwrap();
        assert!(run.len() == 32 && run.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert!(rows(&path).iter().all(|row| word(&row["run"]) == Some(run)));
    }
    let without = Sample::new("");
    without.add();
    assert!(
        without
            .file("runs")
            .to_str()
            .unwrap()
            .contains("job=__HIVE_DEFAULT_PARTITION__/")
    );
}

#[test]
fn launches_have_the_values_of_the_report() {
    let sample = Sample::new(LABELS);
    sample.add();
    let lines = sample.json(&["export", "--format", "ndjson"]);
    let launches: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = sample.rows("launches");
    assert_eq!(rows.len(), launches.len());
    let mut execs = 0;
    for (row, launch) in rows.iter().zip(&launches) {
        assert_eq!(number(&row["launch"]), launch["id"].as_i64());
        assert_eq!(number(&row["parent"]), launch["parent"].as_i64());
        assert_eq!(word(&row["command"]), launch["command"].as_str());
        assert_eq!(number(&row["start_ns"]), launch["start_ns"].as_i64());
        assert_eq!(number(&row["exit_code"]), launch["exit"]["code"].as_i64());
        for phase in ["create", "queue", "setup", "exec", "load", "run", "teardown", "reap"] {
            assert_eq!(
                number(&row[&format!("{phase}_ns")]),
                launch["phases"][phase].as_i64(),
                "{phase}"
            );
        }
        let length = |key: &str| launch[key].as_array().unwrap().len();
        execs += length("execs") + length("failed_execs");
    }
    assert_eq!(sample.rows("execs").len(), execs);
    let report: Value = serde_json::from_str(&sample.json(&["report", "--json"])).unwrap();
    let critical: i64 = rows.iter().filter_map(|row| number(&row["critical_tax_ns"])).sum();
    assert_eq!(Some(critical), report["critical_tax_ns"].as_i64());
    let run = &sample.rows("runs")[0];
    assert_eq!(number(&run["launches"]), report["launches"].as_i64());
    assert_eq!(number(&run["wall_ns"]), report["wall_ns"].as_i64());
    assert_eq!(
        (word(&run["commit"]), word(&run["attempt"])),
        (Some("c0ffee"), Some("2"))
    );
    assert_eq!(word(&run["branch"]), None);
    let labels: Value = serde_json::from_str(word(&run["labels"]).unwrap()).unwrap();
    assert_eq!(labels["job"], "unit / linux");
    assert_eq!(sample.rows("waits").len(), report["waits"].as_array().unwrap().len());
    let advice = sample.rows("advice");
    let rules: Vec<&str> = advice.iter().map(|row| word(&row["rule"]).unwrap()).collect();
    let expected: Vec<&str> = report["advice"]
        .as_array()
        .unwrap()
        .iter()
        .map(|each| each["rule"].as_str().unwrap())
        .collect();
    assert_eq!(rules, expected);
    assert!(!rules.is_empty(), "the sample has advice");
}

#[test]
fn callers_count_the_launches_that_refer_to_them() {
    let sample = Sample::new("");
    sample.add();
    let launches = sample.rows("launches");
    let callers = sample.rows("callers");
    assert!(!callers.is_empty(), "the sample has call sites");
    for caller in &callers {
        let of_caller = launches
            .iter()
            .filter(|row| number(&row["caller"]) == number(&caller["caller"]));
        assert_eq!(number(&caller["launches"]), Some(of_caller.count() as i64));
    }
}

#[test]
fn adding_twice_adds_nothing_and_says_so() {
    let sample = Sample::new(LABELS);
    assert!(sample.add().stderr.is_empty());
    let state = || -> Vec<(PathBuf, Vec<u8>)> {
        let files = files(&sample.dataset()).into_iter();
        files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = state();
    assert_eq!(before.len(), Table::OF_A_RECORDING.len());
    let message = String::from_utf8(sample.add().stderr).unwrap();
    assert!(message.contains("already"), "{message}");
    // A copy under another name, whose pages SQLite arranged anew, is the same recording.
    let connection = Connection::open(sample.recording()).unwrap();
    connection.execute_batch("PRAGMA page_size = 8192; VACUUM").unwrap();
    drop(connection);
    sample.add();
    assert!(state() == before, "nothing was added or changed");
    let connection = Connection::open(sample.recording()).unwrap();
    connection
        .execute_batch("UPDATE recording SET cwd = 'elsewhere'")
        .unwrap();
    drop(connection);
    sample.add();
    assert_eq!(
        state().len(),
        2 * Table::OF_A_RECORDING.len(),
        "another recording is added"
    );
}

#[test]
fn a_crash_leaves_no_half_file_and_adding_again_completes() {
    let sample = Sample::new("");
    sample.add();
    let whole = files(&sample.dataset());
    // As left by a writer that was killed before it renamed the last table.
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
fn a_killed_writer_leaves_whole_files_only() {
    let sample = Sample::new("");
    // From before the first table to after the last.
    for milliseconds in 0..40 {
        let mut writer = sample.command().spawn().unwrap();
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
                assert!(rows(&file).iter().all(|row| word(&row["run"]).is_some()), "{file:?}");
            }
        }
        if sample.dataset().join("runs").exists() && !files(&sample.dataset().join("runs")).is_empty() {
            assert_eq!(
                files(&sample.dataset()).len(),
                Table::OF_A_RECORDING.len(),
                "the row in runs is the last"
            );
            fs::remove_dir_all(sample.dataset()).unwrap();
        }
    }
    sample.add();
    assert_eq!(sample.rows("launches").len(), 21);
}

#[test]
fn many_writers_at_once_write_one_recording() {
    let sample = Sample::new("");
    let writers: Vec<_> = (0..6).map(|_| sample.command().spawn().unwrap()).collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    assert_eq!(files(&sample.dataset()).len(), Table::OF_A_RECORDING.len());
    assert_eq!(sample.rows("launches").len(), 21);
}

#[test]
fn wrong_places_are_refused() {
    let sample = Sample::new("");
    fs::write(sample.dataset(), "a file").unwrap();
    let output = sample.command().output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a folder"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    let output = command
        .args(["export", "--format", "parquet"])
        .arg(sample.recording())
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("name it with -o"));
}

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/parquet.md");
const HEAD: &str = "| column | type | NULL | meaning |\n|---|---|---|---|\n";

/// The section of a table in the guide.
fn documented(guide: &str, table: Table) -> String {
    let title = format!("### `{}`\n", table.name());
    let section = guide
        .split_once(&title)
        .unwrap_or_else(|| panic!("no section {title}"))
        .1;
    let rows = section.split_once(HEAD).unwrap().1;
    rows.lines()
        .take_while(|line| line.starts_with('|'))
        .fold(String::new(), |all, line| all + line + "\n")
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
            guide = format!(
                "{before}{title}{}",
                section.replacen(&format!("{HEAD}{old}"), &format!("{HEAD}{new}"), 1)
            );
        } else {
            assert_eq!(old, new, "{}", table.name());
        }
    }
    if std::env::var_os("SNAPSHOTS").is_some() {
        fs::write(GUIDE, guide).unwrap();
    }
}

#[test]
fn written_files_have_the_documented_schema_version_and_packing() {
    let sample = Sample::new(LABELS);
    sample.add();
    for table in Table::OF_A_RECORDING {
        check_schema(&sample.file(table.name()), table);
    }
}

fn check_schema(file: &Path, table: Table) {
    let guide = fs::read_to_string(GUIDE).unwrap();
    {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        let metadata = reader.metadata();
        let pairs = metadata.file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| {
            pairs
                .iter()
                .find(|pair| pair.key == key)
                .and_then(|pair| pair.value.clone())
        };
        assert_eq!(value("spawnscope.dataset_version"), Some(DATASET_VERSION.to_string()));
        assert_eq!(value("spawnscope.table").as_deref(), Some(table.name()));
        let schema = metadata.file_metadata().schema();
        let written = schema.get_fields().iter().map(|field| {
            let kind = match (field.get_physical_type(), field.get_basic_info().logical_type_ref()) {
                (Type::INT64, Some(LogicalType::Timestamp { .. })) => "timestamp",
                (Type::INT64, None) => "int64",
                (Type::INT32, None) => "int32",
                (Type::DOUBLE, None) => "double",
                (Type::BOOLEAN, None) => "bool",
                (Type::BYTE_ARRAY, Some(LogicalType::String)) => "string",
                other => panic!("{}: {other:?}", field.name()),
            };
            let is_optional = field.get_basic_info().repetition() == Repetition::OPTIONAL;
            format!(
                "| `{}` | {kind} | {} |",
                field.name(),
                if is_optional { "yes" } else { "" }
            )
        });
        let documented = documented(&guide, table);
        let documented = documented.lines().map(|line| {
            let parts: Vec<&str> = line.splitn(5, '|').collect();
            parts[..4].join("|") + "|"
        });
        assert_eq!(
            written.collect::<Vec<_>>(),
            documented.collect::<Vec<_>>(),
            "{}",
            table.name()
        );
        for group in metadata.row_groups() {
            for column in group.columns() {
                assert!(
                    column.compression().to_string().contains("ZSTD"),
                    "{}",
                    column.column_path()
                );
                assert!(column.statistics().is_some(), "{}", column.column_path());
            }
        }
    }
}

/// Runs the doctor, which takes seconds, and adds what it finds.
fn examined(dataset: &str, more: &[&str], path: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    command.args(["doctor", "--json", "-o", dataset]).args(more);
    command.env("PATH", path).output().unwrap()
}

#[test]
fn findings_of_the_doctor_are_rows_of_their_own_table() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = folder.path().join("fleet");
    let output = examined(
        dataset.to_str().unwrap(),
        &["--host", "builder 7"],
        "/usr/bin:/bin:/gone",
    );
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let written: Vec<PathBuf> = files(&dataset).into_iter().collect();
    let [file] = written.as_slice() else {
        panic!("{written:?}")
    };
    let place = file.strip_prefix(&dataset).unwrap().to_str().unwrap();
    assert!(
        place.starts_with("doctor/date=2") && place.contains("/job=__HIVE_DEFAULT_PARTITION__/"),
        "{place}"
    );
    let id = file.file_stem().unwrap().to_str().unwrap();
    let found = rows(file);
    let items = |key: &str| printed[key].as_array().unwrap().clone();
    assert_eq!(found.len(), items("findings").len() + items("unseen").len());
    for (row, finding) in found.iter().zip(items("findings")) {
        assert_eq!(word(&row["check_name"]), finding["check"].as_str());
        assert_eq!(number(&row["effect_ns"]), finding["effect_ns"].as_i64());
        for column in [
            "severity",
            "title",
            "evidence",
            "effect_of",
            "effect_basis",
            "fix",
            "fix_cost",
        ] {
            assert_eq!(word(&row[column]), finding[column].as_str(), "{column}");
        }
    }
    for (row, unseen) in found.iter().rev().zip(items("unseen").iter().rev()) {
        assert_eq!(word(&row["severity"]), Some("unseen"));
        assert_eq!(word(&row["title"]), unseen["what"].as_str());
        assert_eq!(number(&row["effect_ns"]), None);
    }
    for (row, place) in found.iter().zip(1..) {
        assert_eq!(number(&row["place"]), Some(place));
        assert_eq!(
            (word(&row["examination"]), word(&row["host"])),
            (Some(id), Some("builder 7"))
        );
        let fork = &printed["launch_cost_ns"]["fork"];
        assert_eq!(number(&row["fork_ns"]), fork.as_i64());
    }
    check_schema(file, Table::Doctor);
}

#[test]
fn only_whole_examinations_are_added_and_to_datasets_only() {
    let sample = Sample::new("");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
        let output = command.arg("doctor").args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let recording = sample.recording();
    assert!(run(&["-o", recording.to_str().unwrap()]).contains("is not a folder"));
    assert!(run(&["-o", "-"]).contains("s3://BUCKET/FOLDER"));
    assert!(run(&["scanners", "-o", "fleet"]).contains("cannot be used with"));
    assert!(run(&["--except", "scanners", "-o", "fleet"]).contains("cannot be used with"));
    assert!(run(&["--host", "builder"]).contains("--output"));
}

/// Writes a program `spawnscope-fleet` that notes what it gets. The engine's own tests push to a real store.
fn pusher(folder: &Path, status: u8) -> String {
    let program = folder.join("spawnscope-fleet");
    let seen = folder.join("seen");
    let script = format!(
        "#!/bin/sh\necho \"$1 $3\" >{seen}\n(cd \"$2\" && find . -name '*.parquet' | cut -d/ -f2 | sort) >>{seen}\nexit {status}\n",
        seen = seen.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

#[test]
fn a_dataset_in_a_store_is_pushed_by_the_engines_program() {
    let sample = Sample::new(LABELS);
    let export = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
        command.args(["export", "--format", "parquet", "-o", "s3://builds/fleet"]);
        command.arg(sample.recording()).env("PATH", path).output().unwrap()
    };
    let output = export(&pusher(sample.folder.path(), 0));
    assert!(output.status.success(), "{output:?}");
    let seen = fs::read_to_string(sample.folder.path().join("seen")).unwrap();
    assert_eq!(
        seen,
        "push s3://builds/fleet\nadvice\ncallers\nexecs\nlaunches\nruns\nwaits\n"
    );
    let failed = export(&pusher(sample.folder.path(), 7));
    let message = String::from_utf8(failed.stderr).unwrap();
    assert!(
        failed.status.code() == Some(125) && message.contains("nothing was added to s3://builds/fleet"),
        "{message}"
    );
    let output = examined("s3://builds/fleet", &[], &pusher(sample.folder.path(), 0));
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let seen = fs::read_to_string(sample.folder.path().join("seen")).unwrap();
    assert_eq!(seen, "push s3://builds/fleet\ndoctor\n");
    let missing = String::from_utf8(export("/usr/bin:/bin").stderr).unwrap();
    assert!(missing.contains("make fleet"), "{missing}");
}
