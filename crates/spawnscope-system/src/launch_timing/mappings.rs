//! Mappings of memory of a known size, whose pages are populated on request.

use std::ffi::{c_int, c_void};
use std::io;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU8, Ordering};

/// The size of a small page. If the machine's pages are larger, each is touched several times.
pub const PAGE_BYTES: usize = 4096;

/// A mapping that no other code unmaps. Dropping this value unmaps it.
#[derive(Debug)]
pub struct Memory {
    start: *mut u8,
    bytes: usize,
    /// The start and size of the whole mapping, which is larger than the memory if the memory is
    /// aligned.
    mapping: (*mut u8, usize),
}

impl Memory {
    pub fn map(bytes: usize) -> io::Result<Memory> {
        Memory::map_with(bytes, libc::MAP_PRIVATE)
    }

    /// Maps anonymous memory whose start and size are multiples of `alignment`, as huge pages
    /// require.
    pub fn map_aligned(bytes: usize, alignment: usize) -> io::Result<Memory> {
        let bytes = bytes.next_multiple_of(alignment);
        let mapped = Memory::map(bytes + alignment)?;
        let offset = mapped.start.align_offset(alignment);
        Ok(Memory {
            start: mapped.start.wrapping_add(offset),
            bytes,
            mapping: std::mem::ManuallyDrop::new(mapped).mapping,
        })
    }

    pub(super) fn map_with(bytes: usize, sharing: c_int) -> io::Result<Memory> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, sharing | libc::MAP_ANONYMOUS);
        // SAFETY: requests new memory, which does not affect existing mappings.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = start.cast();
        Ok(Memory { start, bytes, mapping: (start, bytes) })
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// The address after the last byte.
    pub fn end(&self) -> *mut c_void {
        self.start.wrapping_add(self.bytes).cast()
    }

    /// Advises the kernel about the memory (madvise(2)).
    pub fn advise(&self, advice: c_int) -> io::Result<()> {
        // SAFETY: the range is our own mapping. Discarded content would read as zeroes, which are
        // valid bytes.
        match unsafe { libc::madvise(self.start.cast(), self.bytes, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub fn populate(&self) {
        // MADV_POPULATE_WRITE (Linux 5.14) takes half as long as writing the pages one by one.
        if self.advise(libc::MADV_POPULATE_WRITE).is_err() {
            self.write();
        }
    }

    pub fn write(&self) {
        self.write_first(self.bytes);
    }

    pub fn write_first(&self, bytes: usize) {
        self.pages(bytes).for_each(|byte| byte.store(1, Ordering::Relaxed));
    }

    /// Returns the first byte of each page of the first `bytes` bytes.
    fn pages(&self, bytes: usize) -> impl Iterator<Item = &AtomicU8> {
        // SAFETY: within the mapping, which lives as long as `self`; atomic bytes have the
        // alignment of bytes.
        (0..bytes.min(self.bytes))
            .step_by(PAGE_BYTES)
            .map(|offset| unsafe { &*self.start.wrapping_add(offset).cast::<AtomicU8>() })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no longer borrowed.
        unsafe { libc::munmap(self.mapping.0.cast(), self.mapping.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(memory: &Memory) -> Vec<bool> {
        let mut pages = vec![0u8; memory.bytes / PAGE_BYTES];
        // SAFETY: the range is mapped, and there is one byte for each of its pages.
        let result = unsafe { libc::mincore(memory.start.cast(), memory.bytes, pages.as_mut_ptr()) };
        assert_eq!(result, 0);
        pages.iter().map(|page| page & 1 == 1).collect()
    }

    #[test]
    fn pages_are_populated_on_request() {
        let memory = Memory::map(4 * PAGE_BYTES).unwrap();
        memory.advise(libc::MADV_NOHUGEPAGE).unwrap();
        assert_eq!(resident(&memory), [false; 4]);
        memory.write_first(2 * PAGE_BYTES);
        assert_eq!(resident(&memory), [true, true, false, false]);
        memory.populate();
        assert_eq!(resident(&memory), [true; 4]);
    }

    #[test]
    fn aligned_memory_is_within_its_mapping() {
        const ALIGNMENT: usize = 2 << 20;
        let memory = Memory::map_aligned(ALIGNMENT + 1, ALIGNMENT).unwrap();
        assert_eq!((memory.start as usize % ALIGNMENT, memory.bytes), (0, 2 * ALIGNMENT));
        assert!(memory.end() as usize <= memory.mapping.0 as usize + memory.mapping.1);
        memory.write();
    }
}
