//! The part of the wire format that tells where in its machine code a thread launches: mappings, registers, copied stacks.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{WireHeader, WireRegisters};

/// An executable mapping of the process (`header.launch`). The components of its file's path (innermost first, each
/// ended by NUL) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireMapping {
    pub header: WireHeader,
    /// All mappings with the same number were there at the same time.
    pub image: u64,
    pub start: u64,
    pub end: u64,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// 0: no file.
    pub inode: u64,
    /// When the file was written to, in nanoseconds since 1970.
    pub modified: u64,
    pub device: u32,
    pub pid: u32,
    pub path_bytes: u32,
    /// Whether the path's root was reached.
    pub complete: u32,
}

/// Where in its code a thread asked for the launch (`header.launch`). The stack from `registers.sp` upwards follows,
/// `user_bytes` long.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireStack {
    pub header: WireHeader,
    /// Which mappings were there; 0: those were not told.
    pub image: u64,
    /// Where exec put the stack of the process's first thread: tells one program of a process from the next.
    pub start_stack: u64,
    pub registers: WireRegisters,
    /// The process that asked.
    pub pid: u32,
    pub user_bytes: u32,
}

/// All mappings of an image that samples named before were told; or the recorder is to read them from /proc.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireImage {
    pub header: WireHeader,
    pub image: u64,
    /// As in `WireStack`; only with `pid`.
    pub start_stack: u64,
    /// 0: not all of them.
    pub is_whole: u32,
    /// The process to read them of; 0: they were told.
    pub pid: u32,
}

/// Most frames of the kernel's part of a stack.
pub const KERNEL_FRAMES: usize = 64;

/// What a thread (`header.task`) did at `header.at`, or what it began to wait for then. The stack from `registers.sp` upwards
/// follows, `user_bytes` long; without `registers.ip` the user's part is not known.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSample {
    pub stack: WireStack,
    /// The time that it stands for.
    pub span: u64,
    pub is_waiting: u32,
    /// How much of `kernel` there is: addresses, the innermost first.
    pub kernel_bytes: u32,
    pub kernel: [u64; KERNEL_FRAMES],
}
