//! What woke a thread, and whether the kernel shows that it was an interrupt.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::COMM_BYTES;

/// `kind`: no waker was observed.
pub const WAKER_UNKNOWN: u32 = 0;
/// `kind`: a followed thread.
pub const WAKER_TASK: u32 = 1;
/// `kind`: another thread.
pub const WAKER_OTHER: u32 = 2;
/// `kind`: an interrupt.
pub const WAKER_INTERRUPT: u32 = 3;
/// The bits of `kind` that contain the values above.
pub const WAKER_KINDS: u32 = 0xff;
/// Flag of `kind`: the waker was the thread on the CPU that the wake-up came from, but an interrupt
/// on that CPU may have caused the wake-up instead.
pub const WAKER_IN_DOUBT: u32 = 0x100;
/// Flag of `kind`, used only with WAKER_IN_DOUBT or WAKER_INTERRUPT: the woken thread's system call
/// has returned without another wait, and the slice's `result` is its return value.
pub const WAKER_CALL_RETURNED: u32 = 0x200;

/// What woke a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireWaker {
    /// When the thread was woken; 0: not observed.
    pub woken: u64,
    pub task: u64,
    pub pid: u32,
    /// WAKER_*.
    pub kind: u32,
    pub comm: [u8; COMM_BYTES],
}

/// Offsets of per-CPU variables from the CPU's run queue. If the kernel keeps the variables in one
/// structure (`pcpu_hot`), both are the offset of that structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePerCpuOffsets {
    pub preempt_count: i64,
    /// Offset of the pointer to the running thread.
    pub current_task: i64,
    /// 0: the offsets are unknown.
    pub are_known: u32,
    pub reserved: u32,
}
