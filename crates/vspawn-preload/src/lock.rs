//! The lock of `popen` and `system`. It contains the pid of the process that holds it, so that a
//! process that is forked while another thread holds the lock does not wait forever.

use core::sync::atomic::{AtomicI32, Ordering};

pub struct Lock {
    holder: AtomicI32,
}

pub struct LockGuard<'a>(&'a Lock);

impl Lock {
    pub const fn new() -> Lock {
        Lock { holder: AtomicI32::new(0) }
    }

    pub fn take(&self) -> LockGuard<'_> {
        // SAFETY: it only returns a number.
        let this_process = unsafe { libc::getpid() };
        let mut expected = 0;
        let exchange =
            |expected| self.holder.compare_exchange(expected, this_process, Ordering::Acquire, Ordering::Relaxed);
        while let Err(holder) = exchange(expected) {
            // Another process's pid was copied by a fork: take the lock from it.
            expected = if holder == this_process { 0 } else { holder };
            if holder == this_process {
                let pause = libc::timespec { tv_sec: 0, tv_nsec: 50_000 };
                // SAFETY: it only reads the time. The system call is not a cancellation point.
                unsafe {
                    libc::syscall(libc::SYS_nanosleep, &raw const pause, core::ptr::null_mut::<libc::timespec>())
                };
            }
        }
        LockGuard(self)
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.0.holder.store(0, Ordering::Release);
    }
}
