//! Tests that read a recording with a write-ahead log or a rollback journal beside it, and that the
//! reader writes nothing.

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::{FinishedFiles, log};

/// Returns a recording as a killed recorder leaves it, with its batches in the log.
pub(super) fn cut_off(launches: u64) -> (tempfile::TempDir, PathBuf) {
    let (growing, directory) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = growing.path().join("spawnscope.db");
    let _recorder = start_recorder(launches, &path);
    wait_for_launches(&path, launches as usize + 1);
    let copy = directory.path().join("spawnscope.db");
    fs::copy(&path, &copy).unwrap();
    fs::copy(log::wal_path(&path), log::wal_path(&copy)).unwrap();
    (directory, copy)
}

fn wait_for_launches(path: &Path, launches: usize) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while RecordingFile::open(path).unwrap().read().unwrap().launches.len() < launches {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the names and contents of all files in a directory.
fn listing(directory: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> =
        entries.map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap())).collect();
    all.sort();
    all
}

#[test]
fn the_files_of_a_killed_recorder_are_read_up_to_the_last_batch_and_not_changed() {
    let (directory, path) = cut_off(5);
    let before = listing(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let recording = read_all(&path).unwrap();
    assert_eq!((recording.launches.len(), recording.info.ended), (6, None));
    let reopened = RecordingFile::open(&path).unwrap().reopen().unwrap().read().unwrap();
    assert_eq!(reopened.launches.len(), 6);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(listing(directory.path()), before);
}

#[test]
fn without_its_log_only_checkpointed_rows_are_read() {
    let (directory, path) = cut_off(5);
    fs::remove_file(log::wal_path(&path)).unwrap();
    let before = listing(directory.path());
    assert_eq!(read_all(&path).unwrap().launches.len(), 0);
    fs::write(log::wal_path(&path), "").unwrap();
    assert_eq!(read_all(&path).unwrap().launches.len(), 0);
    fs::remove_file(log::wal_path(&path)).unwrap();
    assert_eq!(listing(directory.path()), before);
}

#[test]
fn other_programs_may_merge_the_log_into_the_file() {
    let (_directory, path) = cut_off(5);
    let sql = "SELECT count(*) FROM launch";
    let connection = Connection::open(&path).unwrap();
    let launches: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
    drop(connection);
    assert!(!log::wal_path(&path).exists());
    assert_eq!((launches, read_all(&path).unwrap().launches.len()), (6, 6));
}

#[test]
fn the_error_names_a_log_that_is_not_a_file() {
    let (_directory, path) = cut_off(2);
    fs::remove_file(log::wal_path(&path)).unwrap();
    fs::create_dir(log::wal_path(&path)).unwrap();
    let error = read_all(&path).unwrap_err().to_string();
    assert!(error.contains("spawnscope.db-wal cannot be read"), "{error}");
}

/// A recorder of format version 7 or older leaves such files if it is killed in the middle of a
/// batch.
#[test]
fn reading_does_not_roll_back_an_unfinished_change_by_another_program() {
    let (directory, path) = recording(200);
    let other = tempfile::tempdir().unwrap();
    let connection = Connection::open(&path).unwrap();
    connection
        .execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE launch SET pid = 7; UPDATE slice SET calls = 7")
        .unwrap();
    let copy = other.path().join("spawnscope.db");
    fs::copy(&path, &copy).unwrap();
    fs::copy(directory.path().join("spawnscope.db-journal"), other.path().join("spawnscope.db-journal")).unwrap();
    let before = listing(other.path());
    let error = RecordingFile::open(&copy).err().unwrap();
    let is_expected = matches!(error, RecordError::NeedsRepair { .. } | RecordError::Corrupt { .. });
    assert!(is_expected, "{error}");
    assert_eq!(listing(other.path()), before);
}

#[test]
fn while_another_program_reads_the_recording_the_recorder_leaves_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("spawnscope.db");
    let recorder = Recorder::create(&path, &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released()]);
    recorder.send(whole_life(1_000, spawnscope_data::event::LaunchId(2), 200));
    wait_for_launches(&path, 2);
    let reader = Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM launch").unwrap();
    for number in 1..400 {
        recorder.send(whole_life(1_000 + number * 10_000, spawnscope_data::event::LaunchId(2 + number), 200));
    }
    assert_eq!(recorder.finish(ending()).unwrap(), FinishedFiles::WithLog(log::wal_path(&path)));
    assert_eq!(read_all(&path).unwrap().launches.len(), 401);
    let launches: i64 = reader.query_row("SELECT count(*) FROM launch", [], |row| row.get(0)).unwrap();
    assert_eq!(launches, 2, "the reader still sees the state at the start of its transaction");
    drop(reader);
    assert!(!log::wal_path(&path).exists());
    assert_eq!(read_all(&path).unwrap().launches.len(), 401);
}
