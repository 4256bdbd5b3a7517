//! Recordings that are made to harm their readers: each verb ends soon, within bounded memory, and
//! reports what is wrong. Needs no privilege. The tests of the reader in spawnscope-recording cover
//! every case that it refuses.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::directory::Directory;
use crate::run::{Finished, Running, SPAWNSCOPE};
use crate::stored::{READERS, TWO_LAUNCHES};
use crate::texts::unwrapped;

/// The address space limit of a reader, several times what a small recording needs.
const MAX_KIB: u32 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a directory with a recording of two launches, `sample.db`, that SQL has changed.
fn altered(changes: &str) -> Directory {
    Directory::with(&[("sample.db", &format!("{TWO_LAUNCHES}{changes}"))])
}

/// Returns the output of each verb.
fn read_all(directory: &Directory) -> impl Iterator<Item = (&'static [&'static str], Finished)> {
    let path = directory.path("sample.db");
    READERS.iter().map(move |verb| (*verb, read(verb, &path)))
}

/// Checks that every verb refuses the recording and says why.
#[track_caller]
fn assert_is_refused(directory: &Directory, why: &str) {
    for (verb, finished) in read_all(directory) {
        let errors = finished.errors();
        assert_eq!(finished.code(), 125, "{verb:?}: {errors}");
        assert!(errors.contains(why), "{verb:?}: {errors}");
    }
}

/// Runs a verb with limits on memory and time.
fn read(verb: &[&str], recording: &Path) -> Finished {
    let mut limited = Command::new("sh");
    limited.args(["-c", &format!("ulimit -v {MAX_KIB}; exec \"$0\" \"$@\"")]);
    Running::start(limited.arg(SPAWNSCOPE).args(verb).arg(recording)).finish_within(TIMEOUT)
}

#[test]
fn nothing_in_the_schema_is_run() {
    let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS rowid, 'x' AS what, 'y' AS effect FROM n";
    let view = altered(&format!("DROP TABLE missing; CREATE VIEW missing AS {endless}"));
    assert_is_refused(&view, "its view missing");
    let trigger = altered("CREATE TRIGGER t AFTER INSERT ON lost BEGIN SELECT 1; END");
    assert_is_refused(&trigger, "its trigger t");
}

#[test]
fn every_verb_reports_contradictions() {
    let recording = altered(
        "UPDATE launch SET created_ns = 29000000 WHERE id = 1; UPDATE exec SET load_ns = 29000000 WHERE launch = 2",
    );
    for (verb, output) in read_all(&recording) {
        let printed = unwrapped(&(output.output() + &output.errors()));
        assert_eq!(output.code(), 0, "{verb:?}: {printed}");
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
fn files_beside_a_recording_are_never_created_changed_or_removed() {
    let recording = altered("");
    let precious = recording.path("precious");
    fs::write(&precious, "of another user").unwrap();
    // A rollback of this journal would require writing. Earlier versions of SQLite removed the file
    // that such a journal names.
    let journal = recording.path("sample.db-journal");
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
    let before = fs::read(recording.path("sample.db")).unwrap();
    assert_is_refused(&recording, "run `sqlite3 COPY");
    assert_eq!(fs::read(&precious).unwrap(), b"of another user");
    assert_eq!(fs::read(recording.path("sample.db")).unwrap(), before);
    fs::remove_file(&journal).unwrap();
    for suffix in ["-wal", "-shm", "-journal"] {
        symlink(&precious, recording.path(&format!("sample.db{suffix}"))).unwrap();
    }
    for (verb, output) in read_all(&recording) {
        assert_eq!(fs::read(&precious).unwrap(), b"of another user", "{verb:?}: {}", output.errors());
    }
    let files = fs::read_dir(recording.path("")).unwrap().count();
    assert_eq!(files, 5, "no file is created");
}

#[test]
fn a_pipe_in_place_of_a_recording_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for verb in READERS {
        let errors = read(verb, &pipe).errors();
        assert!(errors.contains("is not a spawnscope recording"), "{verb:?}: {errors}");
    }
}
