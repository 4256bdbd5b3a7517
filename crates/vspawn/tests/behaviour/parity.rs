//! Features of `std::process::Command` and `posix_spawn`: replacing the process, reading the
//! outputs of a running child, file actions, scheduling.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd};

use tempfile::TempDir;
use vspawn::{ChildStdin, Command, Mechanism, Stage, Stdio};

use crate::support::{Test, kernel, shell, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_process_is_replaced_by_a_command", replaced),
        test("a_process_continues_if_it_cannot_be_replaced", not_replaced),
        test("wait_with_output_reads_both_outputs_to_their_ends", outputs),
        test("a_pipe_is_written_through_a_shared_reference", shared_ends),
        test("an_output_is_read_through_a_shared_reference", shared_readers),
        test("standard_error_follows_standard_output_to_a_number_or_dev_null", error_to_output),
        test("file_actions_are_carried_out_in_order", file_actions),
        test("a_failed_file_action_is_reported", failed_actions),
        test("a_file_action_opens_a_file_despite_a_full_descriptor_table", full_table).changes_its_process(),
        test("policy_cpus_and_privileges_change_only_in_the_child", scheduling),
    ]
}

fn stdout_of(command: &mut Command) -> String {
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

fn replaced() {
    let status = kernel::run_in_fork(|| {
        let mut command = shell("test $ONE = 1 -a $PWD = / && exit 42");
        let error = command.env("ONE", "1").current_dir("/").exec();
        eprintln!("{error}");
        1
    });
    assert_eq!(status, 42 << 8);
}

fn not_replaced() {
    let status = kernel::run_in_fork(|| {
        let error = Command::new("/nowhere").exec();
        let is_reported = (error.stage(), error.raw_os_error()) == (Stage::Exec, libc::ENOENT);
        let piped = shell("exit 0").stdout(Stdio::piped()).exec();
        let works = Command::new("/bin/true").status().is_ok_and(|status| status.success());
        i32::from(!(is_reported && piped.stage() == Stage::Prepare && works))
    });
    assert_eq!(status, 0);
}

fn outputs() {
    let mut command = shell("cat; printf error >&2; head -c 300000 /dev/zero; exit 3");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.as_ref().unwrap().write_all(b"input").unwrap();
    assert!(child.try_wait().unwrap().is_none());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!((output.stdout.len(), &output.stdout[..5]), (300_005, &b"input"[..]));
    assert_eq!(output.stderr, b"error");
    assert_eq!(shell("exit 4").spawn().unwrap().wait_with_output().unwrap().status.code(), Some(4));
}

fn shared_ends() {
    let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.take().unwrap().into_raw_fd();
    // SAFETY: `into_raw_fd` has just given up the ownership.
    let stdin = ChildStdin::from(unsafe { std::os::fd::OwnedFd::from_raw_fd(stdin) });
    (&stdin).write_all(b"x").unwrap();
    let mut byte = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
    assert_eq!(&byte, b"x");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

fn shared_readers() {
    let mut command = shell("printf output; printf error >&2");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, stderr) = (child.stdout.as_ref().unwrap(), child.stderr.as_ref().unwrap());
    let mut begin = [0; 3];
    let mut reader = stdout;
    reader.read_exact(&mut begin).unwrap();
    // The second reader continues where the first one has stopped.
    assert_eq!((&begin, std::io::read_to_string(stdout).unwrap()), (b"out", "put".to_owned()));
    assert_eq!(std::io::read_to_string(stderr).unwrap(), "error");
    assert!(child.wait().unwrap().success());
}

fn error_to_output() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("out");
    let file = std::fs::File::create(&path).unwrap();
    let mut command = shell("echo heard; echo failed >&2");
    command.stdout(Stdio::number(file.as_raw_fd())).stderr(Stdio::stdout());
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "heard\nfailed\n");
    let mut command = shell("readlink /proc/self/fd/2 >&9");
    command.stdout(Stdio::null()).stderr(Stdio::stdout()).fd_number(9, file.as_raw_fd());
    assert!(command.status().unwrap().success());
    assert!(std::fs::read_to_string(&path).unwrap().ends_with("\n/dev/null\n"));
}

fn file_actions() {
    let directory = TempDir::new().unwrap();
    std::fs::write(directory.path().join("in"), "text").unwrap();
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        let mut command = shell("cat <&8; pwd -P; cat >&2");
        command
            .mechanism(mechanism)
            .chdir(directory.path())
            .open(8, "in", libc::O_RDONLY, 0)
            .open(7, "in", libc::O_RDONLY, 0)
            .open(2, "out", libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC, 0o600)
            .dup(7, 0)
            .close(7)
            .close(7)
            .open(9, "/", libc::O_RDONLY | libc::O_DIRECTORY, 0)
            .fchdir(9)
            .close_from(9);
        let expected = "text/\n";
        assert_eq!(stdout_of(command.stdout(Stdio::piped())), expected);
        assert_eq!(std::fs::read_to_string(directory.path().join("out")).unwrap(), "text");
        let open = stdout_of(shell("ls /proc/self/fd").close_from(3).close(2));
        assert_eq!(open, "0\n1\n2\n", "2 is the directory that `ls` reads");
    }
}

fn failed_actions() {
    for (command, stage, errno, action) in [
        (
            shell("").close(9).open(5, "/nowhere", libc::O_RDONLY, 0),
            Stage::FileAction,
            libc::ENOENT,
            "open /nowhere as 5",
        ),
        (shell("").dup(77, 1), Stage::FileAction, libc::EBADF, "dup 77 to 1"),
        (shell("").fchdir(77), Stage::FileAction, libc::EBADF, "chdir to the directory at descriptor 77"),
        (shell("").close(-1), Stage::Prepare, libc::EBADF, "close -1"),
    ] {
        let error = command.spawn().unwrap_err();
        assert_eq!((error.stage(), error.raw_os_error(), error.action()), (stage, errno, action));
    }
    let terminal = shell("").stdin(Stdio::null()).foreground(0).spawn().unwrap_err();
    assert_eq!((terminal.stage(), terminal.raw_os_error()), (Stage::FileAction, libc::ENOTTY));
}

/// Like glibc's tst-spawn3: when RLIMIT_NOFILE is reached, closing a descriptor and opening a file
/// at its number need no free number.
fn full_table() {
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 64);
    let directory = TempDir::new().unwrap();
    let mut command = shell("echo text; exit 5");
    let held: Vec<_> = std::iter::from_fn(|| kernel::copy_above(0, 3)).collect();
    command.close(1).open(1, directory.path().join("out"), libc::O_WRONLY | libc::O_CREAT, 0o600);
    assert_eq!(command.close_from(3).status().unwrap().code(), Some(5));
    drop(held);
    assert_eq!(std::fs::read_to_string(directory.path().join("out")).unwrap(), "text\n");
}

fn cat() -> Command {
    Command::new("/bin/cat")
}

/// Returns a field of the status of a child that is `cat`.
fn status_field(cat: &mut Command, name: &str) -> String {
    let status = stdout_of(cat.arg("/proc/self/status"));
    crate::support::state::field(&status, name)
}

fn scheduling() {
    let ours = status_field(&mut cat(), "Cpus_allowed_list");
    let first: usize = ours.split([',', '-']).next().unwrap().parse().unwrap();
    assert_eq!(status_field(cat().affinity([first]), "Cpus_allowed_list"), first.to_string());
    assert_eq!(status_field(&mut cat(), "Cpus_allowed_list"), ours);
    assert_eq!(status_field(cat().no_new_privileges(true), "NoNewPrivs"), "1");
    assert_eq!(status_field(&mut cat(), "NoNewPrivs"), "0");
    let policy = stdout_of(Command::new("/bin/cat").scheduler(libc::SCHED_BATCH, 0).arg("/proc/self/stat"));
    let after_name = policy.rsplit_once(')').unwrap().1;
    assert_eq!(after_name.split_whitespace().nth(38), Some("3"), "the 41st field: {policy}");
    let error = cat().scheduler(77, 0).spawn().unwrap_err();
    assert_eq!((error.stage(), error.action()), (Stage::Scheduler, "set scheduling policy 77 with priority 0"));
    let error = cat().affinity([60_000]).spawn().unwrap_err();
    assert_eq!((error.stage(), error.action()), (Stage::Scheduler, "set the CPUs"));
}
