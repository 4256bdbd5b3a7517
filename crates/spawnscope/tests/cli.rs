//! The command line without a collector: help, man pages, completions, usage errors, and reading
//! valid and invalid recordings. Needs no privilege. SNAPSHOTS=overwrite updates the expected
//! output.

#[path = "cli/completions.rs"]
mod completions;
#[path = "cli/html.rs"]
mod html;
#[path = "cli/labels.rs"]
mod labels;
#[path = "cli/standard_input.rs"]
mod standard_input;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::golden::assert_golden;
use crate::run::{Finished, SPAWNSCOPE, run};
use crate::stored::{READERS, TWO_LAUNCHES, create_recording, execute};
use crate::texts::assert_contains;

fn spawnscope(arguments: &[&str]) -> Finished {
    run(Command::new(SPAWNSCOPE).args(arguments).env_remove("COLUMNS"))
}

fn stdout(arguments: &[&str]) -> String {
    spawnscope(arguments).expect_code(0).output()
}

/// Returns the message of a failure. Checks that the exit status is spawnscope's own and that
/// standard output is empty.
fn failure(arguments: &[&str]) -> String {
    let finished = spawnscope(arguments).expect_code(125);
    assert_eq!(finished.output(), "", "{arguments:?}");
    finished.errors()
}

/// A recording of two launches in its own directory.
struct SampleRecording {
    directory: tempfile::TempDir,
}

impl SampleRecording {
    fn new() -> SampleRecording {
        let sample = SampleRecording { directory: tempfile::tempdir().unwrap() };
        create_recording(&sample.path(), TWO_LAUNCHES);
        sample
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("sample.db")
    }

    /// Returns the path as a word of a command line.
    fn word(&self) -> String {
        self.path().to_str().unwrap().to_owned()
    }

    fn execute(&self, sql: &str) {
        execute(&self.path(), sql);
    }
}

const VERBS: &str = "record import top report advise whatif diff check accel tree flame export html shell hold bench doctor mcp completions";

/// The man pages, which are made of the same definition, show each change of the texts.
#[test]
fn help_fits_on_a_terminal() {
    for verb in VERBS.split(' ') {
        let help = stdout(&[verb, "--help"]);
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{verb}");
    }
}

#[test]
fn man_pages_are_up_to_date() {
    let directory = tempfile::tempdir().unwrap();
    stdout(&["man", directory.path().to_str().unwrap()]);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man");
    let generated = directory.path();
    assert_eq!(written_pages(&committed), written_pages(generated), "update them with `make man`");
    for name in written_pages(&committed) {
        let [old, new] =
            [committed.as_path(), generated].map(|directory| std::fs::read_to_string(directory.join(&name)).unwrap());
        assert_eq!(old, new, "{name:?}: update it with `make man`");
    }
}

/// Returns the names of the pages but vspawn.3, which is written by hand.
fn written_pages(directory: &Path) -> Vec<std::ffi::OsString> {
    let names = directory.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.filter(|name| name.as_encoded_bytes().ends_with(b".1")).collect();
    names.sort();
    names
}

#[test]
fn examples_of_man_pages_fit_on_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    stdout(&["man", directory.path().to_str().unwrap()]);
    for entry in directory.path().read_dir().unwrap() {
        let page = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for lines in page.split("\n.nf\n").skip(1) {
            let lines = lines.split("\n.fi").next().unwrap();
            for line in lines.lines() {
                let shown = line.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\");
                // man indents a section by 7 of the 80 columns.
                assert!(shown.chars().count() <= 73, "{shown}");
            }
        }
    }
}

#[test]
fn wrong_usage_exits_with_125_and_names_the_mistake() {
    assert!(failure(&[]).contains("Usage:"));
    assert!(failure(&["record"]).contains("nothing to record: give a command"));
    assert!(failure(&["frobnicate"]).contains("frobnicate"));
    assert!(failure(&["record", "--duration", "0", "true"]).contains("more than 0 seconds"));
    assert!(failure(&["record", "-p", "0"]).contains("-p"));
    assert!(failure(&["record", "-p", "1", "true"]).contains("cannot be used with"));
    assert!(failure(&["hold"]).contains("spawnscope hold [OPTIONS] -- <CMD>..."));
    assert!(failure(&["hold", "--nth", "2", "true"]).contains("--match"));
    let unknown = failure(&["bench", "mechanism"]);
    assert_contains(&unknown, ["similar", "parent-size"]);
    assert!(failure(&["bench", "--max", "-1"]).contains("not a number of bytes"));
    assert!(failure(&["export"]).contains("--format"));
    assert!(failure(&["report", "--by", "moon"]).contains("command, args, subcommand, parent, line, caller"));
    assert!(failure(&["flame", "--phase", "moon"]).contains("create, queue"));
    assert!(failure(&["flame", "--folded", "--title", "x"]).contains("cannot be used with"));
    let negative = failure(&["report", "--top", "-1"]);
    assert!(!negative.contains("-- -1"), "{negative}");
    assert_contains(&negative, ["'--top <N>'"]);
}

#[test]
fn a_missing_recording_is_an_error_that_explains_how_to_record() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("none.db");
    for verb in READERS {
        let message = failure(&[verb, &[missing.to_str().unwrap()][..]].concat());
        assert_contains(&message, ["none.db", "spawnscope record"]);
    }
}

#[test]
fn an_export_never_destroys_a_recording() {
    let sample = SampleRecording::new();
    let path = &sample.word();
    for verb in [&["export", "--format", "ndjson"][..], &["flame"]] {
        let message = failure(&[verb, &["-o", path, path]].concat());
        assert!(message.contains("would destroy it"), "{message}");
    }
    stdout(&["report", path]);
}

#[test]
fn a_dash_names_the_standard_output() {
    let sample = SampleRecording::new();
    let path = sample.path();
    for verb in [&["export", "--format", "ndjson"][..], &["flame", "--folded"]] {
        let printed = stdout(&[verb, &[path.to_str().unwrap()]].concat());
        let mut command = Command::new(SPAWNSCOPE);
        command.args(verb).args(["-o", "-"]).arg(&path).current_dir(sample.directory.path());
        assert_eq!(run(&mut command).output(), printed, "{verb:?}");
        assert!(!sample.directory.path().join("-").exists(), "{verb:?}");
    }
}

#[test]
fn without_a_terminal_columns_sets_the_width() {
    let sample = &SampleRecording::new();
    let usual = widest_line(sample, "");
    assert!((61..=80).contains(&usual), "{usual}");
    assert!(widest_line(sample, "60") <= 60);
    assert!(widest_line(sample, "20") <= 40, "40 columns is the minimum");
    assert!((81..=120).contains(&widest_line(sample, "120")));
    for wrong in ["0", "wide", "-5", "1001"] {
        assert_eq!(widest_line(sample, wrong), usual, "{wrong}");
    }
}

fn widest_line(sample: &SampleRecording, columns: &str) -> usize {
    let mut command = Command::new(SPAWNSCOPE);
    let text = run(command.args(["report", "--full", &sample.word()]).env("COLUMNS", columns)).output();
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn folded_stacks_match_the_golden_files() {
    let sample = SampleRecording::new();
    let path = &sample.word();
    let folded = stdout(&["flame", "--folded", path]);
    assert_golden(&folded, "two_launches/flame.folded");
    let critical = stdout(&["flame", "--folded", "--weight", "critical", "--by", "caller", path]);
    assert_golden(&critical, "two_launches/flame_critical.folded");
}

/// SQL that adds samples: `true` runs in its loader and then in `main`, while the shell waits for
/// `true`.
const SAMPLES: &str = "INSERT INTO text VALUES (9, CAST('main' AS BLOB)), (10, CAST('do_wait' AS BLOB)), (11, CAST('path_openat' AS BLOB));
    INSERT INTO frame VALUES (3, 0, 9, NULL, NULL, 4, 64, 0),
    (4, 1, 10, NULL, NULL, NULL, 4096, 0), (5, 1, 11, NULL, NULL, NULL, 8192, 0);
    INSERT INTO stack VALUES (3, 3, NULL, 0), (4, 4, 3, 0), (5, 5, NULL, 1);
    INSERT INTO sample VALUES (2, 8000000, 1000000, 0, 5), (2, 9000000, 1000000, 0, 3), (1, 5200000, 10000000, 1, 4);";

#[test]
fn samples_are_drawn_by_phase_and_waits_by_their_duration() {
    let sample = SampleRecording::new();
    let path = &sample.word();
    for flag in ["--on-cpu", "--off-cpu"] {
        let message = failure(&["flame", flag, path]);
        assert!(message.contains("record --sample HZ"), "{message}");
    }
    let phases_only = stdout(&["flame", "--folded", "--phase", "load", path]);
    sample.execute(SAMPLES);
    let all = "true;load;(callers unknown);path_openat_[k] 1000\ntrue;run;main 1000\n";
    for (flags, expected) in [
        (&["--phase", "load"][..], "sh;true;load;(callers unknown);path_openat_[k] 1000\n"),
        (&["--phase", "load", "--weight", "wall"], &phases_only),
        (&["--on-cpu", "--by", "command"], all),
        (&["--off-cpu"], "sh;run;main;do_wait_[k] 10000\n"),
    ] {
        assert_eq!(stdout(&[&["flame", "--folded"], flags, &[path]].concat()), expected, "{flags:?}");
    }
    let message = failure(&["flame", "--phase", "exec", path]);
    assert!(message.contains("a thread on a CPU in `exec`"), "{message}");
}

#[cfg(feature = "flame")]
#[test]
fn a_flame_graph_is_written_to_its_file_or_to_an_output_that_is_not_a_terminal() {
    let sample = SampleRecording::new();
    let path = &sample.word();
    let svg = sample.directory.path().join("out.svg");
    let flame = ["flame", "--title", "mine", path];
    assert_eq!(stdout(&[&flame[..], &["-o", svg.to_str().unwrap()]].concat()), "");
    let drawn = std::fs::read_to_string(&svg).unwrap();
    // Without -o, a flame graph is printed, unless the output is a terminal.
    assert_eq!(stdout(&flame), drawn);
    assert_contains(&drawn, [">mine</text>", "<title>true ("]);
}

#[test]
fn a_selected_line_without_launches_is_refused() {
    let sample = SampleRecording::new();
    sample.execute("UPDATE launch SET script_stack = NULL");
    let message = failure(&["whatif", "--remove", "line=a.sh:3", &sample.word()]);
    assert!(message.contains("this recording contains no call sites"), "{message}");
    let sample = SampleRecording::new();
    let path = sample.word();
    let message = failure(&["whatif", "--remove", "line=a.sh:3", &path]);
    let hint = format!("`spawnscope report --by line --top 0 {path}` lists");
    assert!(message.contains(&hint), "{message}");
}

/// The suggested commands name the recording that was read.
#[test]
fn a_program_that_was_not_launched_is_refused_with_commands_for_the_recording() {
    let sample = SampleRecording::new();
    let path = sample.word();
    let message = failure(&["whatif", "--remove", "nosuch", &path]);
    let expected = format!(
        "no launch matches `--remove nosuch`: `spawnscope report --by command --top 0 {path}` lists the programs, \
         and `spawnscope tree {path}` shows their arguments"
    );
    assert!(message.contains(&expected), "{message}");
}

#[test]
fn a_closed_output_pipe_is_not_a_failure() {
    let sample = SampleRecording::new();
    let mut command = Command::new("sh");
    command.args(["-c", "(\"$0\" tree \"$1\"; echo $? >\"$2\") | exec true"]);
    let status = sample.directory.path().join("status");
    command.arg(SPAWNSCOPE);
    command.arg(sample.path()).arg(&status).output().unwrap();
    assert_eq!(std::fs::read_to_string(status).unwrap(), "0\n");
}

#[test]
fn colours_are_for_terminals_only() {
    let sample = SampleRecording::new();
    let report = stdout(&["report", &sample.word()]);
    assert!(!report.contains('\u{1b}'));
    let coloured = Command::new(SPAWNSCOPE)
        .args(["report", &sample.word()])
        .envs([("CLICOLOR_FORCE", "1")])
        .env_remove("NO_COLOR")
        .output()
        .unwrap();
    assert!(coloured.stdout.contains(&0x1b));
    assert_golden(&report.replace(&sample.word(), "FILE"), "two_launches/report.txt");
}
