//! Programs that cannot be executed, the search in PATH, and strings that cannot be passed to a
//! program.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use libc::{E2BIG, EACCES, EINVAL, ELOOP, ENOENT, ENOEXEC, ENOTDIR};
use tempfile::TempDir;
use vspawn::{Command, Error, Stage};

use crate::support::needs::Need;
use crate::support::{Test, expect_error, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_program_that_cannot_be_executed_is_reported_with_its_path", not_executable),
        test("a_script_without_an_interpreter_line_gives_enoexec_and_no_shell_runs_it", wrong_format),
        test("a_loop_of_links_ends_the_search", loop_of_links),
        test("the_search_continues_after_eacces", search_past_eacces),
        test("the_search_reports_eacces_if_it_finds_nothing_else", search_only_eacces),
        test("the_search_names_a_program_that_is_in_no_directory", search_nothing),
        test("an_empty_directory_of_path_is_the_current_one", empty_directory),
        test("an_overlong_directory_of_path_is_skipped", overlong_directory),
        test("the_childs_own_path_is_searched", own_path),
        test("arguments_too_large_for_the_kernel_give_e2big", too_big),
        test("a_nul_byte_is_refused_before_anything_starts", nul),
        test("a_signal_that_does_not_exist_is_refused", bad_signal),
        test("invalid_requests_are_refused", invalid_requests),
        test("it_is_an_error_if_the_user_may_not_execute_the_program", other_user).needs(&[Need::Root]),
    ]
}

fn file(directory: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// Checks that a command fails at exec, in the same way with and without waiting. Returns the
/// error.
fn assert_exec_fails(command: &mut Command, errno: i32) -> Error {
    let error = expect_error(command.spawn(), Stage::Exec, errno);
    let mut child = command.spawn_nowait().unwrap();
    assert_eq!(child.wait().unwrap_err(), error);
    error
}

fn not_executable() {
    let directory = TempDir::new().unwrap();
    let error = assert_exec_fails(&mut Command::new("/nowhere/x"), ENOENT);
    assert_eq!(error.to_string(), "exec /nowhere/x: No such file or directory (os error 2)");
    let path = file(directory.path(), "text", "#!/bin/sh\n", 0o644);
    let error = assert_exec_fails(&mut Command::new(&path), EACCES);
    assert_eq!(error.action(), format!("exec {}", path.display()));
    assert_exec_fails(&mut Command::new(file(directory.path(), "script", "#!/nowhere/sh\n", 0o755)), ENOENT);
    assert_exec_fails(&mut Command::new("/tmp"), EACCES);
    assert_exec_fails(&mut Command::new("/etc/passwd/x"), ENOTDIR);
}

fn wrong_format() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("ran");
    let script = file(directory.path(), "script", &format!("echo ran > {}\n", trace.display()), 0o755);
    assert_exec_fails(&mut Command::new(&script), ENOEXEC);
    // No shell runs it after a search in PATH either, where execvp would try one.
    assert_exec_fails(Command::new("script").env("PATH", directory.path()), ENOEXEC);
    assert_exec_fails(&mut Command::new(file(directory.path(), "empty", "", 0o755)), ENOEXEC);
    assert!(!trace.exists());
}

fn loop_of_links() {
    let directory = TempDir::new().unwrap();
    std::os::unix::fs::symlink("true", directory.path().join("true")).unwrap();
    assert_exec_fails(Command::new("true").env("PATH", format!("{}:/bin", directory.path().display())), ELOOP);
}

fn search_past_eacces() {
    let directory = TempDir::new().unwrap();
    file(directory.path(), "true", "", 0o644);
    let path = format!("/nowhere:/etc/passwd:{}:/usr/bin:/bin", directory.path().display());
    assert!(Command::new("true").env("PATH", path).status().unwrap().success());
}

fn search_only_eacces() {
    let directory = TempDir::new().unwrap();
    let denied = file(directory.path(), "program", "", 0o644);
    let path = format!("/nowhere:{}:/nowhere/else", directory.path().display());
    let error = assert_exec_fails(Command::new("program").env("PATH", path), EACCES);
    assert_eq!(error.action(), format!("exec {}", denied.display()));
}

fn search_nothing() {
    let error = assert_exec_fails(Command::new("no-such-program").env("PATH", "/bin:/nowhere"), ENOENT);
    assert_eq!(error.action(), "exec no-such-program, which is in no directory of PATH");
}

fn empty_directory() {
    let directory = TempDir::new().unwrap();
    file(directory.path(), "here", "#!/bin/sh\nexit 5\n", 0o755);
    for path in ["", ":/nowhere", "/nowhere:", "/nowhere::/bin"] {
        let status = Command::new("here").env("PATH", path).current_dir(directory.path()).status();
        assert_eq!(status.unwrap().code(), Some(5), "PATH={path}");
    }
}

fn overlong_directory() {
    let path = format!("/{}:/usr/bin:/bin", "x/".repeat(3000));
    assert!(Command::new("true").env("PATH", path).status().unwrap().success());
}

fn own_path() {
    let directory = TempDir::new().unwrap();
    file(directory.path(), "mine", "#!/bin/sh\nexit 6\n", 0o755);
    assert_eq!(Command::new("mine").env("PATH", directory.path()).status().unwrap().code(), Some(6));
    // Without PATH, the default path of glibc's execvp is searched.
    assert!(Command::new("true").env_clear().status().unwrap().success());
    assert!(Command::new("true").env_remove("PATH").status().unwrap().success());
}

fn too_big() {
    // The kernel allows 128 KiB for one string, and a quarter of the stack limit for all strings
    // together.
    assert_exec_fails(Command::new("/bin/true").arg("x".repeat(200_000)), E2BIG);
    assert_exec_fails(Command::new("/bin/true").args(vec!["x".repeat(100_000); 100]), E2BIG);
    assert_exec_fails(Command::new("/bin/true").env("LARGE", "x".repeat(200_000)), E2BIG);
}

/// Checks that `prepare` and everything that calls it return the error.
fn assert_refused(command: &mut Command, action: &str) {
    let error = command.spawn().unwrap_err();
    let found = (error.stage(), error.raw_os_error(), error.action());
    assert_eq!(found, (Stage::Prepare, EINVAL, action));
    assert_eq!(command.prepare().unwrap_err(), error);
    assert_eq!(command.spawn_nowait().unwrap_err(), error);
    assert_eq!(command.output().unwrap_err(), error);
}

fn nul() {
    let nul = OsStr::from_bytes(b"a\0b");
    let end = "it contains a NUL byte";
    assert_refused(Command::new("/bin/true").arg("fine").arg(nul), &format!("pass argument 2: {end}"));
    assert_refused(Command::new("/bin/true").arg0(nul), &format!("pass argv[0]: {end}"));
    assert_refused(&mut Command::new(nul), &format!("pass the program: {end}"));
    assert_refused(Command::new(nul).arg0("x"), &format!("pass the program: {end}"));
    assert_refused(Command::new("/bin/true").env("A", nul), &format!("pass variable A: {end}"));
    assert_refused(Command::new("/bin/true").env(nul, "x"), &format!("pass variable a\0b: {end}"));
    assert_refused(Command::new("/bin/true").current_dir(nul), &format!("pass the working directory: {end}"));
    assert_refused(Command::new("/bin/true").chroot(nul), &format!("pass the root directory: {end}"));
}

fn bad_signal() {
    for signal in [0, -1, 65] {
        let action = format!("set signal {signal}, which does not exist");
        assert_refused(Command::new("/bin/true").blocked_signals(&[signal]), &action);
        assert_refused(Command::new("/bin/true").ignored_signals(&[signal]), &action);
        assert_refused(Command::new("/bin/true").default_signals(&[signal]), &action);
    }
}

fn invalid_requests() {
    assert_refused(&mut Command::new(""), "run a program without a name");
    assert_refused(Command::new("/bin/true").env("", "x"), "pass variable : its name is empty or contains =");
    assert_refused(Command::new("/bin/true").env("A=B", "x"), "pass variable A=B: its name is empty or contains =");
    assert_refused(
        Command::new("/bin/true").stdin(vspawn::Stdio::number(-1)),
        "give the child the parent's descriptor -1",
    );
    let mut command = Command::new("/bin/true");
    assert_refused(
        command.new_session(true).process_group(0),
        "join a process group and begin a session: a session's leader has its own group",
    );
    assert_refused(Command::new("/bin/true").fd_number(-1, 0), "give the child descriptor -1");
    let mut many = Command::new("/bin/true");
    for target in 3..2000 {
        many.fd_number(target, 0);
    }
    expect_error(many.spawn(), Stage::Prepare, EINVAL);
    // SAFETY: it is never called.
    let hooked = unsafe { Command::new("/bin/true").pre_exec(|| Ok(())).prepare() };
    assert!(hooked.unwrap_err().action().contains("Mechanism::Fork"));
}

fn other_user() {
    let directory = TempDir::new().unwrap();
    let program = file(directory.path(), "private", "#!/bin/sh\n", 0o700);
    let mut command = Command::new(&program);
    expect_error(command.uid(65534).gid(65534).spawn(), Stage::Exec, EACCES);
}
