//! Kernels without clone3, and seccomp filters that refuse it or pidfds. Without clone3, the child
//! is created by clone and clears its handlers itself.

use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use libc::{EINVAL, ENOSYS, EPERM};
use tempfile::TempDir;
use vspawn::{Command, Mechanism, Stage, Stdio};

use crate::support::seccomp::{call, refuse};
use crate::support::state::field;
use crate::support::{Test, expect_error, kernel, test};

pub fn tests() -> Vec<Test> {
    let refusals = [("enosys", ENOSYS), ("eperm", EPERM), ("einval", EINVAL)];
    let mut tests = vec![
        test("with_clone3_handlers_are_cleared_and_ignored_signals_stay_ignored", || {
            dispositions(None);
        }),
        test("a_detached_start_shares_a_large_table_until_its_child_has_its_own", large_table),
        test("without_pidfds_a_forked_child_is_waited_for_and_killed_by_its_pid", no_pidfds),
        test("the_pid_is_used_if_a_filter_refuses_calls_with_a_pidfd", useless_pidfds),
        test("a_cgroup_without_clone3_is_an_error", cgroup_without_clone3),
    ];
    for (name, errno) in refusals {
        let name = format!("with_clone3_refused_with_{name}_handlers_are_cleared_and_ignored_signals_stay_ignored");
        tests.push(test(name, move || dispositions(Some(errno))));
    }
    tests.into_iter().map(Test::changes_its_process).collect()
}

extern "C" fn abort(_: i32) {
    std::process::abort();
}

/// Returns the handled, ignored and blocked signals of a started program, as the kernel lists them.
fn signal_sets(command: &mut Command) -> [u64; 3] {
    let output = command.arg("/proc/self/status").output().unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    ["SigCgt", "SigIgn", "SigBlk"].map(|name| u64::from_str_radix(&field(&status, name), 16).unwrap())
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn command(program: &str, mechanism: Mechanism) -> Command {
    let mut command = Command::new(program);
    command.mechanism(mechanism);
    command
}

fn dispositions(clone3_refused: Option<i32>) {
    let real_time = libc::SIGRTMIN() + 3;
    for signal in [libc::SIGUSR1, libc::SIGTERM, real_time, 64] {
        kernel::set_handler(signal, abort as *const () as usize);
    }
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, real_time + 1] {
        kernel::set_handler(signal, libc::SIG_IGN);
    }
    let ours = bit(libc::SIGHUP) | bit(libc::SIGINT) | bit(libc::SIGQUIT) | bit(real_time + 1);
    let pipe = bit(libc::SIGPIPE);
    if let Some(errno) = clone3_refused {
        refuse(&[(call(libc::SYS_clone3), errno)]);
    }
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        let others = signal_sets(&mut command("/bin/cat", mechanism))[1] & !ours & !pipe;
        assert_eq!(signal_sets(&mut command("/bin/cat", mechanism)), [0, ours | others, 0]);
        assert_eq!(signal_sets(command("/bin/cat", mechanism).inherit_sigpipe()), [0, ours | others | pipe, 0]);
        let default = &[libc::SIGHUP, libc::SIGTERM];
        assert_eq!(
            signal_sets(command("/bin/cat", mechanism).default_signals(default)),
            [0, others | ours & !bit(libc::SIGHUP), 0]
        );
        let ignored = signal_sets(command("/bin/cat", mechanism).ignored_signals(&[libc::SIGUSR1]));
        assert_eq!(ignored, [0, ours | others | bit(libc::SIGUSR1), 0]);
        let blocked = signal_sets(command("/bin/cat", mechanism).blocked_signals(&[libc::SIGUSR2, 64]));
        assert_eq!(blocked, [0, ours | others, bit(libc::SIGUSR2) | bit(64)]);
    }
    detached();
}

/// Tests the fallback without waiting for the exec, and failures of the exec.
fn detached() {
    let mut command = Command::new("/bin/true");
    let mut child = command.stdout(Stdio::null()).spawn_nowait().unwrap();
    assert!(child.wait().unwrap().success());
    expect_error(Command::new("/nowhere").spawn_nowait().unwrap().wait(), Stage::Exec, libc::ENOENT);
    expect_error(Command::new("/nowhere").spawn(), Stage::Exec, libc::ENOENT);
}

fn cgroup_without_clone3() {
    let directory = TempDir::new().unwrap();
    for errno in [ENOSYS, EPERM] {
        let mut command = Command::new("/bin/true");
        command.cgroup(std::fs::File::open(directory.path()).unwrap());
        refuse(&[(call(libc::SYS_clone3), errno)]);
        let error = expect_error(command.spawn(), Stage::Clone, errno);
        assert_eq!(error.action(), "create a process in a cgroup: clone3 is refused, and clone has no option for it");
    }
}

/// The filter refuses a detached start that copies the table, which it recognizes by the flags of
/// clone.
fn large_table() {
    kernel::set_soft_limit(libc::RLIMIT_NOFILE, 4096);
    let copying = libc::CLONE_VM | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    refuse(&[(call(libc::SYS_clone3), ENOSYS), (call(libc::SYS_clone).with(0, copying as u32), libc::EDOM)]);
    // A small table is copied.
    expect_error(Command::new("/bin/true").close_others(true).spawn_nowait(), Stage::Clone, libc::EDOM);
    let held: Vec<_> = std::iter::from_fn(|| kernel::copy_above(0, 3)).take(2000).collect();
    let mut child = Command::new("/bin/true").close_others(true).spawn_nowait().unwrap();
    assert!(child.wait().unwrap().success());
    expect_error(Command::new("/nowhere").close_others(true).spawn_nowait().unwrap().wait(), Stage::Exec, libc::ENOENT);
    assert_eq!(
        held.iter().filter(|fd| kernel::is_open(fd.as_raw_fd())).count(),
        2000,
        "the parent's descriptors stay open"
    );
}

/// As in qemu-user: a fork gets no pidfd, and there is no pidfd_open.
fn no_pidfds() {
    let with_pidfd = libc::CLONE_PIDFD | libc::CLONE_VFORK | libc::SIGCHLD;
    refuse(&[
        (call(libc::SYS_clone3), ENOSYS),
        (call(libc::SYS_clone).with(0, with_pidfd as u32), EINVAL),
        (call(libc::SYS_pidfd_open), ENOSYS),
    ]);
    assert!(command("/bin/true", Mechanism::Fork).status().unwrap().success());
    assert_eq!(command("/bin/echo", Mechanism::Fork).arg("x").output().unwrap().stdout, b"x\n");
    expect_error(command("/nowhere", Mechanism::Fork).close_others(true).spawn(), Stage::Exec, libc::ENOENT);
    let mut child =
        command("/bin/sh", Mechanism::Fork).args(["-c", "sleep 1000 & wait"]).process_group(0).spawn().unwrap();
    assert!(child.pidfd().is_none());
    assert_eq!(child.wait_timeout(Duration::from_millis(50)).unwrap(), None);
    assert_eq!(child.kill_tree().unwrap(), 1);
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    // From now on, the pid may belong to another process.
    child.kill().unwrap();
    assert_eq!(child.signal_group(0).unwrap_err().raw_os_error(), libc::ESRCH);
}

/// As with seccomp profiles from before Linux 5.4.
fn useless_pidfds() {
    refuse(&[
        (call(libc::SYS_pidfd_send_signal), EPERM),
        (call(libc::SYS_pidfd_open), EPERM),
        (call(libc::SYS_waitid).with(0, libc::P_PIDFD), EINVAL),
    ]);
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").process_group(0).mechanism(mechanism);
        let mut child = command.spawn().unwrap();
        assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
        child.signal(libc::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
        let mut child = command.spawn().unwrap();
        child.signal_group(libc::SIGUSR1).unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGUSR1));
        let mut child = command.spawn().unwrap();
        child.kill_tree().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }
}
