//! Memory that a process shares with those it forks, to be left times in: what measures in small processes reads it there
//! once they are gone.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;

/// What such memory may hold.
///
/// # Safety
/// All zeroes must be a value, and everything in it must be written atomically only, since forks write it at the same time.
pub unsafe trait Shareable {}

/// A mapping that forks share; it is all zeroes at first.
#[derive(Debug)]
pub struct Shared<T: Shareable>(NonNull<T>, PhantomData<T>);

impl<T: Shareable> Shared<T> {
    /// Maps it.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn map() -> io::Result<Shared<T>> {
        // SAFETY: asks for new memory, which touches nothing that exists.
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
        // SAFETY: mapped as long as `self` lives, aligned as pages are; zeroed at first and written atomically only, as
        // `Shareable` promises.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Shareable> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody borrows it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<T>()) };
    }
}
