//! Keeps this library from aborting its host process when memory runs out. A call first reserves
//! the memory that it may need, or fails with ENOMEM. If the system has no memory left later, the
//! call's allocations use the reserved block (`call_memory`). Allocations for the text of an error
//! use a static reserve.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::call_memory;
use crate::failure::{Failure, Stage};

/// The bytes that each call reserves besides those for the caller's strings; more than any call
/// needs.
const CALL_BYTES: usize = 16 * 1024;

/// How many copies of a string may be in memory at once. A string is copied into the command, into
/// a copy of the command and into the plan; an array doubles as it grows, which copies it once
/// more.
const MAX_COPIES: usize = 5;

/// The bytes that a string needs besides its own, for its entries in two growing arrays.
pub(crate) const STRING_OVERHEAD_BYTES: usize = 96;

/// Reserves memory for this many more bytes from the caller, or fails.
pub(crate) fn reserve(bytes: usize) -> Result<(), Failure> {
    match call_memory::reserve(bytes, MAX_COPIES, CALL_BYTES) {
        true => Ok(()),
        false => Err(Failure::new(Stage::Prepare, libc::ENOMEM, "allocate memory for a request")),
    }
}

/// Reserves memory for a copy of the environment, or only of PATH if the environment is not copied.
pub(crate) fn reserve_environment(is_copied: bool) -> Result<(), Failure> {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: an array of strings, ended by NULL; NULL after clearenv. The caller changes no
    // variable now, as vspawn.h says.
    let bytes = unsafe {
        if is_copied {
            let mut next = environ;
            let mut bytes = 0;
            while !next.is_null() && !(*next).is_null() {
                bytes += libc::strlen(*next) + STRING_OVERHEAD_BYTES;
                next = next.add(1);
            }
            bytes
        } else {
            let path = libc::getenv(c"PATH".as_ptr());
            if path.is_null() { 0 } else { libc::strlen(path) }
        }
    };
    reserve(bytes)
}

/// The system's allocator, with the reserve as its fallback.
struct ReserveAllocator;

#[global_allocator]
static ALLOCATOR: ReserveAllocator = ReserveAllocator;

/// Parts of one size. A set bit of `used` marks a part in use.
#[repr(C, align(64))]
struct PartPool<const BYTES: usize, const WORDS: usize> {
    memory: UnsafeCell<[[[u8; BYTES]; 64]; WORDS]>,
    used: [AtomicU64; WORDS],
}

// SAFETY: each part belongs to one allocation.
unsafe impl<const BYTES: usize, const WORDS: usize> Sync for PartPool<BYTES, WORDS> {}

impl<const BYTES: usize, const WORDS: usize> PartPool<BYTES, WORDS> {
    const fn new() -> Self {
        PartPool { memory: UnsafeCell::new([[[0; BYTES]; 64]; WORDS]), used: [const { AtomicU64::new(0) }; WORDS] }
    }

    fn begin(&self) -> *mut u8 {
        self.memory.get().cast()
    }

    fn take(&self, layout: Layout) -> *mut u8 {
        let fits = layout.size() <= BYTES && layout.align() <= 64;
        for (index, word) in self.used.iter().enumerate().filter(|_| fits) {
            // Sets the lowest bit that is 0.
            let taken = word.fetch_update(Ordering::Acquire, Ordering::Relaxed, |used| {
                (used != u64::MAX).then(|| used | (used + 1))
            });
            if let Ok(before) = taken {
                let part = index * 64 + before.trailing_ones() as usize;
                // SAFETY: within the memory.
                return unsafe { self.begin().add(part * BYTES) };
            }
        }
        std::ptr::null_mut()
    }

    /// Frees a part. Returns false if `block` is not one of the parts.
    fn give_back(&self, block: *mut u8) -> bool {
        let part = (block as usize).wrapping_sub(self.begin() as usize) / BYTES;
        let word = self.used.get(part / 64);
        word.map(|word| word.fetch_and(!(1 << (part % 64)), Ordering::Release)).is_some()
    }

    fn contains(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.begin() as usize) < BYTES * 64 * WORDS
    }
}

/// The static reserve for small allocations, of up to 512 bytes. Untouched pages use no memory.
static SMALL: PartPool<512, 16> = PartPool::new();
/// The static reserve for large allocations, of up to 32 KiB.
static LARGE: PartPool<{ 32 * 1024 }, 1> = PartPool::new();

// SAFETY: the system's allocator keeps its promises; a part of the reserve is given out once until
// it is given back.
unsafe impl GlobalAlloc for ReserveAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        match unsafe { System.alloc(layout) } {
            block if block.is_null() => from_reserve(layout),
            block => block,
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if SMALL.give_back(block) || LARGE.give_back(block) || call_memory::give_back(block) {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise: the layout is the block's, and `bytes` is valid with its
        // alignment.
        unsafe {
            if !is_from_reserve(block) {
                let larger = System.realloc(block, layout, bytes);
                if !larger.is_null() {
                    return larger;
                }
            }
            let copy = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !copy.is_null() {
                std::ptr::copy_nonoverlapping(block, copy, layout.size().min(bytes));
                self.dealloc(block, layout);
            }
            copy
        }
    }
}

fn from_reserve(layout: Layout) -> *mut u8 {
    let mut block = call_memory::take(layout);
    if block.is_null() {
        block = SMALL.take(layout);
    }
    if block.is_null() {
        block = LARGE.take(layout);
    }
    block
}

fn is_from_reserve(block: *mut u8) -> bool {
    SMALL.contains(block) || LARGE.contains(block) || call_memory::contains(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_reserve_is_not_given_out_again_before_it_is_freed() {
        static PARTS: PartPool<512, 2> = PartPool::new();
        let [small, large, too_large] =
            [1, 500, 513].map(|bytes| Layout::from_size_align(bytes, 16).expect("a layout"));
        let blocks: Vec<*mut u8> = (0..128).map(|_| PARTS.take(large)).collect();
        for pair in blocks.windows(2) {
            assert!(PARTS.contains(pair[0]) && pair[0] as usize + 512 == pair[1] as usize);
        }
        assert!(PARTS.take(small).is_null());
        assert!(PARTS.give_back(blocks[77]) && PARTS.give_back(blocks[3]));
        assert_eq!([PARTS.take(small), PARTS.take(small)], [blocks[3], blocks[77]]);
        assert!(PARTS.give_back(blocks[0]) && PARTS.take(too_large).is_null());
        assert!(!PARTS.contains((&raw const PARTS).cast_mut().cast::<u8>().wrapping_sub(1)));
    }

    #[test]
    fn reserving_too_much_memory_fails() {
        assert!(reserve(1 << 20).is_ok());
        assert_eq!(reserve(usize::MAX).expect_err("too much").errno, libc::ENOMEM);
    }
}
