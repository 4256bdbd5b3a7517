//! The shared memory in which the measuring process and its children store their times. The recorder reads it after they have
//! ended.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::shared::Shareable;

/// The maximum number of rounds.
pub(super) const MOST_ROUNDS: usize = 16;

/// All zeroes means no results.
#[repr(C)]
pub(super) struct SharedResults {
    /// When the latest child reached its first instruction.
    pub(super) born: AtomicU64,
    /// Forks of the small process.
    pub(super) small: Series,
    /// The same, after pauses.
    pub(super) cold: Series,
    /// Like `small`, with CLONE_VM and CLONE_VFORK.
    pub(super) vfork: Series,
    /// Forks of the large process.
    pub(super) large: Series,
    /// All copy-on-write faults of a round, stored as one life with `created` 0.
    pub(super) faults: Series,
    /// The same after the child has ended: no page is copied.
    pub(super) reuses: Series,
    /// All CPUID instructions of a round, stored in the same way.
    pub(super) identifications: Series,
}

/// Lives of one kind.
#[repr(C)]
pub(super) struct Series {
    complete: AtomicU64,
    lives: [[AtomicU64; 2]; MOST_ROUNDS],
}

/// The times of one child, in nanoseconds since its parent entered the call that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// When the child reached its first instruction.
    pub(super) created: u64,
    /// When the parent's wait returned. The child does nothing but exit.
    pub(super) reaped: u64,
}

impl Life {
    pub(super) fn after_creation(self) -> u64 {
        self.reaped.saturating_sub(self.created)
    }
}

// SAFETY: all fields are atomic integers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

impl Series {
    /// Adds a life. Drops it if the series is full.
    pub(super) fn add(&self, life: Life) {
        let number = self.complete.load(Ordering::Relaxed);
        if let Some([created, reaped]) = self.lives.get(number as usize) {
            created.store(life.created, Ordering::Relaxed);
            reaped.store(life.reaped, Ordering::Relaxed);
            self.complete.store(number + 1, Ordering::Release);
        }
    }

    /// The complete lives.
    pub(super) fn lives(&self) -> Vec<Life> {
        let complete = self.complete.load(Ordering::Acquire) as usize;
        let life = |[created, reaped]: &[AtomicU64; 2]| Life {
            created: created.load(Ordering::Relaxed),
            reaped: reaped.load(Ordering::Relaxed),
        };
        self.lives.iter().take(complete).map(life).collect()
    }
}
