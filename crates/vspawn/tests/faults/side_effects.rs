//! Side effects that a spawn must not have: writing errno, flushing buffers, allocating, clearing
//! the dumpable flag, leaking memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tempfile::TempDir;
use vspawn::{Command, Stage, Stdio};

use crate::support::needs::Need;
use crate::support::state::mappings;
use crate::support::{Test, expect_error, kernel, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("children_that_fail_do_not_change_errno", errno),
        test("a_prepared_command_is_spawned_without_allocation", allocations),
        test("an_unchanged_environment_is_not_copied", unchanged_environment),
        test("a_child_does_not_write_the_parents_buffered_output", buffered_output),
        test("the_dumpable_flag_is_kept_when_a_child_changes_its_user", dumpable).needs(&[Need::Root]),
        test("the_dumpable_flag_is_kept_when_eight_threads_change_users", dumpable_threads).needs(&[Need::Root]),
        test("a_change_of_user_is_refused_for_a_detached_child", detached_user),
        test("children_dropped_before_their_exec_leak_no_memory", dropped),
    ]
}

/// Counts allocations of the whole process.
struct CountingAllocator;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the system's allocator, with a count.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The child runs at the same time as its parent and shares the parent's thread-local memory, so a
/// libc call in the child would write the parent's errno.
fn errno() {
    const UNTOUCHED: i32 = 12345;
    let missing = Command::new("/nowhere/x").prepare().unwrap();
    let searched = Command::new("nowhere").env("PATH", "/a:/b:/c:/bin").prepare().unwrap();
    let mut bad_directory = Command::new("/bin/true");
    let bad_directory = bad_directory.current_dir("/nowhere").close_others(true).prepare().unwrap();
    kernel::set_errno(UNTOUCHED);
    for _ in 0..500 {
        for prepared in [&missing, &searched, &bad_directory] {
            let mut child = prepared.spawn_nowait().unwrap();
            assert_eq!(kernel::errno(), UNTOUCHED);
            assert!(child.started().is_err());
            assert_eq!(kernel::errno(), UNTOUCHED);
        }
        assert!(missing.spawn().is_err());
        assert_eq!(kernel::errno(), UNTOUCHED);
    }
}

fn allocations() {
    let mut command = Command::new("true");
    command.env("A", "b").current_dir("/").close_others(true).umask(0o22).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let prepared = command.prepare().unwrap();
    prepared.spawn().unwrap().wait().unwrap();
    let before = ALLOCATIONS.load(Relaxed);
    for _ in 0..100 {
        let mut child = prepared.spawn().unwrap();
        child.wait().unwrap();
        let mut child = prepared.spawn_nowait().unwrap();
        child.started().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(ALLOCATIONS.load(Relaxed) - before, 0);
}

/// Returns the number of allocations of a spawn, and the number of lines that the child printed.
fn allocated(command: &mut Command) -> (usize, usize) {
    let before = ALLOCATIONS.load(Relaxed);
    let mut child = command.spawn().unwrap();
    let count = ALLOCATIONS.load(Relaxed) - before;
    let printed = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    assert!(child.wait().unwrap().success());
    (count, printed.lines().count())
}

/// A thousand more variables reach the child, and cost no allocation.
fn unchanged_environment() {
    let mut command = Command::new("env");
    command.stdout(Stdio::piped());
    let (few, variables) = allocated(&mut command);
    for index in 0..1000 {
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var(format!("VARIABLE_{index}"), "value") };
    }
    assert_eq!(allocated(&mut command), (few, variables + 1000));
    // If there is another thread, which might change a variable, the variables are copied, unless
    // the caller excludes such changes.
    let (sender, receiver) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || receiver.recv());
    assert!(allocated(Command::new("env").stdout(Stdio::piped())).0 > few);
    let mut unlocked = Command::new("env");
    // SAFETY: the other thread changes no variable.
    unsafe { unlocked.stdout(Stdio::piped()).env_unlocked() };
    assert_eq!(allocated(&mut unlocked), (few, variables + 1000));
    drop(sender);
    assert!(other.join().unwrap().is_err());
    // A command that changes the environment still works.
    let (_, changed) = allocated(command.env("ONE_MORE", "x"));
    assert_eq!(changed, variables + 1001);
    let (_, cleared) = allocated(Command::new("/usr/bin/env").env_clear().stdout(Stdio::piped()));
    assert_eq!(cleared, 0);
    // SAFETY: as above. The kernel gets an empty array.
    unsafe { libc::clearenv() };
    let (_, none) = allocated(Command::new("/usr/bin/env").stdout(Stdio::piped()));
    assert_eq!(none, 0);
}

/// In popen_noshell, a child that failed called libc's exit functions, so the parent's buffered
/// output went into the pipe.
fn buffered_output() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("childs");
    // SAFETY: a constant format.
    unsafe { libc::printf(c"printed before the spawn".as_ptr()) };
    for program in ["/nowhere", "/bin/true"] {
        let file = File::options().append(true).create(true).open(&path).unwrap();
        let mut command = Command::new(program);
        command.stdout(Stdio::from(file));
        let _ = command.spawn().map(|mut child| child.wait());
        let _ = command.spawn_nowait().map(|mut child| child.wait());
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"");
}

fn dumpable() {
    let mut as_nobody = Command::new("/bin/true");
    let as_nobody = as_nobody.uid(65534).gid(65534).prepare().unwrap();
    let mut fails_later = Command::new("/bin/true");
    let fails_later = fails_later.uid(65534).current_dir("/nowhere").prepare().unwrap();
    let mut fails_at_exec = Command::new("/nowhere");
    let fails_at_exec = fails_at_exec.gid(65534).prepare().unwrap();
    for flag in [1, 0, 1] {
        kernel::set_dumpable(flag);
        assert!(as_nobody.spawn().unwrap().wait().unwrap().success());
        assert_eq!(kernel::dumpable(), flag);
        assert_eq!(fails_later.spawn().unwrap_err().stage(), Stage::Chdir);
        assert_eq!(kernel::dumpable(), flag);
        assert_eq!(fails_at_exec.spawn().unwrap_err().stage(), Stage::Exec);
        assert_eq!(kernel::dumpable(), flag);
    }
}

fn dumpable_threads() {
    let mut command = Command::new("/bin/true");
    let prepared = command.uid(65534).prepare().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..100 {
                    assert!(prepared.spawn().unwrap().wait().unwrap().success());
                }
            });
        }
    });
    assert_eq!(kernel::dumpable(), 1);
}

fn detached_user() {
    let mut command = Command::new("/bin/true");
    let error = expect_error(command.uid(65534).spawn_nowait(), Stage::Prepare, libc::EINVAL);
    assert_eq!(error.action(), "change the user or group without waiting for exec: use spawn, not spawn_nowait");
}

fn dropped() {
    let works = Command::new("/bin/true").prepare().unwrap();
    let fails = Command::new("/nowhere").prepare().unwrap();
    let before = mappings();
    for _ in 0..30 {
        for _ in 0..25 {
            drop(works.spawn_nowait().unwrap());
            drop(fails.spawn_nowait().unwrap());
        }
        (0..50).for_each(|_| assert!(kernel::reap_any().is_some()));
    }
    assert!(!kernel::has_children());
    assert!(works.spawn().unwrap().wait().unwrap().success());
    // Up to 64 stacks are cached, with two mappings each.
    assert!(mappings() <= before + 2 * 64 + 2, "{} mappings, {before} before", mappings());
}
