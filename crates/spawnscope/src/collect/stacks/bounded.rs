//! How much is read of one file: whoever is recorded may have made it, and a sparse or compressed one claims any size.

use std::cell::Cell;
use std::fs::File;
use std::ops::Range;

use object::{ReadCache, ReadRef};

/// More than this is not read of a file, nor unpacked of a part of it: several times the unwind tables of a browser.
pub(super) const MOST_BYTES: u64 = 256 << 20;

/// A file of which only so much is read.
#[derive(Clone, Copy)]
pub(super) struct Bounded<'c> {
    cache: &'c ReadCache<File>,
    left: &'c Cell<u64>,
}

impl<'c> Bounded<'c> {
    /// Reads `left` bytes at most, and takes what it has read from it.
    pub(super) fn new(cache: &'c ReadCache<File>, left: &'c Cell<u64>) -> Bounded<'c> {
        Bounded { cache, left }
    }
}

impl<'c> ReadRef<'c> for Bounded<'c> {
    fn len(self) -> Result<u64, ()> {
        self.cache.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'c [u8], ()> {
        let left = self.left.get().checked_sub(size).ok_or(())?;
        let bytes = self.cache.read_bytes_at(offset, size)?;
        self.left.set(left);
        Ok(bytes)
    }

    /// The cache itself stops after a few thousand.
    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'c [u8], ()> {
        self.cache.read_bytes_at_until(range, delimiter)
    }
}
