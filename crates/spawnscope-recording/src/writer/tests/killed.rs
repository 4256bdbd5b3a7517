//! Tests of the files that killed recorders leave. Each recorder is this test program, started as a
//! separate process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use super::*;
use crate::log;

#[test]
fn the_log_of_a_removed_recording_is_not_applied_to_a_new_one() {
    let directory = Directory::new();
    kill_helper_inside_a_batch(&directory.path());
    fs::remove_file(directory.path()).unwrap();
    let recorder = Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(life(0));
    recorder.finish(ending()).unwrap();
    assert_eq!(read(&directory.path()).launches.len(), 2);
}

/// The variable with the path that the helper records to.
const HELPER_FILE: &str = "SPAWNSCOPE_TEST_RECORD_TO";
/// The variable that says when the helper is killed.
const HELPER_KILL: &str = "SPAWNSCOPE_TEST_RECORD_HOW";

/// Returns the command that runs this test program as a process that records until it is killed.
fn helper(path: &Path, kill: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "writer::tests::killed::helper_process_that_records_until_it_is_killed"]);
    command.env(HELPER_FILE, path).env(HELPER_KILL, kill).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[test]
#[ignore = "not a test: the process that the tests below kill"]
fn helper_process_that_records_until_it_is_killed() {
    let Some(path) = std::env::var_os(HELPER_FILE).map(PathBuf::from) else { return };
    let recorder = Recorder::create(&path, &header(), Redaction::Mask, &WriterOptions::default()).unwrap();
    recorder.send(vec![released()]);
    if std::env::var_os(HELPER_KILL).is_some_and(|kill| kill == "inside a batch") {
        wait_until("the batch is written", || read(&path).launches.len() == 1);
        die_inside_a_batch(&path);
    }
    // The number of launches is bounded, in case the test that should kill this process ends first.
    for number in 0..100_000 {
        recorder.send(life(number));
        if number % 100 == 0 {
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn die_inside_a_batch(path: &Path) -> ! {
    // With a tiny cache, SQLite writes pages to the log before the transaction is committed.
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = 1; BEGIN IMMEDIATE").unwrap();
    connection.execute("UPDATE recording SET ended = 'never'", []).unwrap();
    for id in 1_000..20_000 {
        connection.execute("INSERT INTO launch (id, origin) VALUES (?, 3)", [id]).unwrap();
    }
    nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
    unreachable!("the process was killed")
}

fn kill_helper_inside_a_batch(path: &Path) {
    let status = helper(path, "inside a batch").status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    let log = fs::metadata(log::wal_path(path)).unwrap().len();
    assert!(log > 100_000, "the log contains a part of a batch");
}

#[test]
fn after_a_kill_inside_a_batch_the_batch_before_is_readable() {
    let directory = Directory::new();
    kill_helper_inside_a_batch(&directory.path());
    let recording = read(&directory.path());
    assert_eq!((recording.launches.len(), recording.info.ended), (1, None));
}

#[test]
fn the_recording_of_a_killed_recorder_is_kept_as_old_and_is_readable() {
    let directory = Directory::new();
    kill_helper_inside_a_batch(&directory.path());
    Recorder::create(&directory.path(), &header(), Redaction::Mask, &WriterOptions::default())
        .unwrap()
        .finish(ending())
        .unwrap();
    assert_eq!(read(&directory.0.path().join("spawnscope.db.old")).launches.len(), 1);
    assert_eq!(read(&directory.path()).launches.len(), 0);
}

#[test]
fn a_recorder_killed_at_any_time_leaves_a_readable_recording() {
    let directory = Directory::new();
    let mut recorder = helper(&directory.path(), "by the test").spawn().unwrap();
    wait_until("two batches are written", || {
        let recording = RecordingFile::open(&directory.path()).and_then(|file| file.read());
        recording.is_ok_and(|recording| recording.launches.len() > 1_000)
    });
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let recording = read(&directory.path());
    assert!(recording.launches.len() > 1_000);
    assert_eq!((recording.info.ended, recording.info.wall), (None, None), "the end is unknown");
    assert_eq!(recording.launches.last().unwrap().id.0 as usize, recording.launches.len(), "no launch is missing");
}

#[test]
fn the_first_batches_are_written_early_and_later_ones_seldom() {
    let ages = std::iter::successors(Some(FIRST_BATCH_AGE), |age| Some(age_after(*age)));
    let early: Vec<Duration> = ages.take_while(|age| *age < MAX_BATCH_AGE).collect();
    assert!(early.len() < 10, "few more transactions");
    assert!(early.iter().sum::<Duration>() > MAX_BATCH_AGE, "until batches have their usual age");
    assert!(early[0] <= MAX_BATCH_AGE / 30);
}
