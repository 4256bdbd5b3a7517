//! Threads that are cancelled while they spawn. The cancellation acts before or after a spawn,
//! never within it.

use std::ffi::c_void;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use vspawn::{Command, Mechanism, Prepared};

use crate::support::state::status_field;
use crate::support::{Test, kernel, test};

pub fn tests() -> Vec<Test> {
    vec![
        test("a_thread_with_deferred_cancellation_finishes_its_spawn", || cancelled(false)),
        test("a_thread_with_asynchronous_cancellation_finishes_its_spawn", || cancelled(true)),
        test("a_spawn_restores_the_cancellation_state", state_of_cancellation),
    ]
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
    fn pthread_setcanceltype(kind: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

unsafe extern "C" {
    fn pthread_cancel(thread: libc::pthread_t) -> libc::c_int;
    fn pthread_key_create(key: *mut libc::pthread_key_t, end: Option<extern "C" fn(*mut c_void)>) -> libc::c_int;
    fn pthread_setspecific(key: libc::pthread_key_t, value: *const c_void) -> libc::c_int;
}

const ASYNCHRONOUS: libc::c_int = 1;
const DEFERRED: libc::c_int = 0;
const ENABLED: libc::c_int = 0;
const DISABLED: libc::c_int = 1;

static SPAWNED: AtomicU32 = AtomicU32::new(0);
static WAS_MASK_EMPTY: AtomicBool = AtomicBool::new(false);

struct Spawner {
    prepared: Prepared,
    asynchronous: bool,
    key: libc::pthread_key_t,
}

/// Runs when the thread ends, and records whether the cancellation has left all signals unblocked.
extern "C" fn record_mask(_: *mut c_void) {
    WAS_MASK_EMPTY.store(status_field("SigBlk") == "0000000000000000", SeqCst);
}

/// Spawns until it is cancelled. "C-unwind", since glibc cancels by unwinding.
extern "C-unwind" fn spawn_forever(spawner: *mut c_void) -> *mut c_void {
    // SAFETY: the spawner outlives the thread, which is joined; the calls get valid arguments. Only
    // the spawn runs while asynchronous cancellation is enabled.
    unsafe {
        let spawner = &*spawner.cast::<Spawner>();
        pthread_setspecific(spawner.key, std::ptr::from_ref(spawner).cast());
        let mut before = 0;
        loop {
            if spawner.asynchronous {
                pthread_setcanceltype(ASYNCHRONOUS, &raw mut before);
            }
            let child = spawner.prepared.spawn();
            pthread_setcanceltype(DEFERRED, &raw mut before);
            // Dropping a handle calls `close`, a cancellation point. A cancellation there would
            // leave the file open.
            pthread_setcancelstate(DISABLED, &raw mut before);
            if let Ok(mut child) = child {
                let _ = child.wait();
            }
            SPAWNED.fetch_add(1, SeqCst);
            pthread_setcancelstate(ENABLED, &raw mut before);
            pthread_testcancel();
        }
    }
}

/// Cancels the thread in the middle of its spawn, while the `pre_exec` function in the child waits
/// for a byte.
fn cancelled(asynchronous: bool) {
    let (reader, writer) = std::io::pipe().unwrap();
    let (hook_reader, hook_writer) = std::io::pipe().unwrap();
    let hook = move || {
        let mut byte = 0u8;
        // SAFETY: one byte each, in the forked child.
        unsafe {
            libc::write(hook_writer.as_raw_fd(), (&raw const byte).cast(), 1);
            libc::read(reader.as_raw_fd(), (&raw mut byte).cast(), 1);
        }
        Ok(())
    };
    let mut command = Command::new("/bin/true");
    // SAFETY: the hook makes only system calls.
    let prepared = unsafe { command.mechanism(Mechanism::Fork).pre_exec(hook).prepare().unwrap() };
    drop(command);
    let mut key = 0;
    // SAFETY: stores a key; the function stays valid.
    assert_eq!(unsafe { pthread_key_create(&raw mut key, Some(record_mask)) }, 0);
    let mut spawner = Spawner { prepared, asynchronous, key };

    for _ in 0..10 {
        let files = crate::support::state::open_files();
        let mut thread: libc::pthread_t = 0;
        // SAFETY: the function's unwinding ends in glibc, which started it; the spawner outlives
        // the thread.
        unsafe {
            let run: extern "C" fn(*mut c_void) -> *mut c_void =
                std::mem::transmute(spawn_forever as extern "C-unwind" fn(*mut c_void) -> *mut c_void);
            let argument = (&raw mut spawner).cast();
            assert_eq!(libc::pthread_create(&raw mut thread, std::ptr::null(), run, argument), 0);
        }
        kernel::read_byte(&hook_reader);
        // SAFETY: the thread was not joined yet.
        assert_eq!(unsafe { pthread_cancel(thread) }, 0);
        std::thread::sleep(Duration::from_millis(5));
        kernel::write_byte(&writer);
        let mut result = std::ptr::null_mut();
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_join(thread, &raw mut result) }, 0);
        // The function never returns. After a cancellation by pthread_setcancelstate, glibc 2.36
        // does not return PTHREAD_CANCELED.
        assert!(result as isize == -1 || (asynchronous && result.is_null()));
        assert!(WAS_MASK_EMPTY.swap(false, SeqCst));
        assert_eq!(files, crate::support::state::open_files());
        // A thread that was cancelled asynchronously has dropped the handle, but its child is
        // complete.
        match asynchronous {
            true => assert_eq!(kernel::reap_any().expect("the child").1, 0),
            false => assert!(!kernel::has_children()),
        }
    }
    assert_eq!(SPAWNED.load(SeqCst), if asynchronous { 0 } else { 10 });
    assert!(Command::new("/bin/true").status().unwrap().success());
}

fn state_of_cancellation() {
    for state in [ENABLED, DISABLED] {
        let (mut before, mut after) = (0, 0);
        // SAFETY: stores the states in locals.
        unsafe {
            pthread_setcancelstate(state, &raw mut before);
            assert!(Command::new("/bin/true").status().unwrap().success());
            assert!(Command::new("/nowhere").spawn().is_err());
            pthread_setcancelstate(before, &raw mut after);
        }
        assert_eq!(after, state);
    }
}
