//! The memory that a child uses before its exec: its stack and its job. It is mapped once and kept
//! for later spawns. The pool has no lock, so that a `fork` in another thread can never leave one
//! locked.

use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::arch::MAX_PAGE_BYTES;
use crate::child::job::{ChildReport, Job};
use crate::error::{Error, Stage};
use crate::plan::{Move, Plan};
use crate::sys::syscall;

/// The size of the guard below the stack, where an overflow faults instead of overwriting other
/// memory. A whole number of pages on every kernel.
const GUARD_BYTES: usize = MAX_PAGE_BYTES;
/// The size of the stack. The child's code needs less than 2 KiB (in an unoptimised build, less
/// than 16 KiB).
const STACK_BYTES: usize = 64 * 1024;
/// The size of the area above the stack, which contains the report, the job and the descriptor
/// moves.
const JOB_BYTES: usize = 16 * 1024;
const MAPPED_BYTES: usize = GUARD_BYTES + STACK_BYTES + JOB_BYTES;
/// The number of descriptor moves that fit into `JOB_BYTES`.
pub(crate) const MAX_MOVES: usize = (JOB_BYTES - size_of::<JobArea>()) / size_of::<Move>();

/// The layout of the area above the stack.
#[repr(C)]
struct JobArea {
    report: ChildReport,
    job: Job,
    moves: [Move; 0],
}

/// One mapping, used by one child at a time.
#[derive(Debug)]
pub(crate) struct Workspace {
    base: NonNull<u8>,
}

// SAFETY: the mapping belongs to this value alone and is reachable from every thread.
unsafe impl Send for Workspace {}
// SAFETY: shared references only return addresses.
unsafe impl Sync for Workspace {}

impl Workspace {
    /// Takes a free workspace, or maps a new one.
    pub(crate) fn take() -> Result<Workspace, Error> {
        release_dropped_children();
        for slot in &POOL {
            // Reading is cheaper than swapping, and most slots are empty while many children are in
            // flight.
            if slot.load(Ordering::Relaxed).is_null() {
                continue;
            }
            if let Some(base) = NonNull::new(slot.swap(ptr::null_mut(), Ordering::AcqRel)) {
                return Ok(Workspace { base });
            }
        }
        Workspace::map()
    }

    fn map() -> Result<Workspace, Error> {
        let failed = |errno| Error::new(Stage::Stack, errno, "map a stack for the child");
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping does not affect others; the guard is within it.
        unsafe {
            let base = syscall!(SYS_mmap, 0, MAPPED_BYTES, protection, flags, -1isize, 0).map_err(failed)?;
            if let Err(errno) = syscall!(SYS_mprotect, base, GUARD_BYTES, libc::PROT_NONE) {
                let _ = syscall!(SYS_munmap, base, MAPPED_BYTES);
                return Err(failed(errno));
            }
            Ok(Workspace { base: NonNull::new_unchecked(base as *mut u8) })
        }
    }

    /// Returns the lowest address of the stack, above the guard.
    pub(crate) fn stack(&self) -> *mut u8 {
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(GUARD_BYTES) }
    }

    pub(crate) const fn stack_bytes(&self) -> usize {
        STACK_BYTES
    }

    fn job_area(&self) -> *mut JobArea {
        // SAFETY: within the mapping, and aligned to a page.
        unsafe { self.base.as_ptr().add(GUARD_BYTES + STACK_BYTES).cast() }
    }

    pub(crate) fn report(&self) -> *mut ChildReport {
        // SAFETY: within the mapping; nothing is read.
        unsafe { &raw mut (*self.job_area()).report }
    }

    pub(crate) fn job(&self) -> *mut Job {
        // SAFETY: as above.
        unsafe { &raw mut (*self.job_area()).job }
    }

    /// Returns the array of moves, which has room for `MAX_MOVES`.
    pub(crate) fn moves(&self) -> *mut Move {
        // SAFETY: as above.
        unsafe { (&raw mut (*self.job_area()).moves).cast() }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let base = self.base.as_ptr();
        for slot in &POOL {
            let is_free = slot.load(Ordering::Relaxed).is_null();
            if is_free && slot.compare_exchange(ptr::null_mut(), base, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                return;
            }
        }
        // SAFETY: no other code uses the mapping any more.
        unsafe {
            let _ = syscall!(SYS_munmap, base, MAPPED_BYTES);
        }
    }
}

/// Free workspaces: as many as a single busy thread may have children in flight.
static POOL: [AtomicPtr<u8>; 64] = [const { AtomicPtr::new(ptr::null_mut()) }; 64];

/// Memory that a detached child still uses: until its exec, it runs in the parent's memory.
#[derive(Debug)]
pub(crate) struct ChildMemory {
    pub(crate) workspace: Workspace,
    pub(crate) plan: Arc<Plan>,
}

impl ChildMemory {
    pub(crate) fn job(&self) -> &Job {
        // SAFETY: a job was written there before the child was created; only atomics change after
        // that.
        unsafe { &*self.workspace.job() }
    }

    /// Returns the state in the child's report, which the kernel clears when the child has left
    /// this memory (CLONE_CHILD_CLEARTID).
    pub(crate) fn sharing_state(&self) -> &AtomicU32 {
        &self.job().report().sharing_state
    }

    /// Sleeps while the state has this value, for at most a tenth of a second. The kernel does not
    /// clear the state for a child that dumps core (before Linux 5.16), nor in the memory of a
    /// process forked from us. So the caller must also check whether the child has ended.
    pub(crate) fn sleep_while(&self, value: u32) {
        static RECHECK_INTERVAL: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        // Without FUTEX_PRIVATE_FLAG: the kernel's wake-up for a cleared tid is not private.
        // SAFETY: the word is in our workspace, the time is a constant.
        unsafe {
            let word = self.sharing_state().as_ptr();
            let _ = syscall!(SYS_futex, word, libc::FUTEX_WAIT, value, &raw const RECHECK_INTERVAL);
        }
    }
}

/// A list of the children whose handles were dropped before their exec. Items are only pushed; the
/// list is only taken as a whole.
static DROPPED_CHILDREN: AtomicPtr<DroppedChild> = AtomicPtr::new(ptr::null_mut());

struct DroppedChild {
    child_memory: ChildMemory,
    next: *mut DroppedChild,
}

/// Keeps the memory until the child has left it.
pub(crate) fn keep_until_child_has_left(child_memory: ChildMemory) {
    if child_memory.sharing_state().load(Ordering::Acquire) == 0 {
        return;
    }
    push(Box::new(DroppedChild { child_memory, next: ptr::null_mut() }));
}

fn push(mut dropped: Box<DroppedChild>) {
    let mut head = DROPPED_CHILDREN.load(Ordering::Relaxed);
    loop {
        dropped.next = head;
        let raw = Box::into_raw(dropped);
        match DROPPED_CHILDREN.compare_exchange_weak(head, raw, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => {
                head = now;
                // SAFETY: `raw` was not published.
                dropped = unsafe { Box::from_raw(raw) };
            }
        }
    }
}

/// Releases the memory of dropped children that have left it.
fn release_dropped_children() {
    if DROPPED_CHILDREN.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut next = DROPPED_CHILDREN.swap(ptr::null_mut(), Ordering::AcqRel);
    while !next.is_null() {
        // SAFETY: the whole list was taken, so it is ours alone.
        let dropped = unsafe { Box::from_raw(next) };
        next = dropped.next;
        if dropped.child_memory.sharing_state().load(Ordering::Acquire) != 0 {
            push(dropped);
        }
    }
}
