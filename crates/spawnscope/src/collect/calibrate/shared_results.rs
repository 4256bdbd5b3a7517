//! The memory in which the measuring process and its children leave their times, and where the recorder reads them once
//! they are gone.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::collect::shared::Shareable;

/// Most rounds that are measured.
pub(super) const MOST_ROUNDS: usize = 16;

/// All zeroes is an empty board.
#[repr(C)]
pub(super) struct SharedResults {
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

// SAFETY: nothing but atomic numbers, which may be zero.
unsafe impl Shareable for SharedResults {}

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
