//! A parent that has reached its limit of open files, memory, or processes.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use libc::{E2BIG, EAGAIN, EMFILE, ENOMEM};
use vspawn::{Command, Stage, Stdio};

use crate::support::needs::Need;
use crate::support::state::{State, open_files};
use crate::support::{Test, expect_error, kernel, run_alone, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_full_descriptor_table_is_reported_for_each_pipe", full_table),
        test("without_a_free_descriptor_a_child_is_started_waited_for_and_killed", no_number_left),
        test("a_lack_of_memory_for_the_childs_stack_is_reported", no_memory),
        test("a_childs_own_memory_limit_applies_to_its_exec", childs_limit),
        test("the_limit_of_processes_is_reported_as_a_failed_clone", process_limit).needs(&[Need::Setpriv]),
        test("at_the_limit_of_processes", at_the_process_limit).inner(),
    ]
}

/// Opens descriptors until exactly `free` numbers are left.
fn fill_table(free: usize) -> Vec<OwnedFd> {
    let mut held: Vec<OwnedFd> = std::iter::from_fn(|| kernel::copy_above(0, 3)).collect();
    held.truncate(held.len() - free);
    held
}

fn full_table() {
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 100);
    let mut command = Command::new("/bin/true");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let prepared = command.prepare().unwrap();
    for free in 0..6 {
        let held = fill_table(free);
        let before = open_files();
        for result in [prepared.spawn(), prepared.spawn_nowait()] {
            expect_error(result, Stage::Pipe, EMFILE);
            assert_eq!(before, open_files(), "{free} free");
        }
        drop(held);
    }
    // The seventh descriptor is the pidfd, without which a child can still be started.
    for (free, has_pidfd) in [(6, false), (7, true)] {
        let held = fill_table(free);
        let mut child = prepared.spawn().unwrap();
        assert_eq!(child.pidfd().is_some(), has_pidfd);
        assert!(child.wait().unwrap().success());
        drop(child);
        let mut child = prepared.spawn_nowait().unwrap();
        assert_eq!(child.pidfd().is_some(), has_pidfd);
        assert!(child.wait().unwrap().success());
        drop(held);
    }
}

/// Even without a free number, a child without pipes can be started, waited for and killed, as with
/// std.
fn no_number_left() {
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 100);
    let held = fill_table(0);
    assert!(Command::new("/bin/true").status().unwrap().success());
    expect_error(Command::new("/nowhere").spawn(), Stage::Exec, libc::ENOENT);
    expect_error(Command::new("/nowhere").spawn_nowait().unwrap().started(), Stage::Exec, libc::ENOENT);
    let mut child = Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap();
    assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
    child.signal_group(libc::SIGTERM).unwrap();
    let status = child.wait_timeout(Duration::from_secs(20)).unwrap().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGTERM));
    child.kill().unwrap();
    let mut child = Command::new("/bin/sleep").arg("1000").spawn_nowait().unwrap();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    drop(held);
}

fn no_memory() {
    let prepared = Command::new("/bin/true").prepare().unwrap();
    let before = State::now();
    let unlimited = kernel::limit(libc::RLIMIT_AS).0;
    kernel::set_soft_limit(libc::RLIMIT_AS, 1 << 20);
    let results: Vec<_> = (0..3).map(|_| prepared.spawn()).collect();
    let detached = prepared.spawn_nowait();
    kernel::set_soft_limit(libc::RLIMIT_AS, unlimited);
    for result in results.into_iter().chain([detached]) {
        expect_error(result, Stage::Stack, ENOMEM);
    }
    assert_eq!(before, State::now());
    assert!(prepared.spawn().unwrap().wait().unwrap().success());
    // The stack is cached now, so the spawn itself needs no more memory. The started program needs
    // some, and may fail.
    kernel::set_soft_limit(libc::RLIMIT_AS, 1 << 20);
    let kept = prepared.spawn();
    kernel::set_soft_limit(libc::RLIMIT_AS, unlimited);
    kept.unwrap().wait().unwrap();
}

fn childs_limit() {
    let spawned = Command::new("/bin/true").resource_limit(libc::RLIMIT_STACK, 0, 0).spawn();
    // Either the arguments do not fit, or the new program fails. The parent is never affected.
    match spawned {
        Err(error) => {
            assert_eq!(error.stage(), Stage::Exec);
            assert!(matches!(error.raw_os_error(), E2BIG | ENOMEM), "{error}");
        }
        Ok(mut child) => assert!(!child.wait().unwrap().success()),
    }
    let spawned = Command::new("/bin/true").resource_limit(libc::RLIMIT_AS, 4096, 4096).spawn();
    if let Ok(mut child) = spawned {
        assert!(!child.wait().unwrap().success());
    }
}

/// Runs the test as another user, since the limit does not apply to root.
fn process_limit() {
    run_alone(&["setpriv", "--reuid", "61234", "--clear-groups"], "at_the_limit_of_processes").unwrap();
}

fn at_the_process_limit() {
    let mut command = Command::new("/bin/true");
    let prepared = command.stdout(Stdio::piped()).prepare().unwrap();
    assert!(prepared.spawn().unwrap().wait().unwrap().success());
    kernel::set_soft_limit(libc::RLIMIT_NPROC, 1);
    for _ in 0..20 {
        for result in [prepared.spawn(), prepared.spawn_nowait()] {
            let error = expect_error(result, Stage::Clone, EAGAIN);
            assert_eq!(error.action(), "create a process for /bin/true");
        }
    }
}
