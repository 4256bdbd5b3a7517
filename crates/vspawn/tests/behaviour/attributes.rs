//! Properties of a child besides its descriptors: variables, directory, limits, process groups, a
//! terminal, a cgroup.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use vspawn::{Command, Mechanism, Stage, Stdio};

use crate::support::needs::Need;
use crate::support::{Test, expect_error, run_alone, shell, test};

pub fn tests() -> Vec<Test> {
    let in_mounts: &[&str] = &["unshare", "--mount", "sh", "-c", "mount -t cgroup2 none /mnt && exec \"$0\""];
    vec![
        test("arguments_and_variables_reach_the_child", arguments),
        test("directory_and_umask_change_only_in_the_child", directory),
        test("limits_and_niceness_change_only_in_the_child", limits),
        test("a_child_has_the_requested_group_or_session", groups),
        test("a_descriptor_that_is_no_terminal_cannot_become_the_controlling_terminal", no_terminal),
        test("a_child_gets_its_death_signal_when_the_spawning_thread_ends", parent_death),
        test("a_forked_child_runs_a_function_on_a_large_stack", pre_exec),
        test("an_error_of_the_pre_exec_function_is_reported", pre_exec_fails),
        test("a_pre_exec_function_runs_after_the_fork_handlers", pre_exec_after_handlers),
        test("a_detached_start_keeps_the_callers_record_locks", record_locks),
        test("a_child_is_created_in_its_cgroup", move || {
            run_alone(in_mounts, "in_a_cgroup").unwrap();
        })
        .needs(&[Need::Root, Need::Cgroup]),
        test("in_a_cgroup", cgroup).inner(),
    ]
}

fn stdout_of(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn arguments() {
    let mut command = shell("printf '%s|' \"$0\" \"$@\" \"$A\" \"$B\" \"${HOME-none}\"");
    command.args(["zero", "", "two words", "\u{e4}"]).env("A", "1").envs([("B", "x=y")]).env_remove("HOME");
    assert_eq!(stdout_of(&mut command), "zero||two words|\u{e4}|1|x=y|none|");
    assert_eq!(stdout_of(Command::new("/usr/bin/env").env_clear().env("ONLY", "this")), "ONLY=this\n");
    assert_eq!(stdout_of(Command::new("/bin/sh").arg0("name").args(["-c", "echo $0"])), "name\n");
}

fn directory() {
    let directory = TempDir::new().unwrap();
    let ours = (std::env::current_dir().unwrap(), stdout_of(&mut shell("umask")));
    let mut command = shell("pwd -P; umask");
    let expected = format!("{}\n0137\n", directory.path().canonicalize().unwrap().display());
    assert_eq!(stdout_of(command.current_dir(directory.path()).umask(0o137)), expected);
    assert_eq!((std::env::current_dir().unwrap(), stdout_of(&mut shell("umask"))), ours);
}

fn limits() {
    let ours = stdout_of(&mut shell("ulimit -n; ulimit -c; nice"));
    let mut command = shell("ulimit -Sn; ulimit -Hn; ulimit -Sc; nice");
    command.resource_limit(libc::RLIMIT_NOFILE, 33, 44).resource_limit(libc::RLIMIT_CORE, 0, 0).nice(5);
    let niceness: i32 = stdout_of(&mut shell("nice")).trim().parse().unwrap();
    assert_eq!(stdout_of(&mut command), format!("33\n44\n0\n{}\n", (niceness + 5).min(19)));
    assert_eq!(stdout_of(&mut shell("ulimit -n; ulimit -c; nice")), ours);
    expect_error(shell("").resource_limit(1000, 1, 1).spawn(), Stage::ResourceLimit, libc::EINVAL);
    expect_error(shell("").resource_limit(libc::RLIMIT_CORE, 2, 1).spawn(), Stage::ResourceLimit, libc::EINVAL);
}

/// Runs `cat` on its own `stat` file. Returns its pid, process group and session.
fn ids(command: &mut Command) -> (i32, i32, i32) {
    let stat = stdout_of(command.args(["/proc/self/stat"]));
    let pid = stat.split(' ').next().unwrap().parse().unwrap();
    let fields: Vec<i32> =
        stat.rsplit(')').next().unwrap().split_whitespace().skip(2).map_while(|n| n.parse().ok()).collect();
    (pid, fields[0], fields[1])
}

fn cat() -> Command {
    Command::new("/bin/cat")
}

fn groups() {
    // SAFETY: integers.
    let (group, session) = unsafe { (libc::getpgrp(), libc::getsid(0)) };
    let (_, childs_group, childs_session) = ids(&mut cat());
    assert_eq!((childs_group, childs_session), (group, session));
    let (pid, childs_group, childs_session) = ids(cat().process_group(0));
    assert_eq!((childs_group, childs_session), (pid, session));
    let (pid, childs_group, childs_session) = ids(cat().new_session(true));
    assert_eq!((childs_group, childs_session), (pid, pid));
    let mut leader = Command::new("/bin/sleep").arg("1000").process_group(0).spawn().unwrap();
    let (_, childs_group, _) = ids(cat().process_group(leader.id() as i32));
    assert_eq!(childs_group, leader.id() as i32);
    leader.kill().unwrap();
    leader.wait().unwrap();
}

fn no_terminal() {
    expect_error(shell("").controlling_terminal(0).spawn(), Stage::ControllingTerminal, libc::ENOTTY);
}

fn parent_death() {
    let spawned = std::thread::spawn(|| {
        let mut command = Command::new("/bin/sleep");
        command.arg("1000").parent_death_signal(libc::SIGTERM).spawn().unwrap()
    });
    let mut child = spawned.join().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
    expect_error(shell("").parent_death_signal(1000).spawn(), Stage::ParentDeath, libc::EINVAL);
}

/// Uses more stack than a child that shares memory has.
fn use_stack() -> Result<(), i32> {
    let large = std::hint::black_box([1u8; 500_000]);
    let sum: u32 = large.iter().map(|byte| u32::from(*byte)).sum();
    if sum == 500_000 { Ok(()) } else { Err(libc::EIO) }
}

fn pre_exec() {
    let mut command = Command::new("/bin/true");
    // SAFETY: the function only uses its own stack.
    let command = unsafe { command.mechanism(Mechanism::Fork).pre_exec(use_stack) };
    assert!(command.status().unwrap().success());
    let captured = command.stdout(Stdio::piped()).output().unwrap();
    assert!(captured.status.success());
}

fn pre_exec_after_handlers() {
    static HANDLED: AtomicBool = AtomicBool::new(false);
    extern "C" fn handle() {
        HANDLED.store(true, Ordering::Relaxed);
    }
    // SAFETY: the handler stores a flag.
    assert_eq!(unsafe { libc::pthread_atfork(None, None, Some(handle)) }, 0);
    let mut command = Command::new("/bin/true");
    let check = || if HANDLED.load(Ordering::Relaxed) { Ok(()) } else { Err(libc::EPROTO) };
    // SAFETY: the function reads a flag.
    let command = unsafe { command.mechanism(Mechanism::Fork).pre_exec(check) };
    assert!(command.status().unwrap().success());
    assert!(!HANDLED.load(Ordering::Relaxed), "the handler runs in the child only");
}

/// A process loses its locks on a file when it closes any descriptor of that file. Another process
/// sees whether the lock is there.
fn record_locks() {
    let file = tempfile::tempfile().unwrap();
    // SAFETY: our own descriptors. This process runs one test.
    let saved = unsafe { OwnedFd::from_raw_fd(libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3)) };
    // SAFETY: as above; the structure is filled.
    unsafe {
        assert_eq!(libc::dup2(file.as_raw_fd(), 0), 0);
        let mut lock: libc::flock = std::mem::zeroed();
        lock.l_type = libc::F_WRLCK as i16;
        assert_eq!(libc::fcntl(0, libc::F_SETLK, &raw mut lock), 0);
    }
    let mut started = Command::new("/bin/true");
    started.stdin(Stdio::null()).close_others(true).spawn_nowait().unwrap().wait().unwrap();
    let holders = std::fs::read_to_string("/proc/locks").unwrap();
    let ours = format!(" {} ", std::process::id());
    // SAFETY: our own descriptors.
    assert_eq!(unsafe { libc::dup2(saved.as_raw_fd(), 0) }, 0);
    assert!(holders.lines().any(|line| line.contains("POSIX") && line.contains(&ours)), "{holders}");
}

fn pre_exec_fails() {
    for (given, expected) in [(libc::EXDEV, libc::EXDEV), (0, libc::ECANCELED)] {
        let mut command = Command::new("/bin/true");
        // SAFETY: the function only returns an error.
        let command = unsafe { command.mechanism(Mechanism::Fork).pre_exec(move || Err(given)) };
        let error = expect_error(command.spawn(), Stage::PreExec, expected);
        assert_eq!(error.action(), "run the pre_exec function");
    }
}

fn cgroup() {
    let group = TempDir::new_in("/mnt").unwrap();
    let name = group.path().file_name().unwrap().to_str().unwrap().to_owned();
    let mut command = Command::new("/bin/cat");
    command.arg("/proc/self/cgroup").cgroup(std::fs::File::open(group.path()).unwrap());
    // With a `pre_exec` function, the child moves itself there.
    for forks in [false, true] {
        if forks {
            // SAFETY: the function does nothing.
            unsafe { command.mechanism(Mechanism::Fork).pre_exec(|| Ok(())) };
        }
        let cgroups = stdout_of(&mut command);
        let is_in_group = cgroups.lines().any(|line| line.starts_with("0::") && line.ends_with(&name));
        assert!(is_in_group, "{cgroups}");
    }
    let path = group.keep();
    std::fs::remove_dir(&path).unwrap();
    expect_error(
        Command::new("/bin/true").cgroup(std::fs::File::open("/tmp").unwrap()).spawn(),
        Stage::Clone,
        libc::EBADF,
    );
}
