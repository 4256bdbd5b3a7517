//! The memory of a call from C: one block, which is allocated before the call begins its work. When
//! the system has no memory left, the call's allocations become parts of this block. Parts may
//! outlive the call; the block is freed with the last of them.

use std::alloc::Layout;
use std::cell::Cell;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The alignment of parts, in bytes. Requests with a larger alignment fail; the library makes none.
const ALIGNMENT: usize = 16;

/// The call that a thread is in. It needs no destructor: a call ends before its thread does.
#[derive(Clone, Copy)]
struct Call {
    /// The number of nested calls, including the outermost; 0 outside of a call.
    depth: usize,
    /// The sum of the bytes that `reserve` was given.
    bytes: usize,
    block: *mut u8,
    /// The size of the block, and the part of it that is in use, in bytes.
    size: usize,
    used: usize,
    /// The block's index in the table, once it has parts.
    index: Option<usize>,
}

const NO_CALL: Call = Call { depth: 0, bytes: 0, block: null_mut(), size: 0, used: 0, index: None };

thread_local! {
    static CALL: Cell<Call> = const { Cell::new(NO_CALL) };
}

/// A block with parts. `begin` is 0 for a free entry, and `CLAIMED` while it is filled in.
struct Entry {
    begin: AtomicUsize,
    end: AtomicUsize,
    /// The number of parts in use, plus one until the block's call returns.
    users: AtomicUsize,
}

const CLAIMED: usize = 1;

/// The blocks that have parts, which exist only if memory has run out.
static TABLE: [Entry; 64] =
    [const { Entry { begin: AtomicUsize::new(0), end: AtomicUsize::new(0), users: AtomicUsize::new(0) } }; 64];
static ENTRIES_USED: AtomicUsize = AtomicUsize::new(0);

/// Marks a call from C. When the outermost call ends, it releases its block.
pub(crate) struct CallGuard;

impl CallGuard {
    pub(crate) fn new() -> CallGuard {
        let mut call = CALL.get();
        call.depth += 1;
        CALL.set(call);
        CallGuard
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let mut call = CALL.get();
        call.depth -= 1;
        if call.depth == 0 {
            release(call);
            call = NO_CALL;
        }
        CALL.set(call);
    }
}

/// Returns the number of bytes that the caller has passed in this call so far.
pub(crate) fn bytes() -> usize {
    CALL.get().bytes
}

/// Adds to the number of bytes that the call works with, and makes sure that its block has `base`
/// bytes plus `factor` times this number. Returns false if there is no memory.
pub(crate) fn reserve(bytes: usize, factor: usize, base: usize) -> bool {
    let mut call = CALL.get();
    call.bytes = call.bytes.saturating_add(bytes);
    let needed = call.bytes.saturating_mul(factor).saturating_add(base);
    if call.size < needed {
        // SAFETY: the block is freed by `release` or with its last part.
        let block = unsafe { libc::malloc(needed) }.cast::<u8>();
        if block.is_null() {
            return false;
        }
        release(call);
        (call.block, call.size, call.used, call.index) = (block, needed, 0, None);
    }
    match call.depth {
        // Outside of a call, `reserve` only checks whether there is memory.
        0 => release(call),
        _ => CALL.set(call),
    }
    true
}

/// Ends the call's own use of its block. Parts in use keep the block.
fn release(call: Call) {
    match call.index {
        Some(index) => remove_user(index),
        // SAFETY: the block is from malloc and has no parts; NULL does nothing.
        None => unsafe { libc::free(call.block.cast()) },
    }
}

/// Takes a part of the call's block. Returns NULL if the rest of the block is too small.
pub(crate) fn take(layout: Layout) -> *mut u8 {
    let mut call = CALL.get();
    let size = layout.size().next_multiple_of(ALIGNMENT);
    if layout.align() > ALIGNMENT || call.size - call.used < size {
        return null_mut();
    }
    let Some(index) = call.index.or_else(|| add_entry(call)) else { return null_mut() };
    TABLE[index].users.fetch_add(1, Ordering::Relaxed);
    // SAFETY: within the block.
    let part = unsafe { call.block.add(call.used) };
    (call.index, call.used) = (Some(index), call.used + size);
    CALL.set(call);
    part
}

/// Adds the call's block to the table. Returns `None` if the table is full.
fn add_entry(call: Call) -> Option<usize> {
    let found = TABLE
        .iter()
        .position(|entry| entry.begin.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok())?;
    let (entry, begin) = (&TABLE[found], call.block as usize);
    entry.users.store(1, Ordering::Relaxed);
    ENTRIES_USED.fetch_add(1, Ordering::Relaxed);
    entry.end.store(begin + call.size, Ordering::Release);
    entry.begin.store(begin, Ordering::Release);
    Some(found)
}

/// Removes one user of a block. Frees the block with its last user.
fn remove_user(index: usize) {
    let entry = &TABLE[index];
    if entry.users.fetch_sub(1, Ordering::AcqRel) == 1 {
        let begin = entry.begin.swap(0, Ordering::AcqRel);
        ENTRIES_USED.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the block of a call that has ended, without parts.
        unsafe { libc::free(begin as *mut libc::c_void) };
    }
}

/// Returns the index of the block that contains a part.
fn find(part: *mut u8) -> Option<usize> {
    if ENTRIES_USED.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let part = part as usize;
    TABLE.iter().position(|entry| {
        let begin = entry.begin.load(Ordering::Acquire);
        let is_within = begin > CLAIMED && part >= begin && part < entry.end.load(Ordering::Acquire);
        // If the entry has another block now, `part` is in neither block, because a part in use
        // keeps its block.
        is_within && entry.begin.load(Ordering::Acquire) == begin
    })
}

pub(crate) fn contains(part: *mut u8) -> bool {
    find(part).is_some()
}

/// Frees a part. Returns false if `part` is not in any block.
pub(crate) fn give_back(part: *mut u8) -> bool {
    let found = find(part);
    if let Some(index) = found {
        remove_user(index);
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, 8).expect("a layout")
    }

    #[test]
    fn a_part_may_outlive_its_call() {
        let call = CallGuard::new();
        assert!(reserve(100, 2, 1000));
        let first = take(layout(1000));
        let second = take(layout(100));
        assert_eq!(second as usize - first as usize, 1008);
        assert!(take(layout(300)).is_null(), "more than was reserved");
        assert!(reserve(1000, 2, 1000), "another block");
        let third = take(layout(2000));
        assert!(contains(first) && contains(second) && contains(third));
        drop(call);
        assert_eq!(bytes(), 0);
        assert!(give_back(third) && !contains(third));
        assert!(give_back(first) && contains(second) && give_back(second) && !contains(second));
        assert!(take(layout(1)).is_null(), "no call");
    }

    #[test]
    fn a_call_within_a_call_uses_its_block() {
        let outer = CallGuard::new();
        assert!(reserve(0, 1, 64));
        drop(CallGuard::new());
        let part = take(layout(64));
        drop(outer);
        assert!(give_back(part));
    }
}
