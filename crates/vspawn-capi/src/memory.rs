//! Keeps this library from aborting its host when memory runs out. A call that needs memory asks for it first, and fails with ENOMEM.
//! What it allocates after that comes from a reserve if another thread took the memory in the meantime, or for an error's text.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Failure, Stage};

/// More than any call needs beside the caller's strings, which are added.
const CALL_BYTES: usize = 16 * 1024;
/// Untouched pages of the reserve cost nothing.
const RESERVE_BYTES: usize = 256 * 1024;

/// Fails if a call with so many bytes of the caller's could not get its memory. Strings are copied up to three times.
pub(crate) fn expect(bytes: usize) -> Result<(), Failure> {
    let needed = bytes.saturating_mul(3).saturating_add(CALL_BYTES);
    // SAFETY: freed at once. `black_box`, since a compiler may remove the pair.
    let found = unsafe {
        let block = std::hint::black_box(libc::malloc(needed));
        libc::free(block);
        !block.is_null()
    };
    match found {
        true => Ok(()),
        false => Err(Failure::new(Stage::Prepare, libc::ENOMEM, "allocate memory for a request")),
    }
}

/// The system's allocator, with the reserve behind it.
struct Reserved;

#[global_allocator]
static ALLOCATOR: Reserved = Reserved;

#[repr(C, align(64))]
struct Reserve(UnsafeCell<[u8; RESERVE_BYTES]>);
// SAFETY: each part belongs to one allocation.
unsafe impl Sync for Reserve {}
static RESERVE: Reserve = Reserve(UnsafeCell::new([0; RESERVE_BYTES]));

/// The reserve's allocations in the upper half, its used bytes in the lower: the reserve is empty again after its last allocation.
static USE: AtomicU64 = AtomicU64::new(0);

// SAFETY: the system's allocator keeps its promises; a part of the reserve is given out once until it is given back.
unsafe impl GlobalAlloc for Reserved {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        match unsafe { System.alloc(layout) } {
            block if block.is_null() => from_reserve(layout),
            block => block,
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if is_of_reserve(block) {
            return to_reserve();
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise: the layout is the block's, and `bytes` is valid with its alignment.
        unsafe {
            if !is_of_reserve(block) {
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
    let mut now = USE.load(Ordering::Relaxed);
    loop {
        let begin = ((now as u32) as usize).next_multiple_of(layout.align().min(64));
        let end = begin.saturating_add(layout.size());
        if end > RESERVE_BYTES || layout.align() > 64 {
            return std::ptr::null_mut();
        }
        let next = ((now >> 32) + 1) << 32 | end as u64;
        match USE.compare_exchange_weak(now, next, Ordering::Acquire, Ordering::Relaxed) {
            // SAFETY: within the reserve.
            Ok(_) => return unsafe { RESERVE.0.get().cast::<u8>().add(begin) },
            Err(other) => now = other,
        }
    }
}

fn is_of_reserve(block: *mut u8) -> bool {
    let begin = RESERVE.0.get() as usize;
    (begin..begin + RESERVE_BYTES).contains(&(block as usize))
}

fn to_reserve() {
    let given_back = |now: u64| match now >> 32 {
        1 => Some(0),
        _ => Some(now - (1 << 32)),
    };
    let _always = USE.fetch_update(Ordering::Release, Ordering::Relaxed, given_back);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_gives_each_part_once_and_begins_again_when_it_is_empty() {
        let layout = Layout::from_size_align(1000, 16).expect("a layout");
        let blocks: Vec<*mut u8> = (0..10).map(|_| from_reserve(layout)).collect();
        for pair in blocks.windows(2) {
            assert!(is_of_reserve(pair[0]) && pair[0] as usize + 1000 <= pair[1] as usize);
        }
        let too_large = Layout::from_size_align(RESERVE_BYTES, 1).expect("a layout");
        assert!(from_reserve(too_large).is_null());
        blocks.iter().for_each(|_| to_reserve());
        assert_eq!(from_reserve(layout), blocks[0]);
        to_reserve();
        assert!(expect(1 << 20).is_ok());
        assert_eq!(expect(usize::MAX).expect_err("too much").errno, libc::ENOMEM);
    }
}
