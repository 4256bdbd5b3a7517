//! Checks standard error: it contains no control characters and no secrets, whatever it quotes
//! (file names, arguments, a database or a report from elsewhere). If standard output cannot be
//! written, an error is reported; spawnscope never panics.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{SPAWNSCOPE, spawnscope};
use crate::stored::{READERS, TWO_LAUNCHES, create_recording, execute};

/// Clears the screen, sets the title, reorders text, and imitates one of our lines.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}\r\nspawnscope: all is well";
/// Runs a command that must fail. Its message must be plain text and contain only our own lines.
#[track_caller]
fn message(arguments: &[&OsStr]) -> String {
    let finished = spawnscope(arguments);
    assert!(matches!(finished.code(), 125..=127), "{arguments:?}: {}", finished.status);
    let message = String::from_utf8(finished.stderr).unwrap();
    let raw = message.chars().find(|character| {
        let reorders = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        character.is_control() && *character != '\n' || reorders
    });
    assert_eq!(raw, None, "{arguments:?}: {message:?}");
    assert_eq!(message.lines().find(|line| line.starts_with("spawnscope: all")), None, "{arguments:?}: {message:?}");
    message
}

fn words<'a>(verb: &'a [&'a str], last: &'a OsStr) -> Vec<&'a OsStr> {
    let mut words: Vec<&OsStr> = verb.iter().map(OsStr::new).collect();
    words.push(last);
    words
}

fn recording(directory: &Path) -> PathBuf {
    let path = directory.join("sample.db");
    create_recording(&path, TWO_LAUNCHES);
    path
}

#[test]
fn collectors_that_cannot_record_node_lines_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.db");
    let mut arguments = words(&["record", "--node-lines", "--collector", "ptrace", "-o"], file.as_os_str());
    arguments.extend(["--", "true"].map(OsStr::new));
    assert!(message(&arguments).contains("--node-lines needs eBPF"));
    assert!(!file.exists());
}

#[test]
fn names_of_files_are_escaped() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join(EVIL);
    for verb in READERS {
        message(&words(verb, missing.as_os_str()));
    }
    fs::write(&missing, "no recording, no report").unwrap();
    for verb in READERS {
        assert!(message(&words(verb, missing.as_os_str())).contains("owned"), "{verb:?}");
    }
    let sample = recording(directory.path());
    let nowhere = missing.join("out");
    let arguments = ["flame", "-o"].map(OsStr::new);
    message(&[arguments[0], arguments[1], nowhere.as_os_str(), sample.as_os_str()]);
    let invalid = OsString::from(OsStr::from_bytes(b"/\xff\x9b31m\x1b[m"));
    message(&words(&["report"], &invalid));
}

#[test]
fn arguments_and_commands_are_escaped() {
    for verb in [
        &[][..],
        &["report", "--by"],
        &["record", "--duration"],
        &["record", "-p"],
        &["flame", "--phase"],
        &["export", "--format"],
        &["bench"],
        &["doctor", "--except"],
        &["completions"],
        &["whatif", "--remove"],
        &["hold", "--"],
        &["accel", "--no-preload", "--"],
    ] {
        message(&words(verb, OsStr::new(EVIL)));
    }
    let assigned = format!("--by={EVIL}");
    let printed = message(&words(&["report"], OsStr::new(&assigned)));
    assert!(printed.contains("\\x1b[2J"), "{printed}");
}

#[test]
fn escapes_in_a_foreign_database_do_not_reach_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let literal = EVIL.replace('\'', "''");
    for hostile in [
        format!("UPDATE launch SET pid = '{literal}'"),
        format!("UPDATE launch SET origin = '{literal}'"),
        format!("UPDATE exec SET path_text = '{literal}'"),
        format!("UPDATE recording SET scope = '{literal}'"),
        format!("UPDATE recording SET cpus = '{literal}'"),
        format!("DROP TABLE exec; CREATE VIEW exec AS SELECT \"{EVIL}\" AS launch FROM launch"),
        format!("DROP TABLE exec; CREATE VIEW exec AS SELECT * FROM \"{EVIL}\""),
        format!("DROP TABLE missing; CREATE TABLE missing (\"{EVIL}\")"),
    ] {
        let path = recording(directory.path());
        execute(&path, &hostile);
        message(&words(&["report"], path.as_os_str()));
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn messages_contain_no_secrets() {
    for argument in ["https://me:hunter2@host/x.db", "mysql -uroot -phunter2"] {
        let printed = message(&words(&["report"], OsStr::new(argument)));
        assert!(!printed.contains("hunter2") && printed.contains("***"), "{printed}");
        let printed = message(&words(&["hold", "--"], OsStr::new(argument)));
        assert!(!printed.contains("hunter2"), "{printed}");
    }
    let token = OsStr::new("--token=ghp_0123456789abcdefABCDEF");
    let printed = message(&words(&["frobnicate"], token));
    assert!(!printed.contains("ghp_"), "{printed}");
}

#[test]
fn a_full_disk_is_reported_without_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let sample = recording(directory.path());
    let shells = ["bash", "zsh", "fish", "elvish", "powershell"];
    let completions = shells.map(|shell| ["completions", shell].map(OsString::from).to_vec());
    let helps = ["--help", "--version", "record --help", "bench --list"];
    let helps = helps.map(|line| line.split(' ').map(OsString::from).collect());
    // An empty patch writes nothing, and the page is written elsewhere.
    let readers = READERS.iter().filter(|verb| !verb.contains(&"--patch") && verb[0] != "html");
    let readers = readers.map(|verb| words(verb, sample.as_os_str()).into_iter().map(OsStr::to_owned).collect());
    for arguments in readers.chain(completions).chain(helps) {
        let output = Command::new(SPAWNSCOPE)
            .args(&arguments)
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(125), "{arguments:?}: {printed}");
        let is_named = printed.starts_with("spawnscope: failed to write");
        assert!(is_named && printed.contains("No space left"), "{arguments:?}: {printed}");
    }
}
