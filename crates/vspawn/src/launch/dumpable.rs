//! Restores the process's dumpable flag after children have changed their user. A `set*id` in a
//! child that shares memory also clears the flag for the parent. If it stayed cleared, the parent
//! could not be debugged, and its `/proc` files would belong to root.
//!
//! Among spawns that overlap, the first saves the flag and the last restores it, so that no spawn
//! waits for the exec of another. The flag is not restored earlier: while it is off, processes of a
//! child's new user cannot trace the child, whose memory is the parent's.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::guards::SignalGuard;
use crate::sys::{Errno, syscall};

/// The number of spawns in progress that change the user.
static IN_FLIGHT: AtomicU32 = AtomicU32::new(0);
/// The flag before the first spawn that is counted in `IN_FLIGHT`.
static SAVED_FLAG: AtomicUsize = AtomicUsize::new(UNKNOWN_FLAG);
/// The flag that the next forked process gets, stored just before the fork.
static FLAG_FOR_FORKS: AtomicUsize = AtomicUsize::new(UNKNOWN_FLAG);
const UNKNOWN_FLAG: usize = usize::MAX;

/// Counts one spawn that changes the user. When the last one is dropped, the flag is restored. All
/// signals must be blocked.
#[derive(Debug)]
pub(crate) struct DumpableGuard;

impl DumpableGuard {
    pub(crate) fn new() -> DumpableGuard {
        let _section = Section::enter();
        if IN_FLIGHT.load(Ordering::Relaxed) == 0 {
            SAVED_FLAG.store(dumpable(), Ordering::Relaxed);
        }
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        DumpableGuard
    }
}

impl Drop for DumpableGuard {
    fn drop(&mut self) {
        let _section = Section::enter();
        // In a process that was forked without libc's fork handlers, the count includes spawns of
        // the parent's other threads, which never end there.
        if IN_FLIGHT.load(Ordering::Relaxed) == 1 {
            set_dumpable(SAVED_FLAG.load(Ordering::Relaxed));
        }
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
    }
}

fn dumpable() -> usize {
    // SAFETY: reads a flag.
    unsafe { syscall!(SYS_prctl, libc::PR_GET_DUMPABLE, 0, 0, 0, 0) }.unwrap_or(1)
}

/// Sets the flag. The value 2 (readable by root only) cannot be set. If the flag was 2 before, the
/// child's change of user leaves it at 2.
fn set_dumpable(value: usize) {
    if value < 2 {
        // SAFETY: sets a flag.
        let _ = unsafe { syscall!(SYS_prctl, libc::PR_SET_DUMPABLE, value, 0, 0, 0) };
    }
}

/// Makes `fork` restore the flag in the new process, since another thread may fork while the flag
/// is off. Allocates once.
pub(crate) fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: both functions make system calls and touch atomics only. Without memory, forked
        // children keep the copied flag.
        let _ = unsafe { libc::pthread_atfork(Some(before_fork), None, Some(reset_in_forked_child)) };
    }
}

unsafe extern "C" fn before_fork() {
    // A signal handler must not interrupt its own thread within the section.
    let _blocked = SignalGuard::new();
    let _section = Section::enter();
    let value = match IN_FLIGHT.load(Ordering::Relaxed) {
        0 => dumpable(),
        _ => SAVED_FLAG.load(Ordering::Relaxed),
    };
    FLAG_FOR_FORKS.store(value, Ordering::Relaxed);
}

/// Resets the state in a forked process, in which the spawns of the parent's other threads do not
/// exist.
unsafe extern "C" fn reset_in_forked_child() {
    SECTION.store(0, Ordering::Relaxed);
    IN_FLIGHT.store(0, Ordering::Relaxed);
    let value = FLAG_FOR_FORKS.load(Ordering::Relaxed);
    if dumpable() != value {
        set_dumpable(value);
    }
}

/// The id of the thread that is in the critical section, which reads or writes `IN_FLIGHT` and the
/// flags; 0 if there is none. A futex with priority inheritance: a preempted thread of low priority
/// continues to run while one of high priority waits for it. The section lasts two system calls.
static SECTION: AtomicU32 = AtomicU32::new(0);

struct Section {
    thread: u32,
}

impl Section {
    fn enter() -> Section {
        // SAFETY: takes no arguments and cannot fail.
        let thread = unsafe { syscall!(SYS_gettid) }.unwrap_or_default() as u32;
        while let Err(word) = SECTION.compare_exchange(0, thread, Ordering::Acquire, Ordering::Relaxed) {
            if is_holder_gone(word & libc::FUTEX_TID_MASK, thread) {
                let taken = SECTION.compare_exchange(word, thread, Ordering::Acquire, Ordering::Relaxed);
                if taken.is_ok() {
                    break;
                }
                continue;
            }
            match wait_for_section() {
                Ok(()) => break,
                Err(libc::EINTR | libc::EAGAIN | libc::ESRCH) => {}
                // A seccomp filter may refuse these futexes: sleep, then try again.
                Err(_) => sleep(),
            }
        }
        Section { thread }
    }
}

/// Whether the thread that holds the section does not exist in this process. If so, this process
/// was forked, without libc's fork handlers, while another thread of the parent was in the section.
/// A holder with this thread's own id is such a thread, too.
fn is_holder_gone(holder: u32, this_thread: u32) -> bool {
    // SAFETY: integers; signal 0 only checks.
    let exists = unsafe { syscall!(SYS_tgkill, std::process::id(), holder, 0) };
    holder == this_thread || (holder != 0 && exists == Err(libc::ESRCH))
}

fn wait_for_section() -> Result<(), Errno> {
    let operation = libc::FUTEX_LOCK_PI | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is static; no timeout.
    unsafe { syscall!(SYS_futex, SECTION.as_ptr(), operation, 0, 0) }.map(drop)
}

fn sleep() {
    static MILLISECOND: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
    // SAFETY: a timespec, and NULL for the remaining time.
    let _ = unsafe { syscall!(SYS_nanosleep, &raw const MILLISECOND, 0) };
}

impl Drop for Section {
    fn drop(&mut self) {
        // If threads wait, FUTEX_WAITERS is set in the word, and the kernel passes the section to
        // one of them.
        if SECTION.compare_exchange(self.thread, 0, Ordering::Release, Ordering::Relaxed).is_err() {
            let operation = libc::FUTEX_UNLOCK_PI | libc::FUTEX_PRIVATE_FLAG;
            // SAFETY: the word is static.
            let _ = unsafe { syscall!(SYS_futex, SECTION.as_ptr(), operation) };
        }
    }
}
