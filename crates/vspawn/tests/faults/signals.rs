//! A stream of signals to the parent while it spawns: its handlers run only in the parent, and its
//! mask is unchanged.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use vspawn::{Command, Stdio};

use crate::support::state::{State, status_field};
use crate::support::{Test, kernel, test};

pub fn tests() -> Vec<Test> {
    let tests = vec![
        test("handlers_run_only_in_the_parent_during_thousands_of_spawns", || {
            spawn_under_signals(false);
        }),
        test("handlers_run_only_in_the_parent_without_clone3", || {
            spawn_under_signals(true);
        }),
        test("a_spawn_does_not_change_the_callers_mask", mask),
        test("waits_and_captures_continue_after_a_signal", interrupted),
    ];
    tests.into_iter().map(Test::changes_its_process).collect()
}

static SPAWNING_THREAD: AtomicU32 = AtomicU32::new(0);
static HANDLED: AtomicU32 = AtomicU32::new(0);
static HANDLED_ELSEWHERE: AtomicU32 = AtomicU32::new(0);

/// Counts the calls in the spawning thread and elsewhere. A child would count in the same memory.
extern "C" fn count(_: i32) {
    // SAFETY: raw calls, which do not use libc's cached values.
    let (pid, tid) = unsafe { (libc::syscall(libc::SYS_getpid), libc::syscall(libc::SYS_gettid)) };
    let own = SPAWNING_THREAD.load(SeqCst);
    // The first thread is the one that spawns.
    let is_ours = pid as u32 == own && tid as u32 == own;
    if is_ours { &HANDLED } else { &HANDLED_ELSEWHERE }.fetch_add(1, SeqCst);
}

/// Sends signals to this thread as fast as another thread can, and to the whole process group,
/// while `run` runs.
fn while_signals_arrive(run: impl FnOnce()) {
    let own = std::process::id() as i32;
    SPAWNING_THREAD.store(own as u32, SeqCst);
    for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGRTMIN()] {
        kernel::set_handler(signal, count as *const () as usize);
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel();
        let over = &over;
        scope.spawn(move || {
            kernel::block_all_signals();
            sender.send(()).unwrap();
            while !over.load(SeqCst) {
                for signal in [libc::SIGUSR1, libc::SIGUSR2, libc::SIGRTMIN()] {
                    kernel::signal_thread(own, signal);
                }
                std::thread::sleep(Duration::from_micros(20));
            }
        });
        receiver.recv().unwrap();
        kernel::set_interval_timer(Duration::from_micros(500));
        run();
        kernel::set_interval_timer(Duration::ZERO);
        over.store(true, SeqCst);
    });
}

fn spawn_under_signals(without_clone3: bool) {
    let mut command = Command::new("/bin/true");
    let prepared = command.stdin(Stdio::null()).prepare().unwrap();
    let missing = Command::new("/nowhere").prepare().unwrap();
    if without_clone3 {
        crate::support::seccomp::refuse(&[(crate::support::seccomp::call(libc::SYS_clone3), libc::ENOSYS)]);
    }
    let before = State::now().files;
    let mask = status_field("SigBlk");
    while_signals_arrive(|| {
        for round in 0..3000 {
            match round % 8 {
                0 => assert!(prepared.spawn().unwrap().wait().unwrap().success()),
                1 => assert!(prepared.spawn_nowait().unwrap().wait().unwrap().success()),
                2..5 => assert!(missing.spawn().is_err()),
                _ => assert!(missing.spawn_nowait().unwrap().wait().is_err()),
            }
            if round % 100 == 0 {
                assert_eq!(status_field("SigBlk"), mask);
            }
        }
    });
    assert_eq!(HANDLED_ELSEWHERE.load(SeqCst), 0);
    assert!(HANDLED.load(SeqCst) > 300, "{HANDLED:?}");
    assert_eq!(State::now().files, before);
    assert!(!kernel::has_children());
}

/// The caller's blocked signals stay blocked, signals that arrive during the spawn are delivered
/// after it, and the child gets none.
fn mask() {
    SPAWNING_THREAD.store(std::process::id(), SeqCst);
    kernel::set_handler(libc::SIGUSR1, count as *const () as usize);
    kernel::block(libc::SIGUSR1);
    kernel::signal_thread(std::process::id() as i32, libc::SIGUSR1);
    let before = status_field("SigBlk");
    let output = Command::new("/bin/cat").arg("/proc/self/status").output().unwrap();
    let childs = String::from_utf8(output.stdout).unwrap();
    assert_eq!(crate::support::state::field(&childs, "SigBlk"), "0000000000000000");
    assert_eq!(crate::support::state::field(&childs, "SigPnd"), "0000000000000000");
    assert!(Command::new("/nowhere").spawn().is_err());
    assert!(Command::new("/nowhere").spawn_nowait().unwrap().wait().is_err());
    assert_eq!(status_field("SigBlk"), before);
    assert_eq!(HANDLED.load(SeqCst), 0);
    kernel::unblock(libc::SIGUSR1);
    assert_eq!(HANDLED.load(SeqCst), 1);
}

fn interrupted() {
    while_signals_arrive(|| {
        let input = vec![b'x'; 3_000_000];
        let output = Command::new("/bin/cat").capture().input(&input).run().unwrap();
        assert!(output.stdout == input);
        let mut child = Command::new("/bin/sleep").arg("1").spawn().unwrap();
        assert_eq!(child.wait_timeout(Duration::from_millis(20)).unwrap(), None);
        assert!(child.wait_timeout(Duration::from_secs(100)).unwrap().unwrap().success());
        let mut child = Command::new("/bin/sleep").arg("0.1").spawn_nowait().unwrap();
        assert!(child.wait().unwrap().success());
    });
    assert_eq!(HANDLED_ELSEWHERE.load(SeqCst), 0);
}
