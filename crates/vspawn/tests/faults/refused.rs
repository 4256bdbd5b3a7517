//! Makes every system call of a spawn fail in turn, and checks the errno, the stage and the text of
//! the error. The parent waits for the exec or not; the child shares its memory or is a fork. The
//! harness checks that nothing is left behind.

use std::time::Duration;

use libc::{EACCES, EAGAIN, EINVAL, EIO, EMFILE, ENOMEM, ENOSYS, EPERM};
use vspawn::{Command, Mechanism, Stage, Stdio};

use crate::support::kernel;
use crate::support::seccomp::{ask, call, refuse};
use crate::support::state::{State, mappings};
use crate::support::{Test, expect_error, test};

/// A descriptor number that is free in these tests.
const FREE: i32 = 40;

/// A call that is refused: its number, optionally the index and value of an argument that it must
/// have, and the errno.
type Refusal = (libc::c_long, Option<(u32, u32)>, i32);

/// The request, which calls fail and how, and the expected error.
struct Row {
    name: &'static str,
    request: fn(&mut Command),
    refused: &'static [Refusal],
    stage: Stage,
    errno: i32,
    action: &'static str,
}

macro_rules! row {
    ($name:literal, $command:ident => $ask:expr,
        [$(($call:ident $(, $index:literal = $value:expr)?) => $refused:expr),*],
        $stage:ident, $errno:expr, $action:literal) => {
        Row {
            name: $name,
            request: |$command: &mut Command| {
                $ask;
            },
            refused: &[$((libc::$call, row!(@ $($index, $value)?), $refused)),*],
            stage: Stage::$stage,
            errno: $errno,
            action: $action,
        }
    };
    (@) => { None };
    (@ $index:literal, $value:expr) => { Some(($index, $value as u32)) };
}

fn nothing(_: &mut Command) {}

fn swap(command: &mut Command) {
    command.fd(FREE, kernel::copy_to(0, FREE + 1));
    command.fd(FREE + 1, kernel::copy_to(0, FREE));
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row!("setsid", c => c.new_session(true), [(SYS_setsid) => EIO], Session, EIO, "begin a session"),
    row!("ioctl", c => c.controlling_terminal(0), [(SYS_ioctl, 1 = libc::TIOCSCTTY) => EIO], ControllingTerminal, EIO,
        "take the terminal at descriptor 0 as controlling terminal"),
    row!("setpgid", c => c.process_group(0), [(SYS_setpgid) => EIO], ProcessGroup, EIO, "begin a process group"),
    row!("setpgid_of_another", c => c.process_group(7), [(SYS_setpgid) => EACCES], ProcessGroup, EACCES, "join process group 7"),
    row!("rt_sigaction", c => c.ignored_signals(&[libc::SIGUSR1]), [(SYS_rt_sigaction, 0 = libc::SIGUSR1) => EIO], Signals, EIO,
        "set the child's signals"),
    row!("fcntl_of_a_swap", c => swap(c), [(SYS_fcntl, 1 = libc::F_DUPFD_CLOEXEC) => EMFILE], Dup, EMFILE, "dup 41 to 40"),
    row!("fcntl_of_an_identity", c => c.fd(FREE, kernel::copy_to(0, FREE)), [(SYS_fcntl, 1 = libc::F_SETFD) => EIO], Dup, EIO,
        "dup 40 to 40"),
    row!("dup3", c => c.fd(FREE, kernel::copy_to(0, FREE + 2)), [(SYS_dup3) => EIO], Dup, EIO, "dup 42 to 40"),
    row!("dup3_of_a_pipe", c => c.stdout(Stdio::piped()), [(SYS_dup3) => EIO], Dup, EIO, "dup a pipe to 1"),
    row!("openat", c => c.stdin(Stdio::null()), [(SYS_openat, 2 = libc::O_RDWR) => EACCES], OpenNull, EACCES,
        "open /dev/null for descriptor 0"),
    row!("getpriority", c => c.nice(1), [(SYS_getpriority) => EIO], Nice, EIO, "change the niceness by 1"),
    row!("setpriority", c => c.nice(-3), [(SYS_setpriority) => EACCES], Nice, EACCES, "change the niceness by -3"),
    row!("prlimit64", c => c.resource_limit(libc::RLIMIT_CORE, 3, 4), [(SYS_prlimit64) => EPERM], ResourceLimit, EPERM,
        "set resource limit 4 to 3 (hard 4)"),
    row!("chroot", c => c.chroot("/tmp"), [(SYS_chroot) => EPERM], Chroot, EPERM, "chroot to /tmp"),
    row!("setgroups", c => c.groups(&[1]), [(SYS_setgroups) => EPERM], Groups, EPERM, "set the supplementary groups"),
    row!("setresgid", c => c.gid(12), [(SYS_setresgid) => EPERM], Group, EPERM, "become group 12"),
    row!("setresuid", c => c.uid(13).groups(&[]), [(SYS_setgroups) => 0, (SYS_setresuid) => EAGAIN], User, EAGAIN, "become user 13"),
    row!("setresgid_of_a_reset", c => c.reset_ids(), [(SYS_setresgid) => EPERM], Group, EPERM,
        "set the effective group id to the real one"),
    row!("setresuid_of_a_reset", c => c.reset_ids(), [(SYS_setresuid) => EPERM], User, EPERM,
        "set the effective user id to the real one"),
    row!("chdir", c => c.current_dir("/tmp"), [(SYS_chdir) => EACCES], Chdir, EACCES, "chdir to /tmp"),
    row!("close_range", c => c.close_others(true), [(SYS_close_range) => EIO], CloseOthers, EIO, "close all other descriptors"),
    row!("close_range_and_getdents64", c => c.close_others(true), [(SYS_close_range) => EPERM, (SYS_getdents64) => EIO], CloseOthers,
        EIO, "close all other descriptors"),
    row!("prctl", c => c.parent_death_signal(9), [(SYS_prctl, 0 = libc::PR_SET_PDEATHSIG) => EIO], ParentDeath, EIO,
        "ask for a signal at the parent's death"),
    row!("getppid", c => c.parent_death_signal(9), [(SYS_getppid) => EIO], ParentDeath, EIO, "ask for a signal at the parent's death"),
    row!("execve", c => nothing(c), [(SYS_execve) => EIO], Exec, EIO, "exec /bin/true"),
    row!("clone3", c => nothing(c), [(SYS_clone3) => EAGAIN], Clone, EAGAIN, "create a process for /bin/true"),
    row!("clone", c => nothing(c), [(SYS_clone3) => ENOSYS, (SYS_clone) => ENOMEM], Clone, ENOMEM, "create a process for /bin/true"),
    row!("pipe2", c => c.stdout(Stdio::piped()), [(SYS_pipe2) => EMFILE], Pipe, EMFILE, "make a pipe"),
    row!("mmap", c => nothing(c), [(SYS_mmap, 3 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK) => ENOMEM], Stack, ENOMEM,
        "map a stack for the child"),
    row!("mprotect", c => nothing(c), [(SYS_mprotect, 2 = libc::PROT_NONE) => ENOMEM], Stack, ENOMEM, "map a stack for the child"),
    row!("rt_sigprocmask", c => c.blocked_signals(&[libc::SIGUSR1]), [(SYS_rt_sigprocmask) => EINVAL], Signals, EINVAL,
        "block the caller's signals"),
];

pub fn tests() -> Vec<Test> {
    let mut tests: Vec<Test> = ROWS
        .iter()
        .map(|row| {
            test(format!("a_refused_{}_is_reported_and_leaves_nothing_behind", row.name), || {
                check(row);
            })
        })
        .collect();
    tests.push(
        test("a_refused_mask_of_the_child_is_reported_and_leaves_nothing_behind", mask_of_the_child)
            .changes_its_process(),
    );
    tests.push(test("a_refused_waitid_is_reported", waitid));
    tests.push(test("a_refused_mapping_for_a_forked_childs_report_is_reported", map_for_a_report));
    for (name, errno) in [("eperm", EPERM), ("einval", EINVAL)] {
        let name = format!("clone_with_shared_memory_refused_with_{name}_names_the_request_and_never_forks");
        tests.push(test(name, move || shared_memory(errno)));
    }
    tests
}

fn refuse_all(row: &Row) {
    let rules = row.refused.iter().map(|(number, argument, errno)| {
        let call = call(*number);
        (argument.map_or(call, |(index, value)| call.with(index, value)), *errno)
    });
    refuse(&rules.collect::<Vec<_>>());
}

/// Checks a row several times, since a later round may find what an earlier one has left behind.
fn check(row: &Row) {
    let mut command = Command::new("/bin/true");
    (row.request)(&mut command);
    let shared = command.prepare().unwrap();
    let forked = command.mechanism(Mechanism::Fork).prepare().unwrap();
    drop(command);
    refuse_all(row);
    let mut mapped = 0;
    for round in 0..20 {
        row.compare("spawn", &shared.spawn().unwrap_err());
        if let Some(error) = detached_error(&shared) {
            row.compare("spawn_nowait", &error);
        }
        if row.stage != Stage::Clone && row.stage != Stage::Stack {
            row.compare("fork", &forked.spawn().unwrap_err());
        }
        match round {
            0 => mapped = mappings(),
            _ => assert!(mappings() <= mapped + 1, "{} mappings, {mapped} at first", mappings()),
        }
    }
}

/// Returns the error of a detached spawn, which occurs at once or in the child. `None` for a change
/// of user, which a detached spawn does not support.
fn detached_error(prepared: &vspawn::Prepared) -> Option<vspawn::Error> {
    match prepared.spawn_nowait() {
        Err(error) if error.stage() == Stage::Prepare => None,
        Err(error) => Some(error),
        Ok(mut child) => {
            let error = child.started().unwrap_err();
            assert_eq!(child.wait().unwrap_err(), error, "wait returns the same");
            assert_eq!(child.try_wait().unwrap_err(), error, "try_wait returns the same");
            assert_eq!(child.wait_timeout(Duration::ZERO).unwrap_err(), error, "wait_timeout returns the same");
            child.kill().unwrap();
            Some(error)
        }
    }
}

impl Row {
    fn compare(&self, how: &str, error: &vspawn::Error) {
        let found = (error.stage(), error.raw_os_error(), error.action());
        assert_eq!(found, (self.stage, self.errno, self.action), "{how}");
    }
}

/// The parent makes the same call as the child, so the filter asks the test, which refuses only the
/// child's.
fn mask_of_the_child() {
    let parent = std::process::id();
    ask(&[call(libc::SYS_rt_sigprocmask)], move |waiting| match waiting.pid == parent {
        true => waiting.allow(),
        false => waiting.fail(EIO),
    });
    let before = State::now();
    for _ in 0..20 {
        let error = expect_error(Command::new("/bin/true").spawn(), Stage::Signals, EIO);
        assert_eq!(error.action(), "set the child's signals");
    }
    assert_eq!(before, State::now());
}

fn waitid() {
    refuse(&[(call(libc::SYS_waitid).with(0, libc::P_PIDFD), EIO)]);
    let mut child = Command::new("/bin/true").spawn().unwrap();
    let error = expect_error(child.wait(), Stage::Wait, EIO);
    assert_eq!(error.action(), format!("wait for process {}", child.id()));
    assert_eq!(kernel::reap_any(), Some((child.id() as i32, 0)));
}

fn map_for_a_report() {
    refuse(&[(call(libc::SYS_mmap).with(3, (libc::MAP_SHARED | libc::MAP_ANONYMOUS) as u32), ENOMEM)]);
    expect_error(Command::new("/bin/true").mechanism(Mechanism::Fork).spawn(), Stage::Stack, ENOMEM);
}

/// A filter cannot read clone3's flags, which are in memory. It returns ENOSYS, so that the library
/// uses clone, whose flags it can read.
fn shared_memory(errno: i32) {
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    let detached = libc::CLONE_VM | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID | libc::SIGCHLD;
    refuse(&[
        (call(libc::SYS_clone3), ENOSYS),
        (call(libc::SYS_clone).with(0, flags as u32), errno),
        (call(libc::SYS_clone).with(0, detached as u32), errno),
    ]);
    let mut command = Command::new("/bin/true");
    for result in [command.spawn(), command.spawn_nowait()] {
        let error = expect_error(result, Stage::Clone, errno);
        assert!(error.action().contains("that shares memory"), "{error}");
        assert!(error.action().contains("Mechanism::Fork"), "{error}");
    }
    // The filter allows a fork, which the library uses on request.
    assert!(command.mechanism(Mechanism::Fork).status().unwrap().success());
}
