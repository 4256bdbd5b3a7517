//! `import`: real logs become recordings. The logs of strace in tests/logs are from strace 5.10 to
//! 7.2 (Debian 11 to sid), each with other options; of the others, only the lines about the
//! processes of a script for bash were kept:
//!
//! | log | program | made by |
//! |---|---|---|
//! | unpack.log | a script for sh | strace 6.1 `-f -ttt -T -o` |
//! | make.log | make -s, without standard output | strace 5.10 `-f -tt -e trace=process`, on standard error |
//! | python.log | a script with threads, through env | strace 7.2 `-f -r -y -o`, with some calls |
//! | configure.log | a script for bash | strace 6.1 `-f -t -s 8 -e trace=process -o` |
//! | git.1 ... | git commit, with a hook | strace 6.13 `-ff -ttt -T -o`, with some calls |
//! | perf.log | bash | perf 6.1 `record -a`, on Linux 6.18, and `script --show-task-events` |
//! | trace-cmd.log | bash | trace-cmd 3.1 `extract` and `report`, on Linux 6.18 |
//! | ftrace.log | bash | the file `trace` of Linux 6.18 |
//! | eslogger.log | an editor that launches git | written by hand in the documented shapes of eslogger; never seen on a Mac |
//! | scanned.json, scans.log | cargo-nextest, which launches six new files twice | also written by hand; the scans as several public logs show them |

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::golden::assert_golden;
use crate::run::{Finished, SPAWNSCOPE, run};
use crate::texts::{assert_contains, unwrapped};

fn logs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/logs")
}

fn spawnscope(directory: &Path, arguments: &[&str]) -> Finished {
    run(Command::new(SPAWNSCOPE).args(arguments).current_dir(directory).env_remove("COLUMNS"))
}

fn succeed(directory: &Path, arguments: &[&str]) -> Finished {
    spawnscope(directory, arguments).expect_code(0)
}

/// Imports files of a log, and returns the directory with the recording and the message.
fn import(files: &[PathBuf]) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let files = files.iter().map(|file| file.to_str().unwrap());
    let message = succeed(directory.path(), &[&["import"][..], &files.collect::<Vec<_>>()].concat()).errors();
    (directory, message)
}

#[test]
fn scans_of_new_files_on_macos_are_waits_of_their_first_launches() {
    let directory = tempfile::tempdir().unwrap();
    let [log, scans] = ["scanned.json", "scans.log"].map(|name| logs().join(name).to_str().unwrap().to_owned());
    let message = succeed(directory.path(), &["import", &log, "--scans", &scans]).errors();
    assert_contains(&message, ["6 of 6 scans belong to a launch"]);
    let report = succeed(directory.path(), &["report", "--full"]).output();
    assert_contains(
        &report,
        [
            "parser-0000000000000000 waited 152 ms in execve for the scanner syspolicyd",
            "cli-0000000000000005 waited 1.05 s in execve for the scanner syspolicyd",
        ],
    );
    let advice = succeed(directory.path(), &["advise"]).output();
    assert_contains(&advice, ["execs and opens wait for a permission scanner: syspolicyd", "enable-terminal", "price"]);
    // Without the log of the scanner, first launches are compared with later ones.
    let (directory, _) = import(&[logs().join("scanned.json")]);
    let advice = succeed(directory.path(), &["advise", "--all"]).output();
    assert_contains(&advice, ["the first launch of each file is slow, as if macOS checks the file"]);
}

#[test]
fn launches_get_names_from_the_log_of_a_build_tool() {
    let (directory, _) = import(&[logs().join("unpack.log")]);
    let exported = succeed(directory.path(), &["export", "--format", "ndjson", "-o", "-"]).output();
    let launches = exported.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut log = "# ninja log v7\n".to_owned();
    for (number, launch) in launches.filter(|launch| launch["parent"] == 1).enumerate() {
        let [start, end] = ["start_ns", "end_ns"].map(|key| launch[key].as_u64().unwrap() / 1_000_000);
        log += &format!("{}\t{}\t0\tstep-{number}.o\t{number:x}\n", 500 + start, 501 + end);
    }
    fs::write(directory.path().join(".ninja_log"), log).unwrap();
    let report = succeed(directory.path(), &["report", "--labels", ".ninja_log"]);
    assert_contains(&report.output(), ["Launches by target", "step-0.o", "step-1.o"]);
    assert_contains(&report.errors(), ["launches named after", "steps of builds"]);
    let other = spawnscope(directory.path(), &["report", "--labels", "spawnscope.db"]);
    assert_contains(&other.errors(), ["looks like none of the logs of build tools that are read"]);
}

/// Imports a log of one file with this text.
fn import_text(log: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.log");
    fs::write(&file, log).unwrap();
    let (recording, message) = import(&[file]);
    drop(directory);
    (recording, message)
}

#[test]
fn real_logs_become_trees_and_reports() {
    let files_of_git = ["git.22137", "git.22143", "git.22150"].map(|name| logs().join(name)).to_vec();
    let one = |name: &str| vec![logs().join(name)];
    for (name, files) in [
        ("unpack", one("unpack.log")),
        ("make", one("make.log")),
        ("python", one("python.log")),
        ("configure", one("configure.log")),
        ("git", files_of_git),
        ("perf", one("perf.log")),
        ("trace-cmd", one("trace-cmd.log")),
        ("ftrace", one("ftrace.log")),
        ("eslogger", one("eslogger.log")),
    ] {
        let (directory, message) = import(&files);
        let tree = succeed(directory.path(), &["tree", "--unfold"]);
        let report = succeed(directory.path(), &["report"]);
        let found = [tree.output(), report.output(), message].join("\n");
        assert_golden(&found, &format!("import/{name}.txt"));
    }
}

#[test]
fn all_readers_read_an_imported_recording() {
    let (directory, _) = import(&[logs().join("unpack.log")]);
    let full = unwrapped(&succeed(directory.path(), &["report", "--full"]).output());
    assert_contains(&full, ["strace does not record what ends a wait: the path is reconstructed"]);
    for verb in [
        &["report", "--full"][..],
        &["report", "--json"],
        &["advise", "--all"],
        &["whatif", "--remove", "dirname"],
        &["html", "-o", "-"],
        &["export", "--format", "ndjson"],
        &["export", "--format", "perfetto"],
        &["flame", "--folded"],
        &["check", "--max-launches", "100"],
        &["diff", "spawnscope.db", "spawnscope.db"],
    ] {
        let output = succeed(directory.path(), verb);
        let errors = output.errors();
        assert!(!errors.contains("contradict"), "{verb:?}: {errors}");
        assert!(!output.stdout.is_empty(), "{verb:?}");
    }
}

#[test]
fn a_log_is_also_read_from_standard_input_and_from_packed_files() {
    let plain = fs::read(logs().join("unpack.log")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&plain).unwrap();
    let tree = |recording: &Path| succeed(recording, &["tree"]).output();
    let expected = tree(import(&[logs().join("unpack.log")]).0.path());
    let twice = fs::read(logs().join("unpack.log.xz")).unwrap();
    for input in [plain, packed.finish().unwrap(), twice] {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(SPAWNSCOPE);
        command.args(["import", "-"]).current_dir(directory.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        assert!(child.wait_with_output().unwrap().status.success());
        assert_eq!(tree(directory.path()), expected);
    }
}

#[test]
fn other_files_are_refused_and_leave_the_old_recording() {
    let (directory, _) = import(&[logs().join("make.log")]);
    let before = fs::read(directory.path().join("spawnscope.db")).unwrap();
    let file = directory.path().join("other");
    for (content, expected) in [
        ("", "no line that strace wrote; it has no text"),
        ("\nhello\n", "no line that strace wrote; its first line is: hello."),
        ("% time     seconds  usecs/call\n", "a summary of `strace -c`"),
        ("strace: Process 7 attached\n% time     seconds  usecs/call\n", "a summary of `strace -c`"),
        ("__libc_start_main([ \"ls\" ] <unfinished ...>\n", "a log of ltrace"),
        ("[pid 7] ls->malloc(552) = 0x55\n", "a log of ltrace"),
        ("\tPID/THRD  SYSCALL(args) \t\t = return\n", "a log of dtruss"),
        ("  1234 sh       CALL  execve(0x1,0x2,0x3)\n", "a dump of ktrace"),
        ("Attaching 2 probes...\n", "the output of a bpftrace program"),
        ("{ \"a\": 1, \"traceEvents\": []}", "a Chrome trace"),
        ("[\n{\"name\": \"x\", \"ph\": \"X\"}]", "a Chrome trace"),
        ("<!doctype html>\n", "a web page"),
        ("# ninja log v5\n", "ninja's log"),
        ("PERFILE2", "data of perf"),
        ("{\"a\": 1}\n", "JSON, but not messages of eslogger"),
        ("{\"audit_token\": 1}\n", "no line that eslogger wrote"),
        ("a-5 [000] 1.5: sched_switch: a\n", "no line that perf wrote"),
        ("\u{1}\u{2}\u{3}", "no line that strace wrote"),
    ] {
        fs::write(&file, content).unwrap();
        let output = spawnscope(directory.path(), &["import", "other"]);
        assert_eq!(output.code(), 125, "{content}");
        assert_contains(&output.errors(), [expected]);
        assert_eq!(fs::read(directory.path().join("spawnscope.db")).unwrap(), before, "{content}");
    }
    fs::write(&file, b"\xff\xfe1\0 \0").unwrap();
    assert_contains(&spawnscope(directory.path(), &["import", "other"]).errors(), ["text in UTF-16: `iconv"]);
    let make = logs().join("make.log");
    let scans = logs().join("scans.log");
    let both = spawnscope(directory.path(), &["import", make.to_str().unwrap(), "--scans", scans.to_str().unwrap()]);
    assert_contains(&both.errors(), ["not a log of eslogger, and only such a log can have a log of scans"]);
    let own = spawnscope(directory.path(), &["import", "spawnscope.db"]);
    assert_contains(&own.errors(), ["names the log itself"]);
    let recording = spawnscope(directory.path(), &["import", "-o", "x.db", "spawnscope.db"]);
    assert_contains(&recording.errors(), ["looks like a recording: `spawnscope report FILE` reads it"]);
    let missing = spawnscope(directory.path(), &["import", "nowhere"]);
    assert_contains(&missing.errors(), ["failed to read nowhere"]);
    let several = spawnscope(directory.path(), &["import", "other", "-"]);
    assert_contains(&several.errors(), ["standard input cannot be one of several files"]);
}

#[test]
fn refused_lines_are_counted_and_the_first_one_is_shown() {
    let log = "1 10:00:00.000000 execve(\"/bin/sh\", [\"sh\", \"\u{1b}[31m\"], NULL) = 0 <0.000300>\n\
               1 10:00:00.100000 \u{1b}[31mbroken(\n\
               1 10:00:00.200000 wait4(-1, NULL, 0,\n\
               1 10:00:00.300000 exit_group(0) = ?\n\
               1 10:00:00.400000 +++ exited with 0 +++\n";
    let (directory, message) = import_text(log);
    assert_contains(
        &message,
        ["2 lines are not imported: torn, or not of this format; the first is", "x.log:2: 1 10:00:00"],
    );
    assert!(!message.contains('\u{1b}'), "{message:?}");
    let report = succeed(directory.path(), &["report"]).output();
    assert_contains(&report, ["lost: 2 events (unreadable line: 2)"]);
}

#[test]
fn secrets_in_arguments_are_masked_unless_an_option_keeps_them() {
    let log = "1 execve(\"/bin/x\", [\"x\", \"--password=hunter2\"], [\"TOKEN=hunter3\"]) = 0\n\
               1 +++ exited with 0 +++\n";
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("log"), log).unwrap();
    for (options, kept) in [(&[][..], [false, false]), (&["--no-redact"], [true, false])] {
        succeed(directory.path(), &[&["import", "log"], options].concat());
        let bytes = fs::read(directory.path().join("spawnscope.db")).unwrap();
        let found = ["hunter2", "hunter3"].map(|secret| bytes.windows(7).any(|part| part == secret.as_bytes()));
        assert_eq!(found, kept, "{options:?}: the environment is never stored");
    }
}
