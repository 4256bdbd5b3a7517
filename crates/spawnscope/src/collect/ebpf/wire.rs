//! The wire format between the BPF programs and the collector: the bytes of the ring buffer. Written once, here;
//! `build.rs` generates the C header `wire.h` from this file. Instants are CLOCK_MONOTONIC nanoseconds; 0 is "not
//! seen". Every record begins with `WireHeader`, whose `kind` says which of the structs below it is.

#![expect(dead_code, reason = "some constants and fields are for the C side only")]

mod python;
#[cfg_attr(target_arch = "x86_64", path = "wire/registers/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "wire/registers/aarch64.rs")]
mod registers;
mod scripts;
mod stacks;
mod task;
mod wakers;

pub use python::*;
pub use registers::*;
pub use scripts::*;
pub use stacks::*;
pub use task::*;
pub use wakers::*;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `kind` of `WireLaunch`.
pub const KIND_LAUNCH: u32 = 1;
/// `kind` of `WireThread`.
pub const KIND_THREAD: u32 = 2;
/// `kind` of `WireAdopted`.
pub const KIND_ADOPTED: u32 = 3;
/// `kind` of `WireExecFailed`.
pub const KIND_EXEC_FAILED: u32 = 4;
/// `kind` of `WireExecuted`.
pub const KIND_EXECUTED: u32 = 5;
/// `kind` of `WireLoaded`.
pub const KIND_LOADED: u32 = 6;
/// `kind` of `WireExited`.
pub const KIND_EXITED: u32 = 7;
/// `kind` of `WireGone`.
pub const KIND_GONE: u32 = 8;
/// `kind` of `WireReaped`.
pub const KIND_REAPED: u32 = 9;
/// `kind` of `WireSlice`.
pub const KIND_SLICE: u32 = 10;
/// Not a record: processes and threads for which the kernel had no memory to follow them.
pub const KIND_UNFOLLOWED: u32 = 11;
/// `kind` of `WireFileNamed`.
pub const KIND_FILE_NAMED: u32 = 12;
/// `kind` of `WireSlice`: the thread has not got a CPU again, or still has the one it got, since the recording ends at `header.at`.
pub const KIND_LAST_SEEN: u32 = 13;
/// `kind` of `WireExecutableMet`.
pub const KIND_EXECUTABLE_MET: u32 = 20;
/// `kind` of `WireScriptCalled`.
pub const KIND_SCRIPT_CALLED: u32 = 21;
/// `kind` of `WirePythonCalled`.
pub const KIND_PYTHON_CALLED: u32 = 24;
/// `kind` of `WireMapping`.
pub const KIND_MAPPING: u32 = 30;
/// `kind` of `WireStack`.
pub const KIND_STACK: u32 = 31;
/// `kind` of `WireSample`.
pub const KIND_SAMPLE: u32 = 32;
/// `kind` of `WireImage`.
pub const KIND_IMAGE: u32 = 33;
/// `kind` of lost events of followed threads: the kernel skipped the programs.
pub const KIND_SKIPPED: u32 = 34;
/// More than the last kind: the size of the table of losses.
pub const KIND_END: u32 = 35;

/// More than this between two errands of a thread is work of its own.
pub const ERRAND_GAP_NS: u64 = 30_000;

/// Longest path kept, with its NUL (the kernel's PATH_MAX).
pub const PATH_BYTES: u32 = 4096;
/// Longest interpreter name kept, with its NUL (the kernel's limit for a `#!` line).
pub const INTERPRETER_BYTES: u32 = 256;
/// Most bytes of an argv kept.
pub const ARGV_BYTES: u32 = 4096;
/// Longest file name within a directory, with its NUL.
pub const NAME_BYTES: u32 = 256;
/// Most directories of a working directory kept.
pub const CWD_DEPTH: u32 = 40;
/// Room for all of these behind a `WireExecuted`, and one more file name for the verifier.
pub const EXECUTED_DATA_BYTES: u32 = 12800;
/// Most bytes of a stack copied.
pub const STACK_BYTES: u32 = 16384;
/// Where a stack cannot be copied as a whole, it is in such pieces: the page size.
pub const STACK_PIECE_BYTES: u32 = 4096;
/// Most executable mappings of a process told.
pub const MOST_MAPPINGS: u32 = 2048;
/// Most threads followed at a time where the kernel has no storage for tasks.
pub const MOST_HASHED_TASKS: u32 = 32768;
/// Length of a thread's name (TASK_COMM_LEN).
pub const COMM_BYTES: usize = 16;

/// `setup_closes`: this was not the process's first exec, or some of its system calls were not seen.
pub const NOT_COUNTED: u32 = 0xffff_ffff;

/// In `flags`, as no call of the kernel has it: clone was given no stack, so that the child is on the caller's, or a copy of it.
pub const CLONE_ON_OWN_STACK: u64 = 0x4000_0000_0000_0000;

/// `cache`: the loader did not ask for /etc/ld.so.cache.
pub const CACHE_NOT_ASKED_FOR: u32 = 0;
/// `cache`: it opened it.
pub const CACHE_OPENED: u32 = 1;
/// `cache`: it could not open it.
pub const CACHE_FAILED: u32 = 2;

/// `loader`: the image has no interpreter.
pub const LOADER_NONE: u32 = 0;
/// `loader`: `load_end` is known.
pub const LOADER_DONE: u32 = 1;
/// `loader`: there is one, but its end was not seen.
pub const LOADER_UNKNOWN: u32 = 2;

/// `left`: just created, never ran.
pub const LEFT_CREATED: u32 = 0;
/// `left`: could have gone on.
pub const LEFT_PREEMPTED: u32 = 1;
/// `left`: interruptible sleep.
pub const LEFT_INTERRUPTIBLE: u32 = 2;
/// `left`: uninterruptible sleep.
pub const LEFT_UNINTERRUPTIBLE: u32 = 3;
/// `left`: stopped.
pub const LEFT_STOPPED: u32 = 4;

/// `object_kind`: not a wait for one, or not known which. The others are numbered as `event::ObjectKind::ALL` lists them, from 1.
pub const OBJECT_UNKNOWN: u32 = 0;
pub const OBJECT_PIPE: u32 = 1;
pub const OBJECT_FIFO: u32 = 2;
pub const OBJECT_UNIX_SOCKET: u32 = 3;
pub const OBJECT_SOCKET: u32 = 4;
pub const OBJECT_CHARACTER_DEVICE: u32 = 5;
pub const OBJECT_BLOCK_DEVICE: u32 = 6;
pub const OBJECT_FILE: u32 = 7;
pub const OBJECT_DIRECTORY: u32 = 8;
/// Several kinds, told apart by the first eight bytes of their name, which stand for the inode.
pub const OBJECT_ANONYMOUS: u32 = 9;
pub const OBJECT_PIDFD: u32 = 13;
pub const OBJECT_PERMISSION: u32 = 15;

/// What every record begins with.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireHeader {
    pub at: u64,
    pub launch: u64,
    pub task: u64,
    pub kind: u32,
    pub reserved: u32,
}

/// A process came into being.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireLaunch {
    pub header: WireHeader,
    pub entered: u64,
    pub parent: u64,
    pub parent_task: u64,
    /// The process whose child it is: not the creator with CLONE_PARENT; 0 when that one is not followed.
    pub reaper: u64,
    /// CLONE_* flags, as given, and CLONE_ON_OWN_STACK.
    pub flags: u64,
    pub parent_rss_pages: u64,
    pub parent_table_bytes: u64,
    /// The creator's errands before this launch, and after its last reaping, see `errand_since` and `tidied`; 0: none.
    pub prepared: u64,
    pub tidied: u64,
    /// Number of the system call; negative when its entry was not seen.
    pub syscall: i32,
    pub pid: u32,
    pub pid_for_reaper: u32,
    /// Minor faults of the creator since its last launch or reaping; NOT_COUNTED before the first.
    pub faults: u32,
}

/// A thread came into being.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireThread {
    pub header: WireHeader,
    pub creator: u64,
    pub tid: u32,
    pub reserved: u32,
}

/// A process that existed before is followed from now on.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireAdopted {
    pub header: WireHeader,
    pub pid: u32,
    pub reserved: u32,
    pub comm: [u8; COMM_BYTES],
}

/// An `execve` failed. `path_bytes` bytes of its path follow, with the NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecFailed {
    pub header: WireHeader,
    pub entered: u64,
    pub errno: i32,
    pub path_bytes: u32,
}

/// An `execve` succeeded. Path, interpreter, argv and the components of the working directory (innermost first, each
/// ended by NUL) follow, with the lengths given here.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExecuted {
    pub header: WireHeader,
    pub first_run: u64,
    pub entered: u64,
    pub cpu_at_entry: u64,
    /// Bytes the whole argv takes.
    pub argv_total: u64,
    pub path_bytes: u32,
    pub interpreter_bytes: u32,
    pub argv_bytes: u32,
    pub cwd_bytes: u32,
    /// Whether the working directory's root was reached.
    pub cwd_complete: u32,
    /// Calls of close and close_range since the process was created, or NOT_COUNTED.
    pub setup_closes: u32,
    /// Time spent on them, see `close_run_since`.
    pub setup_close_span: u64,
}

/// The image is ready.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireLoaded {
    pub header: WireHeader,
    pub exec_returned: u64,
    pub cpu_at_return: u64,
    pub load_end: u64,
    pub cpu_at_load_end: u64,
    pub loader: u32,
    /// What the loader did up to `load_end`: files opened, looks for files that failed, what became of the cache.
    pub opens: u32,
    pub failed_opens: u32,
    pub cache: u32,
}

/// A thread begins to exit.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireExited {
    pub header: WireHeader,
    pub first_run: u64,
    pub exit_group_entered: u64,
    /// CPU time when it called exit_group, or now.
    pub cpu: u64,
    pub wait_status: i32,
    pub last_thread: u32,
}

/// A thread left the CPU for good; it had got it at `on`. `cpu` counts to `zombie`, where that is known.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireGone {
    pub header: WireHeader,
    pub on: u64,
    pub cpu: u64,
    pub zombie: u64,
    /// 1: nobody has to reap its process (any more).
    pub released: u32,
    /// System calls that it entered since `on`.
    pub calls: u32,
}

/// The process (`header.launch`) waited for a child and got it.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireReaped {
    pub header: WireHeader,
    pub pid: u32,
    pub reserved: u32,
}

/// A thread got a CPU at `header.at`: what it did before that.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSlice {
    pub header: WireHeader,
    pub on: u64,
    pub off: u64,
    pub argument: u64,
    pub waker: WireWaker,
    pub syscall: i32,
    pub left: u32,
    pub object_inode: u64,
    pub object_device: u32,
    pub object_kind: u32,
    /// System calls that it entered between `on` and `off`.
    pub calls: u32,
    /// See WAKER_CALL_RETURNED.
    pub result: i32,
}

/// The path of a file that a thread waits for; the slice that tells of the wait comes later. The path's components
/// (innermost first, each ended by NUL) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireFileNamed {
    pub header: WireHeader,
    pub inode: u64,
    pub device: u32,
    pub path_bytes: u32,
    /// Whether the path's root was reached.
    pub complete: u32,
    pub reserved: u32,
}

/// How the programs behave: constants of the loaded object.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSettings {
    /// Inode of the recorder's pid namespace: pids are given as it names them.
    pub pid_namespace: u32,
    /// 1: follow every process of the machine.
    pub follow_all: u32,
    /// 1: follow threads that a seeded process had before.
    pub follow_old_threads: u32,
    /// Device of the terminal whose use is to be noticed, as the kernel encodes it; 0: none.
    pub terminal: u32,
    /// 1: tell the stacks of those that launch.
    pub stacks: u32,
    /// 1: and their mappings, where the kernel lets programs walk them.
    pub tell_mappings: u32,
    /// Inode of the recorder's mount namespace: what is in another one can be seen only as long as its processes live.
    pub mount_namespace: u32,
    /// 1: tell where in a script a launch was asked for.
    pub script_lines: u32,
    /// How many CPUs there can be.
    pub cpus: u32,
    /// Of a page.
    pub page_bytes: u32,
    /// 1: a thread can lose the CPU within a program.
    pub preemptible: u32,
    pub reserved: u32,
    /// Bytes in the ring buffer from which on the reader is woken.
    pub wakeup_bytes: u64,
    /// Nanoseconds between two samples; 0: no samples.
    pub sample_period: u64,
}

/// Where the kernel's code lies that waits for the answer of a permission scanner.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireScannerCode {
    /// Its address; 0: not known.
    pub start: u64,
    pub bytes: u64,
}

/// What programs and collector share while recording.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireShared {
    /// The last number given to a launch or thread.
    pub last_id: u64,
    /// CLOCK_MONOTONIC less the scheduler's clock; 0: not known yet.
    pub arrival_offset: i64,
    /// 1: a followed process has read from or written to the terminal.
    pub terminal_used: u32,
    /// Level of the recorder's pid namespace, plus one; 0: not found yet.
    pub pid_level_plus_one: u32,
}

/// A thread that the program `on_seed` is to follow, or to follow no more.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireSeed {
    /// As the recorder's pid namespace names it.
    pub pid: u32,
    /// 1: no more.
    pub remove: u32,
    /// What came of it: 1 when there is such a thread, and the error of putting it into the map.
    pub found: u32,
    pub failed: i32,
    pub task: WireTask,
}
