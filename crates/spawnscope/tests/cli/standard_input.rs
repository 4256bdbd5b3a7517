//! Reading recordings from standard input, which is named `-`.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{SampleRecording, stdout};
use crate::run::{Finished, Running, SPAWNSCOPE};
use crate::texts::{assert_contains, unwrapped};

const VERBS: [&[&str]; 9] = [
    &["report"],
    &["report", "--json"],
    &["advise", "--all"],
    &["whatif", "--cpus", "4"],
    &["tree"],
    &["flame", "--folded", "--weight", "critical"],
    &["flame", "--folded", "--on-cpu"],
    &["export", "--format", "ndjson"],
    &["export", "--format", "perfetto"],
];

fn with_input(arguments: &[&str], input: impl Into<Stdio>) -> Finished {
    Running::start(Command::new(SPAWNSCOPE).args(arguments).env_remove("COLUMNS").stdin(input)).finish()
}

fn message(finished: Finished) -> String {
    assert_eq!(finished.output(), "");
    finished.expect_code(125).errors()
}

#[test]
fn every_reader_reads_a_pipe_as_it_reads_a_file() {
    let sample = SampleRecording::new();
    sample.execute(super::SAMPLES);
    let path = sample.word();
    for verb in VERBS {
        let mut cat = Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let piped = with_input(&[verb, &["-"]].concat(), cat.stdout.take().unwrap());
        cat.wait().unwrap();
        let named = with_input(&[verb, &[path.as_str()]].concat(), Stdio::null()).output();
        // The length of the name changes where lines end.
        let named = unwrapped(&named.replace(&format!(" {path}"), " -"));
        assert_eq!(unwrapped(&piped.expect_code(0).output()), named, "{verb:?}");
    }
}

#[test]
fn printed_commands_also_read_standard_input() {
    let sample = SampleRecording::new();
    let report = with_input(&["report", "-"], File::open(sample.path()).unwrap()).output();
    assert!(report.contains("spawnscope report --full -   spawnscope html"), "{report}");
    assert!(!report.contains("stdin"), "{report}");
}

#[test]
fn a_recording_without_its_write_ahead_log_is_read() {
    let sample = SampleRecording::new();
    let whole = stdout(&["tree", &sample.word()]);
    // The header of a recording whose recorder was killed refers to a write-ahead log, which does
    // not come through a pipe.
    sample.execute("PRAGMA journal_mode = WAL");
    let output = with_input(&["tree", "-"], File::open(sample.path()).unwrap());
    assert_eq!(output.output(), whole);
}

#[test]
fn input_that_is_not_a_recording_is_refused_early() {
    let sample = SampleRecording::new();
    let refused = "standard input is not a spawnscope recording";
    assert!(message(with_input(&["report", "-"], Stdio::null())).contains(refused));
    // `yes` never ends.
    let mut yes = Command::new("yes").stdout(Stdio::piped()).spawn().unwrap();
    let output = with_input(&["report", "-"], yes.stdout.take().unwrap());
    yes.kill().unwrap();
    yes.wait().unwrap();
    assert!(message(output).contains(refused));
    let cut = sample.directory.path().join("cut.db");
    let whole = std::fs::read(sample.path()).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let cut = message(with_input(&["report", "-"], File::open(cut).unwrap()));
    assert!(cut.contains("recording /dev/stdin is damaged"), "{cut}");
}

/// Reads a recording from standard input, with this directory for temporary files.
fn read_tree(sample: &SampleRecording, temporary: &Path) -> Finished {
    let mut command = Command::new(SPAWNSCOPE);
    command.args(["tree", "-"]).env("TMPDIR", temporary).stdin(File::open(sample.path()).unwrap());
    Running::start(&mut command).finish()
}

#[test]
fn the_error_names_a_temporary_directory_that_cannot_be_written() {
    let sample = SampleRecording::new();
    assert_contains(&message(read_tree(&sample, Path::new("/nonexistent"))), ["/nonexistent", "TMPDIR"]);
}

#[test]
fn nothing_stays_in_the_temporary_directory() {
    let sample = SampleRecording::new();
    let directory = tempfile::tempdir().unwrap();
    read_tree(&sample, directory.path()).expect_code(0);
    assert_eq!(directory.path().read_dir().unwrap().count(), 0);
}

#[test]
fn one_of_several_recordings_comes_from_standard_input() {
    let sample = SampleRecording::new();
    let path = sample.word();
    let path = path.as_str();
    let cases: [[&[&str]; 2]; 3] = [
        [&["diff", "-", path], &["diff", path, path]],
        [&["check", "--max-launches", "1", "-"], &["check", "--max-launches", "1", path]],
        [&["check", "--against", "-", path], &["check", "--against", path, path]],
    ];
    for [piped, named] in cases {
        let named = with_input(named, Stdio::null());
        assert_ne!(named.code(), 125, "{piped:?}");
        let output = with_input(piped, File::open(path).unwrap());
        assert_eq!((output.code(), output.output()), (named.code(), named.output()), "{piped:?}");
    }
    let twice = message(with_input(&["diff", "-", "-"], File::open(path).unwrap()));
    assert!(twice.contains("`-` was given more than once"), "{twice}");
}
