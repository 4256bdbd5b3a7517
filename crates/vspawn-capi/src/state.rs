//! State that all threads of a process share: the streams of popen, and the signal dispositions
//! that `vspawn_system` must restore.
//!
//! A lock of the standard library would stay locked forever in a process forked by another thread.
//! This lock is taken during each fork (`pthread_atfork`), so that it is free and its data is
//! consistent in both processes.

use std::cell::UnsafeCell;
use std::ffi::c_int;

use libc::{SIGINT, SIGQUIT, sigaction};
use vspawn_core::Child;

pub(crate) const INTERRUPTS: [c_int; 2] = [SIGINT, SIGQUIT];

/// The dispositions of SIGINT and SIGQUIT before the first of the active calls.
pub(crate) struct SavedDispositions {
    /// The number of active calls.
    pub(crate) calls: usize,
    pub(crate) before: [sigaction; 2],
}

impl SavedDispositions {
    /// Restores the dispositions. Makes only system calls, because it also runs in a process that
    /// was just forked.
    pub(crate) fn restore(&self) {
        for (signal, before) in INTERRUPTS.into_iter().zip(&self.before) {
            // SAFETY: the action that was there before.
            unsafe { libc::sigaction(signal, before, std::ptr::null_mut()) };
        }
    }

    /// Ignores both signals.
    pub(crate) fn ignore_interrupts() -> SavedDispositions {
        let before = INTERRUPTS.map(|signal| {
            // SAFETY: an action of zeros has an empty mask; both are locals.
            unsafe {
                let (mut ignore, mut before): (sigaction, sigaction) = std::mem::zeroed();
                ignore.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(signal, &raw const ignore, &raw mut before);
                before
            }
        });
        SavedDispositions { calls: 0, before }
    }
}

/// The state that the lock guards.
pub(crate) struct State {
    /// Open streams by their address.
    pub(crate) streams: Vec<(usize, Child)>,
    /// Set while a thread is in `vspawn_system`.
    pub(crate) dispositions: Option<SavedDispositions>,
}

struct SharedState {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    state: UnsafeCell<State>,
}

// SAFETY: the state is only reached with the lock held.
unsafe impl Sync for SharedState {}

static SHARED: SharedState = SharedState {
    lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
    state: UnsafeCell::new(State { streams: Vec::new(), dispositions: None }),
};

extern "C" fn lock() {
    // SAFETY: a mutex that does not move. Locking a default mutex that the thread does not hold
    // cannot fail.
    unsafe { libc::pthread_mutex_lock(SHARED.lock.get()) };
}

extern "C" fn unlock() {
    // SAFETY: as above; this thread holds the mutex.
    unsafe { libc::pthread_mutex_unlock(SHARED.lock.get()) };
}

/// Runs in a forked process. If another thread was in `vspawn_system` during the fork, that call
/// never ends in this process, so its changes are undone here.
extern "C" fn unlock_in_child() {
    // SAFETY: the lock is held across the fork, and the child has no other thread.
    let dispositions = unsafe { (*SHARED.state.get()).dispositions.take() };
    if let Some(dispositions) = dispositions {
        dispositions.restore();
    }
    unlock();
}

extern "C" fn register() {
    // SAFETY: the functions exist as long as this library is loaded: glibc unregisters them when it
    // is unloaded. If there is no memory for the registration, forks work without it.
    unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(unlock_in_child)) };
}

/// Called when the library is loaded, before any thread can use it.
#[used]
#[unsafe(link_section = ".init_array")]
static REGISTER: extern "C" fn() = register;

struct LockGuard;

impl Drop for LockGuard {
    fn drop(&mut self) {
        unlock();
    }
}

/// Calls `use_state` with the lock held. `use_state` must be short, must not call `with_lock`
/// again, and must not fork.
pub(crate) fn with_lock<T>(use_state: impl FnOnce(&mut State) -> T) -> T {
    // Named here so that a static link with this function includes the constructor too.
    std::hint::black_box(&raw const REGISTER);
    lock();
    let _locked = LockGuard;
    // SAFETY: the lock is held, and not taken twice by one thread.
    use_state(unsafe { &mut *SHARED.state.get() })
}
