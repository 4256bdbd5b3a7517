//! Wraps every call from C: catches panics, defers cancellation, and turns failures into error
//! codes.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::call_memory;
use crate::failure::{Failure, Stage};

/// The errno after a panic, which is a bug of this library.
pub(crate) const PANICKED: c_int = libc::ENOTRECOVERABLE;

/// Runs the body of a function that returns 0 or an errno.
pub(crate) fn entry(body: impl FnOnce() -> Result<(), Failure>) -> c_int {
    match run(body) {
        Ok(()) => 0,
        Err(errno) => errno,
    }
}

/// Runs the body of a function that returns another type, and sets errno on failure.
pub(crate) fn entry_or<T>(on_failure: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    run(body).unwrap_or_else(|errno| {
        set_errno(errno);
        on_failure
    })
}

fn run<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, c_int> {
    let _memory = call_memory::CallGuard::new();
    let _cancellation_disabled = CancellationGuard::new();
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Failure::new(Stage::None, PANICKED, text.unwrap_or("panic")))
    });
    result.map_err(|failure| {
        failure.record();
        failure.errno
    })
}

pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

unsafe extern "C" {
    /// Declared in pthread.h. The libc crate lacks it for glibc.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Disables cancellation of the thread: a cancellation unwinds the stack, which must not happen in
/// Rust frames.
struct CancellationGuard {
    before: c_int,
}

impl CancellationGuard {
    fn new() -> CancellationGuard {
        let mut before = 0;
        // SAFETY: stores into a local.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        CancellationGuard { before }
    }
}

impl Drop for CancellationGuard {
    fn drop(&mut self) {
        // SAFETY: a state that was set before; NULL stores nothing.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_errno() {
        assert_eq!(entry(|| panic!("on purpose")), PANICKED);
        let pointer: *mut u8 = entry_or(std::ptr::null_mut(), || panic!("{}", "on purpose"));
        assert!(pointer.is_null());
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!(errno, Some(PANICKED));
    }
}
