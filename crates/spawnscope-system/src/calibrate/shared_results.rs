//! The shared memory in which the measuring process and its children store their times. The
//! recorder reads it after they have ended.

use std::sync::atomic::AtomicU64;

use crate::launch_timing::series::Series;
use crate::launch_timing::shared::Shareable;

pub(super) const MAX_ROUNDS: usize = 16;

#[repr(C)]
pub(super) struct SharedResults {
    /// When the latest child reached its first instruction, in nanoseconds of CLOCK_MONOTONIC.
    pub(super) born: AtomicU64,
    pub(super) small: Lives,
    /// Forks of the small process, each after a pause.
    pub(super) cold: Lives,
    /// Like `small`, with CLONE_VM and CLONE_VFORK.
    pub(super) vfork: Lives,
    pub(super) large: Lives,
    pub(super) faults: Times,
    /// The time of all such faults after the child has ended, in a round. No page is copied.
    pub(super) reuses: Times,
    pub(super) identifications: Times,
    /// The number of CPUID instructions that the start of a program executes, counted once.
    pub(super) instructions_at_start: Series<1, 1>,
    pub(super) opens: Times,
}

// SAFETY: all fields are atomic integers, for which zero is valid.
unsafe impl Shareable for SharedResults {}

/// One time for each round, in nanoseconds.
pub(super) type Times = Series<1, MAX_ROUNDS>;

/// Two times of one child for each round, in nanoseconds since its parent entered the call that
/// created it: when the child reached its first instruction (`CREATED`), and when the parent's wait
/// returned (`REAPED`). The child does nothing but exit.
pub(super) type Lives = Series<2, MAX_ROUNDS>;

pub(super) const CREATED: usize = 0;
pub(super) const REAPED: usize = 1;
