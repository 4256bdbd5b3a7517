//! Recordings that are made to harm their readers: each verb ends soon, within bounded memory, and
//! reports what is wrong. Needs no privilege. The tests of the reader in spawnscope-recording cover
//! every case that it refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::stored::{TWO_LAUNCHES, create_recording, execute};

/// The verbs that read one recording. `diff` and `check`, which compare several, open them in the
/// same way.
const READERS: [&[&str]; 10] = [
    &["report"],
    &["report", "--json"],
    &["advise"],
    &["advise", "--patch"],
    &["whatif", "--cpus", "4"],
    &["tree"],
    &["flame", "--folded"],
    &["export", "--format", "ndjson"],
    &["export", "--format", "perfetto", "-o", "-"],
    // To a file: the page would fill the pipe, which `read` empties only after the end.
    &["html", "-o", "/dev/null"],
];
/// The address space limit of a reader, several times what a small recording needs.
const MAX_KIB: u32 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A directory with a recording of two launches that SQL has changed.
struct AlteredRecording {
    directory: tempfile::TempDir,
}

impl AlteredRecording {
    fn new(changes: &str) -> AlteredRecording {
        let recording = AlteredRecording { directory: tempfile::tempdir().unwrap() };
        create_recording(&recording.path(), &format!("{TWO_LAUNCHES}{changes}"));
        recording
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("sample.db")
    }

    fn execute(&self, sql: &str) {
        execute(&self.path(), sql);
    }

    /// Returns the output of each verb.
    fn read(&self) -> impl Iterator<Item = (&'static [&'static str], Output)> {
        let path = self.path();
        READERS.iter().map(move |verb| (*verb, read(verb, &path)))
    }

    /// Checks that every verb refuses the recording and says why.
    fn assert_is_refused(&self, why: &str) {
        for (verb, output) in self.read() {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(125), "{verb:?}: {errors}");
            assert!(errors.contains(why), "{verb:?}: {errors}");
        }
    }
}

/// Runs a verb with limits on memory and time.
fn read(verb: &[&str], recording: &Path) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MAX_KIB}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_spawnscope"))
        .args(verb)
        .arg(recording)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("{verb:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn nothing_in_the_schema_is_run() {
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS rowid, 'x' AS what, 'y' AS effect FROM n";
    AlteredRecording::new(&format!("DROP TABLE missing; CREATE VIEW missing AS {endless}"))
        .assert_is_refused("its view missing");
    AlteredRecording::new("CREATE TRIGGER t AFTER INSERT ON lost BEGIN SELECT 1; END")
        .assert_is_refused("its trigger t");
}

#[test]
fn no_number_in_a_recording_fills_the_memory() {
    AlteredRecording::new("UPDATE text SET bytes = zeroblob(900000000) WHERE id = 1").assert_is_refused("too big");
    AlteredRecording::new("UPDATE recording SET cpus = 2147483647").assert_is_refused("column cpus of table recording");
    AlteredRecording::new("UPDATE recording SET last_ns = 9223372036854775807")
        .assert_is_refused("column last_ns of table recording");
}

#[test]
fn every_verb_reports_contradictions() {
    let recording = AlteredRecording::new(
        "UPDATE launch SET created_ns = 29000000 WHERE id = 1; UPDATE exec SET load_ns = 29000000 WHERE launch = 2",
    );
    for (verb, output) in recording.read() {
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let printed = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {printed}");
        let is_json = verb.contains(&"--json");
        for what in [
            "launches that end before they begin",
            "launches that came before their parent",
            "execs that end before they begin",
        ] {
            assert!(printed.contains(what), "{verb:?}: {printed}");
            assert!(is_json || printed.contains("contradicts itself"), "{verb:?}: {printed}");
        }
    }
}

#[test]
fn a_recording_that_does_not_match_its_checksum_is_refused() {
    let recording = AlteredRecording::new(
        "INSERT INTO checksum SELECT name, 0, 0 FROM sqlite_schema WHERE type = 'table' AND name <> 'checksum'",
    );
    recording.assert_is_refused("do not match their checksum");
    recording.execute("DELETE FROM checksum");
    assert_eq!(read(&["report"], &recording.path()).status.code(), Some(0));
}

#[test]
fn files_beside_a_recording_are_never_created_changed_or_removed() {
    let recording = AlteredRecording::new("");
    let precious = recording.directory.path().join("precious");
    fs::write(&precious, "of another user").unwrap();
    // A rollback of this journal would require writing. Earlier versions of SQLite removed the file
    // that such a journal names.
    let journal = recording.directory.path().join("sample.db-journal");
    let mut hot = vec![0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    hot.extend([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 16, 0]);
    hot.resize(512, 0);
    let name = precious.to_str().unwrap().as_bytes();
    hot.extend(1_073_741_825u32.to_be_bytes().iter().chain(name));
    hot.extend((name.len() as u32).to_be_bytes());
    let sum: u32 = name.iter().map(|byte| u32::from(*byte)).sum();
    hot.extend(sum.to_be_bytes());
    hot.extend([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
    fs::write(&journal, hot).unwrap();
    let before = fs::read(recording.path()).unwrap();
    recording.assert_is_refused("run `sqlite3 COPY");
    assert_eq!(fs::read(&precious).unwrap(), b"of another user");
    assert_eq!(fs::read(recording.path()).unwrap(), before);
    fs::remove_file(&journal).unwrap();
    for suffix in ["-wal", "-shm", "-journal"] {
        symlink(&precious, recording.directory.path().join(format!("sample.db{suffix}"))).unwrap();
    }
    for (verb, output) in recording.read() {
        assert_eq!(fs::read(&precious).unwrap(), b"of another user", "{verb:?}: {output:?}");
    }
    let files = fs::read_dir(recording.directory.path()).unwrap().count();
    assert_eq!(files, 5, "no file is created");
}

#[test]
fn a_pipe_in_place_of_a_recording_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for verb in READERS {
        let output = read(verb, &pipe);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("is not a spawnscope recording"), "{verb:?}: {errors}");
    }
}
