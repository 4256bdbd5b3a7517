//! Memory that a process shares with the processes that it forks. Measuring processes store their
//! times in it, and the parent reads the times after these processes have ended.

use std::io;
use std::marker::PhantomData;
use std::ops::Deref;

use super::mappings::Memory;

/// A type that may be stored in shared memory.
///
/// # Safety
/// All zeroes must be a valid value, and every field must be written atomically, because several
/// processes may write at the same time.
pub unsafe trait Shareable {}

/// A mapping shared with forked processes, initially all zeroes.
#[derive(Debug)]
pub struct SharedMapping<T: Shareable>(Memory, PhantomData<T>);

impl<T: Shareable> SharedMapping<T> {
    pub fn map() -> io::Result<SharedMapping<T>> {
        Ok(SharedMapping(Memory::map_with(size_of::<T>(), libc::MAP_SHARED)?, PhantomData))
    }
}

impl<T: Shareable> Deref for SharedMapping<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the mapping lives as long as `self` and is page-aligned. It is zeroed at first
        // and written only atomically, as `Shareable` requires.
        unsafe { &*self.0.start().cast::<T>() }
    }
}
