//! The memory in which the measuring process and its children leave their times, and where the recorder reads them once
//! they are gone.

use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most rounds that are measured.
pub(super) const MOST_ROUNDS: usize = 16;

/// All zeroes is an empty board.
#[repr(C)]
pub(super) struct Board {
    /// When the latest child came to its first instruction.
    pub(super) born: AtomicU64,
    /// Forks of the small process.
    pub(super) small: Series,
    /// The same after pauses.
    pub(super) cold: Series,
    /// The same with CLONE_VM and CLONE_VFORK.
    pub(super) vfork: Series,
    /// Forks of the process with much memory.
    pub(super) large: Series,
    /// All the copy-on-write faults of a round, as a life that was created at 0.
    pub(super) faults: Series,
    /// The same after the child has ended: nothing has to be copied.
    pub(super) reuses: Series,
    /// All the CPUID instructions of a round, likewise.
    pub(super) identifications: Series,
}

/// Lives of one kind.
#[repr(C)]
pub(super) struct Series {
    complete: AtomicU64,
    lives: [[AtomicU64; 2]; MOST_ROUNDS],
}

/// The times of one child, in nanoseconds since the call that made it was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// The child's first instruction.
    pub(super) created: u64,
    /// The parent's wait returned; the child did nothing but exit.
    pub(super) reaped: u64,
}

impl Life {
    pub(super) fn after_creation(self) -> u64 {
        self.reaped.saturating_sub(self.created)
    }
}

impl Board {
    /// A board that forks share.
    pub(super) fn share() -> io::Result<SharedBoard> {
        // SAFETY: asks for new memory, which touches nothing that exists.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Board>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(address.cast()) {
            Some(board) if address != libc::MAP_FAILED => Ok(SharedBoard(board)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Series {
    /// Adds a life; one too many is dropped.
    pub(super) fn add(&self, life: Life) {
        let number = self.complete.load(Ordering::Relaxed);
        if let Some([created, reaped]) = self.lives.get(number as usize) {
            created.store(life.created, Ordering::Relaxed);
            reaped.store(life.reaped, Ordering::Relaxed);
            self.complete.store(number + 1, Ordering::Release);
        }
    }

    /// The lives that are complete.
    pub(super) fn lives(&self) -> Vec<Life> {
        let complete = self.complete.load(Ordering::Acquire) as usize;
        let life = |[created, reaped]: &[AtomicU64; 2]| Life {
            created: created.load(Ordering::Relaxed),
            reaped: reaped.load(Ordering::Relaxed),
        };
        self.lives.iter().take(complete).map(life).collect()
    }
}

/// A mapped board.
pub(super) struct SharedBoard(NonNull<Board>);

impl Deref for SharedBoard {
    type Target = Board;

    fn deref(&self) -> &Board {
        // SAFETY: mapped as long as `self` lives, aligned as pages are, zeroed at first, and written atomically only.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for SharedBoard {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nobody borrows it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Board>()) };
    }
}
