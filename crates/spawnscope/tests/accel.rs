//! Runs `spawnscope accel` as a user does: with the preload library in the directory of the
//! program.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::preload::build_library;
use crate::run::{Finished, SPAWNSCOPE, copy_program, run};

fn accel(arguments: &[&str]) -> Finished {
    build_library();
    let mut command = Command::new(SPAWNSCOPE);
    command.arg("accel").args(arguments).env_remove("LD_PRELOAD").env_remove("GLIBC_TUNABLES");
    // Cargo sets this variable, and while it is set, nothing is done in place.
    run(command.env_remove("LD_LIBRARY_PATH"))
}

/// A Perl script that runs three shell texts: a simple command (which prints its own name), a list
/// of two commands, and a subshell.
const PERL_COMMAND: [&str; 3] =
    ["perl", "-e", "print `cat '/proc/self/comm'`; print `echo a; echo b`; system(\"(exit 7)\"); exit($? >> 8)"];

#[test]
fn the_output_and_the_status_of_the_command_are_unchanged() {
    let finished = accel(&[&["--"], &PERL_COMMAND[..]].concat()).expect_code(7);
    assert_eq!([finished.output(), finished.errors()], ["cat\na\nb\n", ""]);
}

#[test]
fn explain_counts_skipped_and_kept_shells() {
    let finished = accel(&[&["--explain", "--"], &PERL_COMMAND[..]].concat()).expect_code(7);
    finished.expect_errors(["1 skipped", "kept: more than one simple command"]);
    accel(&["--explain", "--no-preload", "--", "true"]).expect_errors(["none of the programs"]);
}

/// The work of small programs in scripts is done without executing them, unless an option turns
/// this off.
#[test]
fn the_work_of_small_programs_is_done_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let script = format!("echo \"$(dirname a/b)\"; touch {0}; mv {0} {0}.new; rm -f {0}.new", file.display());
    for shell in ["bash", "dash"] {
        for (options, count) in [(&[][..], "\n       4\n"), (&["--no-in-place"], ""), (&["--strict"], "")] {
            let finished = accel(&[&["--explain"], options, &["--", shell, "-c", &script]].concat());
            assert_eq!(finished.output(), "a\n");
            let errors = finished.errors();
            assert_eq!(errors.contains("without executing them"), !count.is_empty(), "{errors}");
            assert!(errors.contains(count), "{errors}");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}

#[test]
fn a_missing_command_exits_with_127_and_one_that_cannot_be_executed_with_126() {
    let directory = tempfile::tempdir().unwrap();
    let text = directory.path().join("text");
    fs::write(&text, "not executable").unwrap();
    for explain in [&[][..], &["--explain"]] {
        accel(&[explain, &["--", "/nonexistent/program"]].concat()).expect_code(127);
        accel(&[explain, &["--", text.to_str().unwrap()]].concat()).expect_code(126);
        accel(&[explain, &["--", "sh", "-c", "exit 3"]].concat()).expect_code(3);
    }
    accel(&[]).expect_code(125);
}

#[test]
fn a_missing_preload_library_is_an_error_unless_preloading_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("spawnscope");
    copy_program(SPAWNSCOPE.as_ref(), &program);
    let finished = run(Command::new(&program).args(["accel", "--", "true"])).expect_code(125);
    finished.expect_errors(["failed to find libvspawn_preload.so"]);
    run(Command::new(&program).args(["accel", "--no-preload", "--", "true"])).expect_code(0);
}

/// Runs `env` with this LD_PRELOAD under accel. Returns the variables that it prints.
fn variables_with(preload: &str) -> String {
    build_library();
    run(Command::new(SPAWNSCOPE).args(["accel", "--strict", "--", "env"]).env("LD_PRELOAD", preload)).output()
}

#[test]
fn other_preloaded_libraries_are_kept() {
    let variables = variables_with("/nonexistent/other.so");
    assert!(variables.contains("libvspawn_preload.so:/nonexistent/other.so\n"), "{variables}");
    assert!(variables.contains("SPAWNSCOPE_ACCEL_STRICT=1\n"), "{variables}");
    let variables = variables_with("/nonexistent/libasan.so.8 /nonexistent/other.so");
    assert!(variables.contains("LD_PRELOAD=/nonexistent/libasan.so.8:/"), "{variables}");
    assert!(variables.contains("/libvspawn_preload.so:/nonexistent/other.so\n"), "{variables}");
}

/// Compiles a C program, and returns whether that was possible.
fn compile(source: &str, program: &Path, options: &[&str]) -> bool {
    let file = program.with_extension("c");
    fs::write(&file, source).unwrap();
    Command::new("gcc").args(options).arg(file).arg("-o").arg(program).status().unwrap().success()
}

/// The live tests compare what else a command inherits.
#[test]
fn closed_streams_stay_closed() {
    build_library();
    let script = "exec \"$0\" accel -- ls /proc/self/fd <&- 2>&-";
    let open = run(Command::new("sh").args(["-c", script, SPAWNSCOPE])).output();
    // `ls` opens the directory itself at the first free number, which is 0.
    assert!(open.starts_with("0\n") && open.lines().all(|fd| fd != "2"), "{open}");
}

#[test]
fn a_warning_says_why_a_program_cannot_be_preloaded() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("p");
    assert!(compile("int main(void) { return 0; }", &program, &["-static"]));
    assert!(warnings(&program).contains("statically linked"));
    let copy = directory.path().join("copy");
    fs::copy(fs::canonicalize("/bin/true").unwrap(), &copy).unwrap();
    assert_eq!(warnings(&copy), "");
    fs::set_permissions(&copy, std::os::unix::fs::PermissionsExt::from_mode(0o4755)).unwrap();
    assert!(warnings(&copy).contains("set-user-id"));
    if compile("int main(void) { return 0; }", &program, &["-fsanitize=address"]) {
        assert!(warnings(&program).contains("is built with a sanitizer"));
    } else {
        assert!(std::env::var_os("CI").is_none(), "gcc has no AddressSanitizer");
    }
}

fn warnings(program: &Path) -> String {
    accel(&["--", program.to_str().unwrap()]).errors()
}

/// The soft limit is lowered, never raised. A program may raise it again.
#[test]
fn the_limit_on_open_files_is_lowered_on_request() {
    build_library();
    assert_eq!(soft_limit(&["--open-files", "100"]), "100\n");
    assert_eq!(soft_limit(&["--open-files", "5000"]), "900\n");
    assert_eq!(soft_limit(&["--explain", "--open-files", "100"]), "100\n");
    assert_eq!(soft_limit(&["--no-preload"]), "900\n");
    let refused = accel(&["--open-files", "3", "--", "true"]);
    refused.expect_code(125).expect_errors(["--open-files"]);
}

fn soft_limit(options: &[&str]) -> String {
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -Sn 900; exec \"$@\"", "sh", SPAWNSCOPE, "accel"]).args(options);
    run(limited.args(["--", "sh", "-c", "ulimit -Sn; ulimit -Sn 900"])).expect_code(0).output()
}
