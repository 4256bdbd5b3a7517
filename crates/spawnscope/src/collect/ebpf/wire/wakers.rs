//! Who woke a thread, and where the kernel says whether that was an interrupt.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::COMM_BYTES;

/// `kind`: nobody was seen.
pub const WAKER_UNKNOWN: u32 = 0;
/// `kind`: a followed thread.
pub const WAKER_TASK: u32 = 1;
/// `kind`: another thread.
pub const WAKER_OTHER: u32 = 2;
/// `kind`: an interrupt.
pub const WAKER_INTERRUPT: u32 = 3;
/// The part of `kind` that the above are.
pub const WAKER_KINDS: u32 = 0xff;
/// Flag of `kind`: the thread had the CPU from which the wake-up came, but that may have been an interrupt.
pub const WAKER_IN_DOUBT: u32 = 0x100;
/// Flag of `kind`, with the one above only: the system call has returned, without another wait in it, and `result` is what it gave.
pub const WAKER_CALL_RETURNED: u32 = 0x200;

/// Who woke a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireWaker {
    /// When; 0: not seen.
    pub woken: u64,
    pub task: u64,
    pub pid: u32,
    /// WAKER_*.
    pub kind: u32,
    pub comm: [u8; COMM_BYTES],
}

/// Places among a CPU's variables, as distances from its run queue. Where the kernel keeps several of them in one structure
/// (`pcpu_hot`), they are that structure's.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePlaces {
    pub preempt_count: i64,
    /// What points to the running thread.
    pub current_task: i64,
    /// 0: they are not known.
    pub are_known: u32,
    pub reserved: u32,
}
