//! The part of the wire format with the native call sites of launches: mappings, registers, copied
//! stacks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireHeader, WireRegisters};

/// An executable mapping of the process (`header.launch`). The components of the file's path
/// follow, innermost first, each NUL-terminated.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireMapping {
    pub header: WireHeader,
    /// Identifies one version of the process's mappings: mappings with the same number existed at
    /// the same time.
    pub image: u64,
    pub start: u64,
    pub end: u64,
    /// The offset in the file, in bytes.
    pub offset: u64,
    /// Inode number of the file; 0: no file.
    pub inode: u64,
    /// The file's modification time, in nanoseconds since 1970.
    pub modified: u64,
    pub device: u32,
    pub pid: u32,
    pub path_bytes: u32,
    /// 1: the path is complete, that is, the walk reached the root.
    pub complete: u32,
}

/// The native call site of the launch (`header.launch`). The stack from `registers.sp` upwards
/// follows, `user_bytes` long.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireStack {
    pub header: WireHeader,
    /// The number of the mappings at that time, see `WireMapping`; 0: they were not reported.
    pub image: u64,
    /// Address where exec put the stack of the process's first thread. It distinguishes successive
    /// programs of a process.
    pub start_stack: u64,
    pub registers: WireRegisters,
    /// The process whose stack this is.
    pub pid: u32,
    pub user_bytes: u32,
}

/// Says that all mappings with this image number, which earlier samples refer to, have been
/// reported, or that the recorder must read them from /proc.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireImage {
    pub header: WireHeader,
    pub image: u64,
    /// As in `WireStack`; set only with `pid`.
    pub start_stack: u64,
    /// 1: all mappings were reported; 0: some are missing.
    pub is_complete: u32,
    /// The process whose mappings the recorder must read; 0: they were reported.
    pub pid: u32,
}

/// Maximum number of frames in the kernel part of a stack.
pub const KERNEL_FRAMES: usize = 64;

/// What a thread (`header.task`) did at `header.at`, or the wait that it began at that time. The
/// stack from `registers.sp` upwards follows, `user_bytes` long. If `registers.ip` is 0, the user
/// part is unknown.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSample {
    pub stack: WireStack,
    /// The time that the sample represents, in nanoseconds.
    pub span: u64,
    pub is_waiting: u32,
    /// Number of bytes used in `kernel`.
    pub kernel_bytes: u32,
    /// Addresses in the kernel, innermost first.
    pub kernel: [u64; KERNEL_FRAMES],
}
