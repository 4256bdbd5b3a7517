//! Memory that a process shares with the processes it forks. Measuring children leave their times there, and the parent reads them
//! after the children have ended.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// A type that such memory may hold.
///
/// # Safety
/// All zeroes must be a valid value, and every field must be written atomically, since forked processes write at the same time.
pub unsafe trait Shareable {}

/// A mapping shared with forked processes, initially all zeroes.
#[derive(Debug)]
pub struct Shared<T: Shareable>(NonNull<T>, PhantomData<T>);

impl<T: Shareable> Shared<T> {
    /// Creates the mapping.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn map() -> io::Result<Shared<T>> {
        // SAFETY: requests new memory and touches no existing mapping.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(address.cast()) {
            Some(mapped) if address != libc::MAP_FAILED => Ok(Shared(mapped, PhantomData)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl<T: Shareable> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping lives as long as `self` and is page-aligned. It is zeroed at first and written only atomically, as
        // `Shareable` requires.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Shareable> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it is left.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}
