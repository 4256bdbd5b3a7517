//! Waits for one child only, with and without a timeout, even if the parent ignores SIGCHLD.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use vspawn::{Command, Stage, Stdio};

use crate::support::{Test, expect_error, kernel, shell, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_wait_returns_the_childs_status", statuses),
        test("try_wait_and_wait_timeout_do_not_affect_a_running_child", running),
        test("later_waits_return_the_same_status", repeated_waits),
        test("a_wait_closes_the_childs_input_first", closes_input),
        test("other_children_are_never_reaped", others),
        test("a_wait_reports_that_other_code_has_reaped_the_child", reaped_by_another),
        test("with_sigchld_ignored_a_wait_ends_with_echild", sigchld_ignored).changes_its_process(),
        test("a_dropped_handle_leaves_its_child_running", dropped),
    ]
}

fn statuses() {
    assert_eq!(shell("exit 0").status().unwrap().code(), Some(0));
    assert_eq!(shell("exit 255").status().unwrap().code(), Some(255));
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGUSR1] {
        assert_eq!(shell(&format!("kill -{signal} $$")).status().unwrap().signal(), Some(signal));
    }
    let mut dumps = shell("kill -ABRT $$");
    let status = dumps.resource_limit(libc::RLIMIT_CORE, 0, 0).status().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGABRT));
}

fn running() {
    let mut command = Command::new("/bin/cat");
    for detached in [false, true] {
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = if detached { command.spawn_nowait() } else { command.spawn() }.unwrap();
        assert_eq!(child.try_wait().unwrap(), None);
        assert_eq!(child.wait_timeout(Duration::from_millis(10)).unwrap(), None);
        assert_eq!(child.wait_timeout(Duration::ZERO).unwrap(), None);
        drop(child.stdin.take());
        assert!(child.wait_timeout(Duration::MAX).unwrap().unwrap().success());
    }
}

fn repeated_waits() {
    let mut child = shell("exit 3").spawn().unwrap();
    for _ in 0..3 {
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(child.try_wait().unwrap().unwrap().code(), Some(3));
        assert_eq!(child.wait_timeout(Duration::ZERO).unwrap().unwrap().code(), Some(3));
        child.kill().unwrap();
    }
}

fn closes_input() {
    let mut child = Command::new("/bin/cat").stdin(Stdio::piped()).spawn().unwrap();
    assert!(child.wait().unwrap().success());
}

fn others() {
    // Other children of the same process: one has ended, one is running.
    let mut ended = std::process::Command::new("/bin/sh").args(["-c", "exit 4"]).spawn().unwrap();
    let mut running = std::process::Command::new("/bin/cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    for _ in 0..50 {
        assert!(Command::new("/bin/true").status().unwrap().success());
        assert!(Command::new("/nowhere").spawn().is_err());
        assert!(Command::new("/nowhere").spawn_nowait().unwrap().wait().is_err());
        Command::new("/bin/true").output().unwrap();
    }
    assert_eq!(ended.wait().unwrap().code(), Some(4));
    assert!(running.try_wait().unwrap().is_none());
    drop(running.stdin.take());
    assert!(running.wait().unwrap().success());
}

fn reaped_by_another() {
    let mut child = Command::new("/bin/true").spawn().unwrap();
    assert_eq!(kernel::reap_any(), Some((child.id() as i32, 0)));
    expect_error(child.wait(), Stage::Wait, libc::ECHILD);
}

fn sigchld_ignored() {
    kernel::set_handler(libc::SIGCHLD, libc::SIG_IGN);
    let mut children: Vec<vspawn::Child> = (0..3).map(|_| shell("sleep 0.05").spawn().unwrap()).collect();
    expect_error(children[0].wait(), Stage::Wait, libc::ECHILD);
    expect_error(children[1].wait_timeout(Duration::from_secs(100)), Stage::Wait, libc::ECHILD);
    // If the exec fails, its error is still reported.
    expect_error(Command::new("/nowhere").spawn(), Stage::Exec, libc::ENOENT);
    expect_error(Command::new("/nowhere").spawn_nowait().unwrap().wait(), Stage::Exec, libc::ENOENT);
    expect_error(Command::new("/bin/echo").output(), Stage::Wait, libc::ECHILD);
}

fn dropped() {
    let mut command = Command::new("/bin/cat");
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let (pid, stdin) = (child.id() as i32, child.stdin.take());
    drop(child);
    assert!(kernel::has_children());
    drop(stdin);
    assert_eq!(kernel::reap_any(), Some((pid, 0)));
}
