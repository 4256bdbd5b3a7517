//! Tests that valid recordings are read, and that every way in which a file can be invalid is
//! reported.

mod flipped;
mod hostile;
mod versions;
mod wal;

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::*;
use crate::test_events::*;
use crate::{Recorder, Redaction, WriterOptions, version};
use spawnscope_data::event::{Nanos, ObjectKind, Pid, TaskId};
use versions::downgrade;

fn start_recorder(launches: u64, path: &Path) -> Recorder {
    let recorder = Recorder::create(path, &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released()]);
    for number in 0..launches {
        recorder.send(whole_life(1_000 + number * 10_000, spawnscope_data::event::LaunchId(2 + number), 200));
    }
    recorder
}

/// Creates a recording of some launches in a new directory.
fn recording(launches: u64) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spawnscope.db");
    start_recorder(launches, &path).finish(ending()).unwrap();
    (directory, path)
}

/// Changes a recording on purpose, as a program does that deletes the checksums.
fn change(path: &Path, sql: &str) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("DELETE FROM checksum; {sql}")).unwrap();
}

fn read_all(path: &Path) -> Result<Recording, RecordError> {
    let file = RecordingFile::open(path)?;
    let mut found = file.slices(&mut |_| {})?;
    found.extend(file.samples(&mut |_| {})?);
    file.threads()?;
    let mut recording = file.read()?;
    recording.info.contradictions.extend(found);
    Ok(recording)
}

fn read_after(sql: &str) -> Result<Recording, RecordError> {
    let (_directory, path) = recording(3);
    change(&path, sql);
    read_all(&path)
}

#[test]
fn a_file_that_does_not_exist_is_reported_as_missing() {
    let error = RecordingFile::open(Path::new("/nonexistent/spawnscope.db")).err().unwrap();
    assert!(matches!(error, RecordError::Missing { .. }));
    assert!(error.to_string().contains("no recording at /nonexistent/spawnscope.db"), "{error}");
}

#[test]
fn a_file_that_is_not_a_recording_is_reported_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x");
    for content in ["", "x", &"not a database ".repeat(1_000)] {
        fs::write(&path, content).unwrap();
        let error = RecordingFile::open(&path).err().unwrap();
        assert!(matches!(error, RecordError::NotARecording { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "the file is unchanged");
    }
    assert!(matches!(RecordingFile::open(directory.path()), Err(RecordError::NotARecording { .. })), "a directory");
    let other = directory.path().join("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
    assert!(matches!(RecordingFile::open(&other), Err(RecordError::NotARecording { .. })), "another database");
}

#[test]
fn the_error_for_a_newer_version_names_both_versions() {
    let newer = version::CURRENT + 1;
    let error = read_after(&format!("PRAGMA user_version = {newer}")).unwrap_err();
    assert!(matches!(error, RecordError::NewerVersion { found, known: version::CURRENT, .. } if found == newer));
    assert!(error.to_string().contains("update spawnscope"), "{error}");
}

#[test]
fn version_1_is_read_and_the_columns_of_later_versions_are_unknown() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("old.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(include_str!("../../../spawnscope/tests/recordings/version_1.sql"))
        .unwrap();
    let file = RecordingFile::open(&path).unwrap();
    let recording = file.read().unwrap();
    let launch = &recording.launches[1];
    assert_eq!((launch.pid, launch.cpu), (Some(Pid(101)), Some(Nanos(420_000))));
    assert_eq!((launch.setup_closes, launch.setup_close_span), (None, None));
    let exec = &recording.execs[1];
    assert_eq!(recording.texts.get(exec.path), b"/bin/true");
    assert_eq!((exec.load_opens, exec.load_failed_opens, exec.load_cache), (None, None, None));
    assert_eq!(recording.calibration, []);
    let mut slices = 0;
    file.slices(&mut |_| slices += 1).unwrap();
    assert_eq!((slices, file.threads().unwrap().len()), (2, 0));
    file.samples(&mut |row| panic!("{row:?}")).unwrap();
}

#[test]
fn a_truncated_file_is_damaged() {
    let (_directory, path) = recording(1_000);
    let bytes = fs::metadata(&path).unwrap().len();
    for kept in [bytes / 2, bytes - 4_096, 5_000] {
        OpenOptions::new().write(true).open(&path).unwrap().set_len(kept).unwrap();
        let error = RecordingFile::open(&path).and_then(|file| file.read()).unwrap_err();
        assert!(matches!(error, RecordError::Corrupt { .. }), "{kept}: {error}");
        assert!(error.to_string().contains("spawnscope.db is damaged"), "{error}");
    }
    OpenOptions::new().write(true).open(&path).unwrap().set_len(50).unwrap();
    assert!(RecordingFile::open(&path).is_err(), "the header is incomplete");
}

#[test]
fn opening_waits_for_a_lock_and_then_reports_it() {
    let (_directory, path) = recording(3);
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = RecordingFile::open_within(&path, Duration::from_millis(50)).err().unwrap();
    assert!(matches!(error, RecordError::Locked { .. }), "{error}");
    let ending = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        other.execute_batch("COMMIT").unwrap();
    });
    assert!(RecordingFile::open_within(&path, Duration::from_secs(10)).is_ok());
    ending.join().unwrap();
}

#[test]
fn the_error_for_an_invalid_value_names_its_table_and_column() {
    for (sql, expected) in [
        ("UPDATE launch SET origin = 9", "column origin of table launch holds 9"),
        ("UPDATE launch SET mechanism = 5", "column mechanism of table launch holds 5"),
        ("UPDATE launch SET exit_ns = -1", "column exit_ns of table launch holds -1"),
        ("UPDATE launch SET pid = 1 << 40", "column pid of table launch holds 1099511627776"),
        ("UPDATE launch SET created_ns = 'noon'", "column created_ns of table launch holds a value of type Text"),
        ("UPDATE launch SET name_text = 9999", "column name_text of table launch holds 9999"),
        ("UPDATE exec SET path_text = 9999", "column path_text of table exec holds 9999"),
        ("UPDATE exec SET has_loader = 2", "column has_loader of table exec holds 2"),
        ("UPDATE failed_exec SET errno = 1.5", "column errno of table failed_exec holds a value of type Real"),
        ("UPDATE slice SET reason = 6", "column reason of table slice holds 6"),
        ("UPDATE slice SET object = 5000", "column object of table slice holds 5000"),
        ("INSERT INTO object VALUES (5000, 15, 0, 0, NULL)", "column kind of table object holds 15"),
        ("UPDATE slice SET waker = -1 << 63", "column waker of table slice holds -9223372036854775808"),
        ("UPDATE slice SET argument = 'x'", "column argument of table slice holds a value of type Text"),
        ("INSERT INTO thread VALUES (1, 1, NULL, 1 << 33, 0, 0, 0)", "column tid of table thread holds 8589934592"),
        ("UPDATE recording SET scope = 'some'", "column scope of table recording holds 'some'"),
        ("UPDATE recording SET arch = x'ff'", "column arch of table recording"),
        ("UPDATE text SET bytes = 5", "column bytes of table text holds a value of type Integer"),
        ("UPDATE calibration SET what = 'luck'", "column what of table calibration holds 'luck'"),
        ("UPDATE calibration SET ns = 9e999", "column ns of table calibration holds inf"),
        ("UPDATE calibration SET low_ns = 'some'", "column low_ns of table calibration holds a value of type Text"),
        ("INSERT INTO lost VALUES ('slice', -1)", "column events of table lost holds -1"),
    ] {
        let error = read_after(sql).unwrap_err();
        assert!(matches!(error, RecordError::BadValue { .. }), "{sql}: {error}");
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[test]
fn checksums_of_an_earlier_version_are_compared() {
    let (_directory, path) = recording(3);
    downgrade(&path, 9);
    let connection = Connection::open(&path).unwrap();
    let sums: i64 = connection.query_row("SELECT count(*) FROM checksum", [], |row| row.get(0)).unwrap();
    assert_eq!(sums, 14);
    drop(connection);
    read_all(&path).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE launch SET pid = pid + 1").unwrap();
    assert!(read_all(&path).unwrap_err().to_string().contains("do not match their checksum"));
}

/// Returns the labels of a recording as `key=value`.
fn labels(path: &Path) -> Vec<String> {
    let labels = read_all(path).unwrap().info.labels;
    labels.iter().map(|label| format!("{}={}", label.key, label.value)).collect()
}

#[test]
fn labels_are_read_without_secrets_and_with_labels_for_the_machine() {
    let (_directory, path) = recording(1);
    let machine = ["arch=x86_64", "host=here", "kernel=6.18.0"];
    assert_eq!(labels(&path)[..3], machine);
    assert_eq!(labels(&path)[3..], ["url=https://ci:***@example.org/7"]);
    change(&path, "INSERT INTO label VALUES ('host', 'given')");
    assert_eq!(labels(&path)[1], "host=given", "a label of the user takes precedence");
    downgrade(&path, 9);
    assert_eq!(labels(&path), machine, "older recordings have no table of labels");
}

#[test]
fn a_missing_table_column_or_row_is_damage() {
    for sql in ["DROP TABLE exec", "ALTER TABLE launch RENAME COLUMN exit_ns TO exit", "DELETE FROM recording"] {
        let error = read_after(sql).unwrap_err();
        assert!(matches!(error, RecordError::Corrupt { .. }), "{sql}: {error}");
    }
}

#[test]
fn texts_are_found_if_their_ids_have_gaps() {
    let changed = "UPDATE text SET id = id + 1000; UPDATE exec SET path_text = path_text + 1000, \
                   argv_text = argv_text + 1000, cwd_text = NULL, variables_text = NULL; \
                   UPDATE failed_exec SET path_text = path_text + 1000; \
                   UPDATE object SET path_text = NULL; \
                   UPDATE frame SET file_text = file_text + 1000, function_text = function_text + 1000; \
                   INSERT INTO text VALUES (5, 'TEXT instead of BLOB')";
    let Recording { execs, texts, .. } = read_after(changed).unwrap();
    assert_eq!(texts.get(execs[2].path), b"/usr/bin/dirname");
    assert_eq!(texts.get(TextId(0)), b"TEXT instead of BLOB");
}

#[test]
fn wakers_threads_and_losses_are_read() {
    let (_directory, path) = recording(1);
    change(
        &path,
        "DELETE FROM slice; INSERT INTO text VALUES (99, x'6b30');
             INSERT INTO slice VALUES (1, 10, 5, 20, 7, 2, 61, -1, -7, 99, 40, 3, 0),
             (1, 50, NULL, NULL, NULL, 5, NULL, NULL, 0, NULL, NULL, NULL, 1);
             INSERT INTO slice VALUES (1, 60, NULL, NULL, NULL, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
             INSERT INTO object VALUES (7, 0, 15, 4242, NULL), (40, 1, 8, -1, 99);
             INSERT INTO thread VALUES (8, 1, NULL, 300, 10, NULL, NULL)",
    );
    let file = RecordingFile::open(&path).unwrap();
    let mut slices = Vec::new();
    file.slices(&mut |row| slices.push(row)).unwrap();
    let Recording { texts, objects, .. } = file.read().unwrap();
    let object = slices[0].object.unwrap();
    assert_eq!((object.kind(), objects[object.index()].inode), (ObjectKind::Fifo, u64::MAX));
    assert_eq!(objects[object.index()].path.map(|path| texts.get(path)), Some(b"k0".as_slice()));
    assert_eq!(slices[1].object, None);
    let Some(WakerRow::Other(Pid(7), Some(name))) = slices[0].waker else { panic!("{:?}", slices[0]) };
    assert_eq!(texts.get(name), b"k0");
    assert_eq!((slices[0].on_span, slices[0].wake_span), (Some(Nanos(5)), Some(Nanos(7))));
    assert_eq!((slices[0].syscall, slices[0].argument), (Some(61), Some(u64::MAX)));
    assert_eq!((slices[1].waker, slices[1].off_span), (Some(WakerRow::Interrupt), None));
    assert_eq!(slices[2].waker, None);
    assert_eq!(slices.iter().map(|row| row.is_waker_certain).collect::<Vec<_>>(), [Some(false), Some(true), None]);
    let thread = &file.threads().unwrap()[0];
    assert_eq!((thread.task, thread.creator, thread.tid, thread.ended), (TaskId(8), None, Pid(300), None));
}

#[test]
fn system_calls_of_another_architecture_are_translated_to_x86_64() {
    let (_directory, path) = recording(1);
    change(
        &path,
        "UPDATE recording SET arch = 'aarch64';
         DELETE FROM slice;
         INSERT INTO slice VALUES (1, 40, NULL, 5, NULL, 2, 260, -1, NULL, NULL, NULL, NULL, NULL),
             (1, 60, NULL, 5, NULL, 2, 300, -1, NULL, NULL, NULL, NULL, NULL)",
    );
    let mut calls = Vec::new();
    let file = RecordingFile::open(&path).unwrap();
    file.slices(&mut |row| calls.push(row.syscall)).unwrap();
    // wait4, and a number that aarch64 does not use.
    assert_eq!(calls, [Some(61), None]);
}

#[test]
fn a_hundred_thousand_launches_are_read_in_order() {
    let (_directory, path) = recording(1);
    change(
        &path,
        "WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         INSERT INTO launch (id, parent, origin) SELECT i, 1, 0 FROM n",
    );
    let launches = RecordingFile::open(&path).unwrap().read().unwrap().launches;
    assert_eq!(launches.len(), 100_000);
    assert!(launches.is_sorted_by_key(|row| row.id));
}
