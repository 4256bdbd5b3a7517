//! The wire format between the BPF programs and the collector: the bytes of the ring buffer. It is
//! defined only here; `build.rs` generates the C header `wire.h` from this file and `wire/`.
//! Instants are CLOCK_MONOTONIC nanoseconds; 0 means that the moment was not observed. Every record
//! begins with `WireHeader`, whose `kind` identifies the struct: `KIND_LAUNCH` is a `WireLaunch`.

#![expect(dead_code, reason = "some constants and fields are used only by the C side")]

mod make;
mod perl;
mod python;
#[cfg_attr(target_arch = "x86_64", path = "wire/registers/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "wire/registers/aarch64.rs")]
mod registers;
mod scripts;
mod stacks;
mod task;
mod wakers;

pub use make::*;
pub use perl::*;
pub use python::*;
pub use registers::*;
pub use scripts::*;
#[cfg(feature = "ebpf")]
pub use stacks::*;
pub use task::*;
pub use wakers::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const KIND_LAUNCH: u32 = 1;
pub const KIND_THREAD: u32 = 2;
pub const KIND_ADOPTED: u32 = 3;
pub const KIND_EXEC_FAILED: u32 = 4;
pub const KIND_EXECUTED: u32 = 5;
pub const KIND_LOADED: u32 = 6;
pub const KIND_EXITED: u32 = 7;
pub const KIND_GONE: u32 = 8;
pub const KIND_REAPED: u32 = 9;
pub const KIND_SLICE: u32 = 10;
/// Not a record. Its loss count is the number of processes and threads that are not followed
/// because the kernel had no memory for their map entries.
pub const KIND_UNFOLLOWED: u32 = 11;
pub const KIND_FILE_NAMED: u32 = 12;
/// `kind` of a `WireSlice` that ends with the recording, at `header.at`: the thread is still
/// off-CPU, or still on the CPU.
pub const KIND_LAST_SEEN: u32 = 13;
pub const KIND_PEER_NAMED: u32 = 14;
pub const KIND_NEW_EXECUTABLE: u32 = 20;
pub const KIND_SCRIPT_CALLED: u32 = 21;
pub const KIND_PYTHON_CALLED: u32 = 24;
pub const KIND_NODE_CALL_SITE: u32 = 25;
pub const KIND_MAPPING: u32 = 30;
pub const KIND_STACK: u32 = 31;
pub const KIND_SAMPLE: u32 = 32;
pub const KIND_IMAGE: u32 = 33;
/// Not a record. Its loss count is the number of events of followed threads that no BPF program
/// handled, because the kernel skipped the programs.
pub const KIND_SKIPPED: u32 = 34;
/// One more than the largest kind: the size of the table of loss counts.
pub const KIND_END: u32 = 35;

/// Maximum gap between two surrounding calls of a thread. In a longer gap the thread does its own
/// work.
pub const SURROUNDING_GAP_NS: u64 = 30_000;
/// Maximum duration of a `read` that counts as reading the rest of a reaped child's output.
pub const MAX_LEFTOVER_READ_NS: u64 = 300_000;

/// Maximum path length stored, including its NUL (the kernel's PATH_MAX).
pub const PATH_BYTES: u32 = 4096;
/// Maximum interpreter name length stored, including its NUL (the kernel's limit for a `#!` line).
pub const INTERPRETER_BYTES: u32 = 256;
/// Maximum number of argv bytes stored.
pub const ARGV_BYTES: u32 = 4096;
/// Maximum length of a file name within a directory, including its NUL.
pub const NAME_BYTES: u32 = 256;
/// Maximum depth of a working directory.
pub const CWD_DEPTH: u32 = 40;
/// Maximum number of bytes read from the start of an environment, and again from its end if the
/// environment is larger.
pub const VARIABLES_BYTES: u32 = 4096;
/// Room for paths and arguments after a `WireExecuted`. It includes one spare file name, so that
/// the verifier accepts the copies.
pub const EXECUTED_DATA_BYTES: u32 = 12800;
/// Room for the environment, after the paths and arguments.
pub const ENVIRONMENT_BYTES: u32 = 2 * VARIABLES_BYTES;
/// Maximum number of stack bytes copied.
pub const STACK_BYTES: u32 = 16384;
/// A stack that cannot be copied as a whole is copied in pieces of this size: the page size.
pub const STACK_PIECE_BYTES: u32 = 4096;
/// Maximum number of executable mappings reported per process.
pub const MAX_MAPPINGS: u32 = 2048;
/// Maximum number of threads followed at a time on kernels without task storage.
pub const MAX_HASHED_TASKS: u32 = 32768;
/// Length of a thread's name (TASK_COMM_LEN).
pub const COMM_BYTES: usize = 16;

/// Marks an unknown count, such as `setup_closes` if some of the system calls were not observed.
pub const UNKNOWN_COUNT: u32 = 0xffff_ffff;

/// A bit in `WireLaunch::flags` that no kernel flag uses. It means that the caller passed no stack
/// to clone, or its own, so the child runs on the caller's stack or on a copy of it.
pub const CLONE_ON_OWN_STACK: u64 = 0x4000_0000_0000_0000;

/// `load_cache`: the loader did not try to open /etc/ld.so.cache.
pub const CACHE_NOT_TRIED: u32 = 0;
/// `load_cache`: the loader opened /etc/ld.so.cache.
pub const CACHE_OPENED: u32 = 1;
/// `load_cache`: the loader failed to open /etc/ld.so.cache.
pub const CACHE_FAILED: u32 = 2;

/// `loader`: the image has no interpreter.
pub const LOADER_NONE: u32 = 0;
/// `loader`: `load_end` is known.
pub const LOADER_DONE: u32 = 1;
/// `loader`: the image has an interpreter, but the end of its work was not observed.
pub const LOADER_UNKNOWN: u32 = 2;

/// `reason` why a thread is off-CPU: it was just created and has never run.
pub const LEFT_CREATED: u32 = 0;
/// `reason`: preempted while runnable.
pub const LEFT_PREEMPTED: u32 = 1;
/// `reason`: interruptible sleep.
pub const LEFT_INTERRUPTIBLE: u32 = 2;
/// `reason`: uninterruptible sleep.
pub const LEFT_UNINTERRUPTIBLE: u32 = 3;
/// `reason`: stopped.
pub const LEFT_STOPPED: u32 = 4;

/// `object_kind`: the thread does not wait for an object, or the object is unknown. The other kinds
/// are numbered from 1, in the order of `event::ObjectKind::ALL`.
pub const OBJECT_UNKNOWN: u32 = 0;
pub const OBJECT_PIPE: u32 = 1;
pub const OBJECT_FIFO: u32 = 2;
pub const OBJECT_UNIX_SOCKET: u32 = 3;
pub const OBJECT_SOCKET: u32 = 4;
pub const OBJECT_CHARACTER_DEVICE: u32 = 5;
pub const OBJECT_BLOCK_DEVICE: u32 = 6;
pub const OBJECT_FILE: u32 = 7;
pub const OBJECT_DIRECTORY: u32 = 8;
/// An anonymous inode, such as an eventfd. The first eight bytes of its name, which show its type,
/// are stored as the inode.
pub const OBJECT_ANONYMOUS: u32 = 9;
pub const OBJECT_PIDFD: u32 = 13;
pub const OBJECT_PERMISSION: u32 = 15;
/// Flag of `object_kind`: the thread also watched other sockets, which only threads can make ready.
/// So this socket ended the wait only if an interrupt did.
pub const OBJECT_UNLESS_THREAD: u32 = 0x100;

/// The head of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireHeader {
    pub at: u64,
    pub launch: u64,
    pub task: u64,
    pub kind: u32,
    pub reserved: u32,
}

/// A process was created.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireLaunch {
    pub header: WireHeader,
    /// When the creator entered the call.
    pub create: u64,
    pub parent: u64,
    pub parent_task: u64,
    /// The parent in the kernel's sense, which reaps the process. With CLONE_PARENT it is not the
    /// creator. 0: it is not followed.
    pub reaper: u64,
    /// CLONE_* flags as passed, and CLONE_ON_OWN_STACK.
    pub flags: u64,
    pub parent_rss_pages: u64,
    pub parent_table_bytes: u64,
    /// When the creator's surrounding calls before this launch began (`surrounding_since`); 0:
    /// there were none.
    pub prepare: u64,
    /// When the creator's surrounding calls after its last reaping ended (`tidied`); 0: there were
    /// none.
    pub parent_tidied: u64,
    /// Number of the system call that created the process; negative if its entry was not observed.
    pub syscall: i32,
    pub pid: u32,
    pub pid_for_reaper: u32,
    /// Minor faults of the creator since its last launch or reaping; UNKNOWN_COUNT before the
    /// first.
    pub parent_faults: u32,
}

/// A thread was created.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireThread {
    pub header: WireHeader,
    pub creator: u64,
    pub tid: u32,
    pub reserved: u32,
}

/// A process that existed before the recording is followed from now on.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireAdopted {
    pub header: WireHeader,
    pub pid: u32,
    pub reserved: u32,
    pub comm: [u8; COMM_BYTES],
}

/// An `execve` failed. `path_bytes` bytes of its path follow, including the NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecFailed {
    pub header: WireHeader,
    pub enter: u64,
    pub errno: i32,
    pub path_bytes: u32,
}

/// An `execve` succeeded. Path, interpreter, argv and the components of the working directory
/// (innermost first, each NUL-terminated), and the beginning and the end of the environment follow,
/// with the lengths given here.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecuted {
    pub header: WireHeader,
    pub first_run: u64,
    pub enter: u64,
    pub enter_cpu: u64,
    /// Size of the complete argv in bytes, of which `copied_argv_bytes` were copied.
    pub argv_bytes: u64,
    pub path_bytes: u32,
    pub interpreter_bytes: u32,
    pub copied_argv_bytes: u32,
    pub cwd_bytes: u32,
    /// Whether the walk of the working directory reached the root.
    pub cwd_complete: u32,
    /// Number of calls of close and close_range since the process was created, or UNKNOWN_COUNT.
    pub setup_closes: u32,
    /// Time spent on these calls in nanoseconds, see `close_run_since`.
    pub setup_close_span: u64,
    /// Bytes copied from the start of the environment; 0 for programs whose environment is not
    /// read.
    pub environment_bytes: u32,
    /// Bytes copied from the end of the environment; 0 if the first copy contains all of it.
    pub environment_end_bytes: u32,
}

/// The loader has finished, so the program itself starts to run.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireLoaded {
    pub header: WireHeader,
    pub returned: u64,
    pub return_cpu: u64,
    pub load_end: u64,
    pub load_cpu: u64,
    pub loader: u32,
    /// Number of files that the loader opened up to `load_end`.
    pub load_opens: u32,
    /// Number of failed lookups up to `load_end`.
    pub load_failed_opens: u32,
    /// CACHE_*.
    pub load_cache: u32,
}

/// A thread begins to exit.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExited {
    pub header: WireHeader,
    pub first_run: u64,
    pub exit_group_entered: u64,
    /// CPU time of the thread at its exit_group call, or, without such a call, at `header.at`.
    pub cpu: u64,
    /// CPU time of the thread when its program began its work; 0: not observed.
    pub work_cpu: u64,
    /// Resident pages of the process; 0 if the kernel has already freed its memory.
    pub exit_rss_pages: u64,
    pub wait_status: i32,
    /// 1: the last thread of its process.
    pub last_thread: u32,
    /// Minor faults of the thread since its last launch or reaping; UNKNOWN_COUNT if it had none.
    pub exit_faults: u32,
    pub reserved: u32,
}

/// A thread left the CPU for the last time. It had been on that CPU since `on`. `cpu` is its CPU
/// time up to `zombie`, the moment when its process became a zombie, if that moment is known.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireGone {
    pub header: WireHeader,
    pub on: u64,
    pub cpu: u64,
    pub zombie: u64,
    /// 1: the process needs no reaping, or has already been reaped.
    pub auto_reaped: u32,
    /// Number of system calls that the thread entered since `on`.
    pub calls: u32,
}

/// The process (`header.launch`) waited for a child and reaped it.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireReaped {
    pub header: WireHeader,
    pub pid: u32,
    pub reserved: u32,
}

/// A thread got a CPU at `header.at`. The record describes the time before: on a CPU from `on` to
/// `off`, then off-CPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSlice {
    pub header: WireHeader,
    pub on: u64,
    pub off: u64,
    pub argument: u64,
    pub waker: WireWaker,
    pub syscall: i32,
    pub reason: u32,
    pub object_inode: u64,
    pub object_device: u32,
    pub object_kind: u32,
    /// Number of system calls that the thread entered between `on` and `off`.
    pub calls: u32,
    /// The system call's return value, with WAKER_CALL_RETURNED.
    pub result: i32,
}

/// The path of a file that a thread waits for; the slice with the wait comes later. The path's
/// components (innermost first, each NUL-terminated) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireFileNamed {
    pub header: WireHeader,
    pub inode: u64,
    pub device: u32,
    pub path_bytes: u32,
    /// 1: the path is complete, that is, the walk reached the root.
    pub complete: u32,
    pub reserved: u32,
}

/// The other end of a connected internet socket that a thread waits for; the slice with the wait
/// comes later.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WirePeerNamed {
    pub header: WireHeader,
    pub inode: u64,
    /// The peer's address in network byte order; IPv4 addresses have only the first four bytes.
    pub address: [u8; 16],
    /// The socket's own address, in the same form.
    pub own_address: [u8; 16],
    pub device: u32,
    /// Inode of the socket's network namespace.
    pub network: u32,
    /// AF_INET or AF_INET6.
    pub family: u16,
    /// IPPROTO_TCP or another.
    pub protocol: u16,
    /// The peer's port in network byte order.
    pub port: [u8; 2],
    pub reserved: u16,
}

/// The settings of the BPF programs: constants of the loaded object.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSettings {
    /// Inode of the recorder's pid namespace, in which pids are reported.
    pub pid_namespace: u32,
    /// 1: follow every process of the machine.
    pub follow_all: u32,
    /// 1: follow threads that a seeded process had before the recording.
    pub follow_old_threads: u32,
    /// 1: report the stacks of launching threads.
    pub stacks: u32,
    /// 1: also report the mappings of these threads' processes, if the kernel lets BPF programs
    /// walk mappings.
    pub emit_mappings: u32,
    /// Inode of the recorder's mount namespace. Files of another namespace are visible only while a
    /// process in it is alive.
    pub mount_namespace: u32,
    /// 1: report the script line of each launch.
    pub script_lines: u32,
    /// Number of possible CPUs.
    pub cpus: u32,
    pub page_bytes: u32,
    /// 1: a thread can lose the CPU while a BPF program runs.
    pub preemptible: u32,
    /// 1: Node.js programs report their call sites (`record --node-lines`).
    pub node_lines: u32,
    pub reserved: u32,
    /// The reader is woken if the ring buffer contains more bytes than this.
    pub wakeup_bytes: u64,
    /// Nanoseconds between two samples; 0: no samples.
    pub sample_period: u64,
}

/// The kernel function in which threads wait for the answer of a permission scanner.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireScannerCode {
    /// Address of the function; 0: unknown.
    pub start: u64,
    pub bytes: u64,
}

/// Variables that the programs and the collector share while recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireShared {
    /// The last number assigned to a launch or thread.
    pub last_id: u64,
    /// CLOCK_MONOTONIC minus the scheduler's clock; 0: not known yet.
    pub arrival_offset: i64,
    /// Level of the recorder's pid namespace, plus one; 0: not found yet.
    pub pid_level_plus_one: u32,
    pub reserved: u32,
}

/// `WireCost`: the entry and the return of a system call.
pub const COST_ENTER: u32 = 0;
pub const COST_RETURN: u32 = 1;
/// `WireCost`: the creation of a process or thread, an exec, and the end of a thread.
pub const COST_FORK: u32 = 2;
pub const COST_EXEC: u32 = 3;
pub const COST_EXIT: u32 = 4;
/// Number of the events whose cost is measured.
pub const COST_END: u32 = 5;

/// What a BPF program itself has cost so far on a CPU, at events of followed threads.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireCost {
    /// When the current run began; 0: it is not measured.
    pub since: u64,
    /// Number of runs so far, followed threads or not.
    pub runs: u64,
    /// Number of measured runs, and their duration.
    pub measured: u64,
    pub span: u64,
}

/// A thread that the BPF program `on_seed` will start or stop following.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSeed {
    /// The thread's id in the recorder's pid namespace.
    pub pid: u32,
    /// 1: stop following the thread; 0: start.
    pub remove: u32,
    /// Result: 1 if the thread exists.
    pub found: u32,
    /// Result: the negative error number of the map update; 0: none.
    pub failed: i32,
    /// The thread's map entry.
    pub task: WireTask,
}
