//! Children that are stopped, killed, or blocked between clone and exec, and handles that are
//! dropped at that moment. A seccomp filter asks the test for a decision about each exec, so the
//! timing is exact.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use vspawn::{Command, Mechanism, Stage};

use crate::support::needs::Need;
use crate::support::seccomp::{PendingCall, ask, call};
use crate::support::state::{State, field, mappings};
use crate::support::{Test, kernel, test};

pub fn tests() -> Vec<Test> {
    let tests = vec![
        test("a_child_stopped_before_its_exec_starts_when_continued", stopped),
        test("a_detached_child_stopped_before_its_exec_does_not_stop_the_parent", stopped_detached),
        test("a_child_killed_before_its_exec_is_reported_as_killed", killed),
        test("a_detached_child_that_is_held_is_neither_started_nor_ended", held_detached),
        test("children_dropped_before_their_exec_keep_their_memory_until_they_leave_it", dropped),
        test("a_process_forked_before_a_childs_exec_does_not_wait_for_it_forever", forked_meanwhile),
        test("a_change_of_user_does_not_wait_for_another_threads_exec", change_of_user)
            .needs(&[Need::Root, Need::Realtime]),
        test("a_process_forked_during_a_change_of_user_is_dumpable", forked_during_change).needs(&[Need::Root]),
        test("signal_group_waits_until_the_childs_group_exists", group_in_flight),
    ];
    tests.into_iter().map(Test::changes_its_process).collect()
}

const EXEC: libc::c_long = libc::SYS_execve;

/// Returns the state letter of a process.
fn process_state(pid: u32) -> char {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    field(&status, "State").chars().next().unwrap()
}

fn wait_until(mut condition: impl FnMut() -> bool) {
    let mut tries = 0;
    while !condition() {
        tries += 1;
        assert!(tries < 20_000, "the condition never became true");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Installs a filter that stops the first process that calls exec. The kernel restarts the call
/// once the process continues. The returned value becomes the pid of the stopped process.
fn stop_at_first_exec() -> Arc<AtomicU32> {
    let stopped = Arc::new(AtomicU32::new(0));
    let first_pid = Arc::clone(&stopped);
    ask(&[call(EXEC)], move |waiting| {
        let pid = waiting.pid;
        if first_pid.swap(pid, SeqCst) != 0 {
            return waiting.allow();
        }
        // The stop interrupts the process's wait for an answer.
        kernel::kill(pid as i32, libc::SIGSTOP);
    });
    stopped
}

fn stopped() {
    let stopped = stop_at_first_exec();
    let before = State::now();
    let continuing = std::thread::spawn(move || {
        wait_until(|| stopped.load(SeqCst) != 0);
        let pid = stopped.load(SeqCst);
        wait_until(|| process_state(pid) == 'T');
        kernel::kill(pid as i32, libc::SIGCONT);
    });
    let mut child = Command::new("/bin/true").spawn().unwrap();
    assert!(child.wait().unwrap().success());
    continuing.join().unwrap();
    drop(child);
    assert_eq!(before, State::now());
}

fn stopped_detached() {
    let stopped = stop_at_first_exec();
    let mut child = Command::new("/bin/true").spawn_nowait().unwrap();
    wait_until(|| stopped.load(SeqCst) != 0 && process_state(child.id()) == 'T');
    assert_eq!(child.try_wait().unwrap(), None);
    assert_eq!(child.wait_timeout(Duration::from_millis(30)).unwrap(), None);
    // Another child is not affected.
    assert!(Command::new("/bin/true").status().unwrap().success());
    child.signal(libc::SIGCONT).unwrap();
    child.started().unwrap();
    assert!(child.wait().unwrap().success());
}

/// A child that was killed before its exec is not reported as failed, however it was started.
fn killed() {
    ask(&[call(EXEC)], |waiting| kernel::kill(waiting.pid as i32, libc::SIGKILL));
    let before = State::now();
    for mechanism in [Mechanism::Share, Mechanism::Fork] {
        let mut child = Command::new("/bin/true").mechanism(mechanism).spawn().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    }
    let mut child = Command::new("/bin/true").spawn_nowait().unwrap();
    child.started().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGKILL));
    drop(child);
    assert_eq!(before, State::now());
}

/// Installs a filter that blocks each exec until the returned flag is set.
fn block_execs() -> Arc<AtomicBool> {
    let open = Arc::new(AtomicBool::new(false));
    let is_open = Arc::clone(&open);
    ask(&[call(EXEC)], move |waiting: PendingCall<'_>| {
        wait_until(|| is_open.load(SeqCst));
        waiting.allow();
    });
    open
}

fn held_detached() {
    let open = block_execs();
    let mut child = Command::new("/bin/true").spawn_nowait().unwrap();
    assert_eq!(child.try_wait().unwrap(), None);
    assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
    let opener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        open.store(true, SeqCst);
    });
    child.started().unwrap();
    assert!(child.wait().unwrap().success());
    opener.join().unwrap();
    // A child that is killed while it is held.
    let mut child = Command::new("/bin/true").spawn_nowait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The strings and stacks of dropped children must not be reused. Each child creates a file with
/// its own number, and fails if a string is corrupted.
fn dropped() {
    let directory = tempfile::TempDir::new().unwrap();
    let open = block_execs();
    let numbers = 0..200u32;
    for number in numbers.clone() {
        let file = directory.path().join(number.to_string());
        drop(Command::new("/usr/bin/touch").arg(file).spawn_nowait().unwrap());
    }
    let while_held = mappings();
    assert!(while_held > 200, "each has a stack of its own: {while_held}");
    open.store(true, SeqCst);
    for _ in numbers.clone() {
        assert_eq!(kernel::reap_any().unwrap().1, 0);
    }
    assert!(numbers.clone().all(|number| directory.path().join(number.to_string()).exists()));
    // The next spawn frees the memory, except for the cached stacks.
    assert!(Command::new("/bin/true").status().unwrap().success());
    assert!(mappings() < while_held / 2 + 100, "{} after {while_held}", mappings());
}

/// The kernel clears the word that shows whether the child still uses the parent's memory only in
/// the parent itself. In a fork of the parent, `wait` relies on the end of the child instead.
fn forked_meanwhile() {
    let open = block_execs();
    let mut child = Command::new("/bin/true").spawn_nowait().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    // SAFETY: the forked process only makes raw calls, waits and ends.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        drop(writer);
        let _ = std::io::Read::read(&mut reader, &mut [0]);
        let error = child.wait().map(drop).unwrap_err();
        let is_right = (error.stage(), error.raw_os_error()) == (Stage::Wait, libc::ECHILD);
        // SAFETY: ends the process.
        unsafe { libc::_exit(if is_right { 0 } else { 1 }) };
    }
    open.store(true, SeqCst);
    assert!(child.wait().unwrap().success());
    drop((reader, writer));
    assert_eq!(kernel::reap_any(), Some((forked, 0)));
}

/// Starts a thread whose child changes its user and is then held before its exec, until the
/// returned flag is set.
fn hold_child_after_change_of_user() -> (Arc<AtomicBool>, JoinHandle<()>) {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        sender.send(block_execs()).unwrap();
        let mut child = Command::new("/bin/true").uid(65534).spawn().unwrap();
        assert!(child.wait().unwrap().success());
    });
    let open = receiver.recv().unwrap();
    wait_until(|| kernel::dumpable() == 0);
    (open, thread)
}

/// Runs on one CPU with a real-time policy. If this thread waited by yielding, the child of the
/// other thread would never get the CPU for its exec.
fn change_of_user() {
    kernel::stay_on_one_cpu();
    let (open, thread) = hold_child_after_change_of_user();
    kernel::become_real_time();
    let begin = kernel::thread_cpu_time();
    for _ in 0..10 {
        assert!(Command::new("/bin/true").uid(65533).status().unwrap().success());
        assert_eq!(kernel::dumpable(), 0, "the other child still runs in this memory");
    }
    let used = kernel::thread_cpu_time() - begin;
    assert!(used < Duration::from_millis(500), "{used:?} of CPU time");
    open.store(true, SeqCst);
    thread.join().unwrap();
    assert_eq!(kernel::dumpable(), 1);
    assert!(Command::new("/bin/true").uid(65533).status().unwrap().success());
    assert_eq!(kernel::dumpable(), 1);
}

fn forked_during_change() {
    let (open, thread) = hold_child_after_change_of_user();
    let found = kernel::run_in_fork(|| {
        let inherited = kernel::dumpable();
        let spawned = Command::new("/bin/true").uid(65533).status().is_ok_and(|status| status.success());
        i32::from(!(inherited == 1 && spawned && kernel::dumpable() == 1))
    });
    assert_eq!(found, 0);
    open.store(true, SeqCst);
    thread.join().unwrap();
    assert_eq!(kernel::dumpable(), 1);
}

fn group_in_flight() {
    let (sender, receiver) = mpsc::channel();
    ask(&[call(libc::SYS_setpgid)], move |waiting| {
        std::thread::sleep(Duration::from_millis(50));
        sender.send(()).unwrap();
        waiting.allow();
    });
    let mut child = Command::new("/bin/sleep").arg("1000").process_group(0).spawn_nowait().unwrap();
    child.signal_group(libc::SIGTERM).unwrap();
    receiver.recv().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(libc::SIGTERM));
}
