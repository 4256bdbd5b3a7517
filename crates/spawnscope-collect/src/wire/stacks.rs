//! The part of the wire format with the native call sites of launches: mappings, registers, copied stacks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireHeader, WireRegisters};

/// An executable mapping of the process (`header.launch`). The components of its file's path (innermost first, each NUL-terminated)
/// follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireMapping {
    pub header: WireHeader,
    /// Mappings with the same number existed at the same time.
    pub image: u64,
    pub start: u64,
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// 0: no file.
    pub inode: u64,
    /// The file's modification time, in nanoseconds since 1970.
    pub modified: u64,
    pub device: u32,
    pub pid: u32,
    pub path_bytes: u32,
    /// Whether the walk reached the root.
    pub complete: u32,
}

/// The native call site of the launch (`header.launch`). The stack from `registers.sp` upwards follows, `user_bytes` long.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireStack {
    pub header: WireHeader,
    /// The number of the mappings at that time; 0: they were not reported.
    pub image: u64,
    /// Where exec put the stack of the process's first thread: distinguishes successive programs of a process.
    pub start_stack: u64,
    pub registers: WireRegisters,
    /// The parent.
    pub pid: u32,
    pub user_bytes: u32,
}

/// All mappings of an image named by earlier samples have been reported, or the recorder must read them from /proc.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireImage {
    pub header: WireHeader,
    pub image: u64,
    /// As in `WireStack`; set only with `pid`.
    pub start_stack: u64,
    /// 0: some are missing.
    pub is_whole: u32,
    /// The process whose mappings the recorder must read; 0: they were reported.
    pub pid: u32,
}

/// Maximum number of frames in the kernel part of a stack.
pub const KERNEL_FRAMES: usize = 64;

/// What a thread (`header.task`) did at `header.at`, or the wait it began then. The stack from `registers.sp` upwards follows,
/// `user_bytes` long; without `registers.ip` the user part is unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSample {
    pub stack: WireStack,
    /// The time that the sample represents.
    pub span: u64,
    pub is_waiting: u32,
    /// Bytes used in `kernel`: addresses, innermost first.
    pub kernel_bytes: u32,
    pub kernel: [u64; KERNEL_FRAMES],
}
