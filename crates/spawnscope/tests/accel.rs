//! Runs `spawnscope accel` as a user does: with the preload library in the directory of the
//! program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::preload::build_library;

fn accel(arguments: &[&str]) -> Output {
    build_library();
    Command::new(env!("CARGO_BIN_EXE_spawnscope"))
        .arg("accel")
        .args(arguments)
        .env_remove("LD_PRELOAD")
        .env_remove("GLIBC_TUNABLES")
        // Cargo sets this variable, and while it is set, nothing is done in place.
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A Perl script that runs three shell texts: a simple command (which prints its own name), a list
/// of two commands, and a subshell.
const PERL_COMMAND: [&str; 3] =
    ["perl", "-e", "print `cat '/proc/self/comm'`; print `echo a; echo b`; system(\"(exit 7)\"); exit($? >> 8)"];

#[test]
fn the_output_and_the_status_of_the_command_are_unchanged() {
    let output = accel(&[&["--"], &PERL_COMMAND[..]].concat());
    assert_eq!(String::from_utf8_lossy(&output.stdout), "cat\na\nb\n", "{output:?}");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(errors(&output), "");
}

#[test]
fn explain_counts_skipped_and_kept_shells() {
    let output = accel(&[&["--explain", "--"], &PERL_COMMAND[..]].concat());
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(7), "{errors}");
    assert!(errors.contains("1 skipped"), "{errors}");
    assert!(errors.contains("kept: more than one simple command"), "{errors}");
    let none = accel(&["--explain", "--no-preload", "--", "true"]);
    assert!(self::errors(&none).contains("none of the programs"), "{none:?}");
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
            let output = accel(&[&["--explain"], options, &["--", shell, "-c", &script]].concat());
            assert_eq!(String::from_utf8_lossy(&output.stdout), "a\n");
            let errors = errors(&output);
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
        let missing = accel(&[explain, &["--", "/nonexistent/program"]].concat());
        assert_eq!(missing.status.code(), Some(127), "{missing:?}");
        let plain = accel(&[explain, &["--", text.to_str().unwrap()]].concat());
        assert_eq!(plain.status.code(), Some(126), "{plain:?}");
        let exited = accel(&[explain, &["--", "sh", "-c", "exit 3"]].concat());
        assert_eq!(exited.status.code(), Some(3), "{exited:?}");
    }
    assert_eq!(accel(&[]).status.code(), Some(125));
}

#[test]
fn a_missing_preload_library_is_an_error_unless_preloading_is_off() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("spawnscope");
    fs::copy(env!("CARGO_BIN_EXE_spawnscope"), &program).unwrap();
    let output = run_accel(&program, &["--", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(errors(&output).contains("failed to find libvspawn_preload.so"), "{output:?}");
    assert_eq!(run_accel(&program, &["--no-preload", "--", "true"]).status.code(), Some(0));
}

fn run_accel(spawnscope: &Path, arguments: &[&str]) -> Output {
    Command::new(spawnscope).arg("accel").args(arguments).output().unwrap()
}

/// Runs `env` with this LD_PRELOAD under accel. Returns the variables that it prints.
fn variables_with(preload: &str) -> String {
    build_library();
    let mut accel = Command::new(env!("CARGO_BIN_EXE_spawnscope"));
    let output = accel.args(["accel", "--strict", "--", "env"]).env("LD_PRELOAD", preload).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
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

/// Ignores SIGPIPE, blocks SIGUSR1, closes standard input and error, and executes the arguments
/// with an environment that std cannot represent.
const INHERIT: &str = r#"
#include <signal.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char *environment[] = {"B=1", "A=1", "without", "A=2", "PATH=/usr/bin:/bin", "=x", "C.D=3", NULL};
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGPIPE, SIG_IGN);
    close(0);
    close(2);
    execve(argv[1], argv + 1, environment);
    return argc;
}"#;

#[test]
fn the_command_inherits_what_accel_has_inherited() {
    build_library();
    let directory = tempfile::tempdir().unwrap();
    let inherit = directory.path().join("inherit");
    assert!(compile(INHERIT, &inherit, &[]));
    let run = |prefix: &[&str], command: &[&str]| {
        let output = Command::new(&inherit).args(prefix).args(command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!text.is_empty(), "{prefix:?} {command:?}");
        text.split('\0').filter(|entry| !entry.starts_with("LD_PRELOAD=")).collect::<Vec<_>>().join("\n")
    };
    let accel = [env!("CARGO_BIN_EXE_spawnscope"), "accel", "--"];
    for command in [
        &["/bin/cat", "/proc/self/environ"][..],
        &["/bin/grep", "Sig\\(Ign\\|Blk\\)", "/proc/self/status"],
        &["/bin/ls", "/proc/self/fd"],
    ] {
        assert_eq!(run(&accel, command), run(&[], command));
    }
}

#[test]
fn programs_with_a_sanitizer_run_without_the_library() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("p");
    if !compile("int main(void) { return 3; }", &program, &["-fsanitize=address"]) {
        assert!(std::env::var_os("CI").is_none(), "gcc has no AddressSanitizer");
        eprintln!("SKIPPED: gcc has no AddressSanitizer");
        return;
    }
    let name = program.to_str().unwrap();
    let directly = accel(&["--", name]);
    assert_eq!(directly.status.code(), Some(3), "{directly:?}");
    assert!(errors(&directly).contains("is built with a sanitizer"), "{directly:?}");
    let below = accel(&["--", "sh", "-c", &format!("{name}; exit $?")]);
    assert_eq!((below.status.code(), &*errors(&below)), (Some(3), ""));
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
}

fn warnings(program: &Path) -> String {
    errors(&accel(&["--", program.to_str().unwrap()]))
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
    assert!(!refused.status.success() && errors(&refused).contains("--open-files"), "{refused:?}");
}

fn soft_limit(options: &[&str]) -> String {
    let output = Command::new("sh")
        .args(["-c", "ulimit -Sn 900; exec \"$@\"", "sh"])
        .args([env!("CARGO_BIN_EXE_spawnscope"), "accel"])
        .args(options)
        .args(["--", "sh", "-c", "ulimit -Sn; ulimit -Sn 900"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}
