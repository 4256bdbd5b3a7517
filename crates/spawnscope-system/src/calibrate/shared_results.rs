//! The shared memory in which the measuring process and its children store their times. The recorder reads it after they have ended.

use std::sync::atomic::AtomicU64;

use crate::launch_timing::series::Series;
use crate::launch_timing::shared::Shareable;
use spawnscope_data::event::Nanos;

pub(super) const MAX_ROUNDS: usize = 16;

/// The results of all rounds; empty if all bytes are zero.
#[repr(C)]
pub(super) struct SharedResults {
    /// When the latest child reached its first instruction, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) born: AtomicU64,
    /// Forks of the small process.
    pub(super) small: Lives,
    /// Forks of the small process, each after a pause.
    pub(super) cold: Lives,
    /// Like `small`, with CLONE_VM and CLONE_VFORK.
    pub(super) vfork: Lives,
    /// Forks of the large process.
    pub(super) large: Lives,
    /// The time of all copy-on-write faults in a round.
    pub(super) faults: Times,
    /// The time of all such faults after the child has ended, in a round. No page is copied.
    pub(super) reuses: Times,
    /// The time of all CPUID instructions in a round.
    pub(super) identifications: Times,
    /// The number of CPUID instructions that the start of a program executes, counted once.
    pub(super) instructions_at_start: Series<1, 1>,
    /// The time of all failing opens in a round.
    pub(super) opens: Times,
}

// SAFETY: all fields are atomic integers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

/// One time for each round, in nanoseconds.
pub(super) type Times = Series<1, MAX_ROUNDS>;

/// The times of one child for each round.
#[repr(C)]
pub(super) struct Lives(Series<2, MAX_ROUNDS>);

/// The times of one child, in nanoseconds since its parent entered the call that created it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// When the child reached its first instruction.
    pub(super) created: Nanos,
    /// When the parent's wait returned. The child does nothing but exit.
    pub(super) reaped: Nanos,
}

impl Lives {
    pub(super) fn add(&self, life: Life) {
        self.0.add([life.created.0, life.reaped.0]);
    }

    pub(super) fn all(&self) -> Vec<Life> {
        let rows = self.0.rows();
        rows.map(|[created, reaped]| Life { created: Nanos(created), reaped: Nanos(reaped) }).collect()
    }
}
