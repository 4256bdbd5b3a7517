//! Limits how much of a file is read. The recorded program may have made the file, and a sparse or
//! compressed file can claim any size.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use object::{ReadCache, ReadRef};

/// The limit for reading one file, and for decompressing one of its sections: several times the
/// size of the unwind tables of a browser.
pub(super) const MAX_BYTES: u64 = 256 << 20;

/// A file from which only a limited number of bytes can be read.
#[derive(Clone, Copy)]
pub(super) struct BoundedFile<'c> {
    cache: &'c ReadCache<File>,
    /// Number of bytes that may still be read.
    left: &'c Cell<u64>,
}

impl<'c> BoundedFile<'c> {
    /// Wraps a file. At most `left` bytes can be read; each read subtracts its size from `left`.
    pub(super) fn new(cache: &'c ReadCache<File>, left: &'c Cell<u64>) -> BoundedFile<'c> {
        BoundedFile { cache, left }
    }
}

impl<'c> ReadRef<'c> for BoundedFile<'c> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'c [u8], ()> {
        let left = self.left.get().checked_sub(size).ok_or(())?;
        let bytes = self.cache.read_bytes_at(offset, size)?;
        self.left.set(left);
        Ok(bytes)
    }

    /// Reads up to a delimiter. This is not counted, because the cache itself stops after a few
    /// thousand bytes.
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'c [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}
