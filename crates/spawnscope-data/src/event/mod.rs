//! What a collector reports about launches, as plain data, without I/O or policy. Types declared
//! with `table!` are stored as they are reported. Timestamps are CLOCK_MONOTONIC. A field that is
//! stored has the name of its column (without the unit), from the wire format on. Events have
//! defaults in which everything is unknown, so that a collector names only what it knows.

mod callers;
mod machine;
pub mod syscalls;
pub mod variables;

use std::sync::Arc;

use crate::table::Count;

pub use callers::{Chain, Frame, Language};
pub use machine::{CALIBRATION_PAUSE, Calibration, Constant, Missing};

/// An instant of CLOCK_MONOTONIC in nanoseconds, or a span of time if the name says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Returns the span from `earlier` to `self`; zero if `earlier` is later, which can happen if
    /// the two times were read on different CPUs.
    #[must_use]
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A process or thread id in the recorder's pid namespace, as the recorder's user sees it in `ps`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(pub i32);

/// One launch, unique within a recording even if its pid is reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// One thread, unique within a recording. A process's first thread has the same number as its
/// launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u64);

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Mechanism {
        /// `fork(2)`, or `clone(2)` without shared resources, which is what libc's `fork` calls.
        Fork = "fork",
        Vfork = "vfork",
        /// `clone` or `clone3` with CLONE_VM and CLONE_VFORK: `posix_spawn` and similar functions.
        PosixSpawn = "posix_spawn",
        /// `clone(2)` with any other flags.
        Clone = "clone",
        /// `clone3(2)` with any other flags.
        Clone3 = "clone3",
    }
}

/// One event. Collectors emit events in the order in which they saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub at: Nanos,
    pub launch: LaunchId,
    pub task: TaskId,
    pub kind: EventKind,
}

/// What happened to a process or thread. Byte strings are exactly as in the kernel: any byte but
/// NUL may occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A process that existed before the recording is followed from now on. It is not a launch.
    Adopted {
        pid: Pid,
        name: Vec<u8>,
    },
    /// The recorder released the command, which it had held since creation. The command's setup
    /// begins at `at`.
    Released {
        pid: Pid,
    },
    /// A process was created; `at` is the end of its `create` phase.
    Launched(Launched),
    ThreadStarted {
        tid: Pid,
        creator: TaskId,
    },
    /// An `execve` failed; `at` is the time of its return.
    ExecFailed {
        enter: Nanos,
        path: Vec<u8>,
        errno: i32,
    },
    /// An `execve` passed the point of no return and set up the new image.
    Executed(Executed),
    /// The new image is ready to run; `at` is when the collector learned it.
    Loaded(Loaded),
    Exited(Exited),
    /// A thread left the CPU for the last time. `zombie` is set for the thread whose exit made the
    /// whole process reapable. `auto_reaped` means that the kernel reaped it at that moment. `cpu`
    /// is the thread's total CPU time, if that was seen.
    Gone {
        zombie: Option<Nanos>,
        auto_reaped: bool,
        cpu: Option<Nanos>,
    },
    /// The collector stopped a thread from `since` until `at`.
    Stopped {
        since: Nanos,
    },
    /// `launch` waited for a child and reaped it; `pid` is the child's id in the pid namespace of
    /// `launch`.
    Reaped {
        pid: Pid,
    },
    /// A thread ran on a CPU, left it, and (unless it ended) is back on a CPU at `at`.
    Slice(Slice),
    /// The recording ends at `at`, and the thread has not been on a CPU since the slice's `off`. A
    /// thread still on a CPU at the end is recorded as leaving it there, as if preempted.
    LastSeen(Slice),
    /// The path of a file that a thread began to wait for; for a socket, the address of its peer.
    /// The slice of the wait follows when the wait is over.
    FileNamed {
        device: u32,
        inode: u64,
        path: Vec<u8>,
    },
    /// The process at the other end of a socket that a thread waited for, found by its listening
    /// socket. May arrive after the wait's slice.
    PeerFound {
        device: u32,
        inode: u64,
        pid: Pid,
        name: Vec<u8>,
    },
    /// The call chain in the parent that requested the event's launch. It is a script chain if the
    /// first frame's language is a script language, otherwise a chain in the parent's machine code.
    /// A launch has at most one event for each of the two chains, before or after `Launched`.
    Called(Arc<Chain>),
    /// What a thread did at `at`, or the wait that it began then. A wait is reported when it is
    /// over.
    Sampled(Sampled),
}

/// A sample of a thread. It represents a span of the thread's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The span that the sample represents. On a CPU: the time between two samples. For a wait: its
    /// off-CPU time, plus that of shorter waits since the thread's last sample of a wait.
    pub span: Nanos,
    /// Whether the thread was waiting rather than on a CPU.
    pub is_waiting: bool,
    /// The stack: first in the kernel, then in the thread's own machine code.
    pub chain: Arc<Chain>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    pub parent: LaunchId,
    pub parent_task: TaskId,
    /// The new process's id in the recorder's pid namespace; 0 if it is not visible there.
    pub pid: Pid,
    /// The process that can reap the new process, if that process is followed. With CLONE_PARENT,
    /// this is not `parent`.
    pub reaper: Option<LaunchId>,
    /// The new process's id in its reaper's pid namespace, as wait calls return it.
    pub pid_for_reaper: Pid,
    /// The call that created the process, if that was seen.
    pub mechanism: Option<Mechanism>,
    /// When the parent entered that call: the start of the `create` phase. `None` if that was not
    /// seen.
    pub create: Option<Nanos>,
    /// When the parent began the system calls that prepare the launch (signals, pipes), if there
    /// were any.
    pub prepare: Option<Nanos>,
    /// When the parent, after it last reaped a child, had finished the system calls that clean up
    /// after that child.
    pub parent_tidied: Option<Nanos>,
    /// Minor page faults of the parent's thread since it last launched or reaped a child.
    pub parent_faults: Option<u32>,
    /// The parent's resident set in bytes; may be out of date by a few dozen pages per CPU (the
    /// kernel's per-CPU counters).
    pub parent_rss_bytes: Option<u64>,
    /// The parent's page tables in bytes. `fork` copies them.
    pub parent_table_bytes: Option<u64>,
}

/// A successful `execve`, reported before it returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// When the process first got a CPU, if that was seen.
    pub first_run: Option<Nanos>,
    pub enter: Option<Nanos>,
    /// CPU time of the calling thread when the `execve` was entered.
    pub enter_cpu: Option<Nanos>,
    /// The file name passed to `execve`.
    pub path: Vec<u8>,
    /// The interpreter of a `#!` script (the last one in a chain), if there is one.
    pub interpreter: Option<Vec<u8>>,
    /// Arguments, each NUL-terminated, truncated to the collector's limit.
    pub argv: Vec<u8>,
    /// Size of the whole argv in bytes, NULs included; larger than `argv` if that was truncated.
    pub argv_bytes: u64,
    /// The working directory, if it could be read.
    pub cwd: Option<Vec<u8>>,
    /// The variables of the environment that may be recorded (see the module `variables`). Also
    /// empty if the environment was not read.
    pub variables: Vec<u8>,
    /// The number of calls of `close` and `close_range` between the process's creation and this
    /// exec. `None` for all but the first exec of a launch, and if the calls were not seen.
    pub setup_closes: Option<u32>,
    /// The time inside these calls, plus the time between two consecutive ones if no other system
    /// call is between them.
    pub setup_close_span: Option<Nanos>,
}

/// The end of the `exec` and `load` phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// When the last successful `execve` returned to user space.
    pub returned: Nanos,
    /// CPU time of the thread at that moment, if that was seen.
    pub return_cpu: Option<Nanos>,
    /// Whether the image has a dynamic loader. A static image has no `load` phase.
    pub has_loader: bool,
    /// When the loader was done. `None` if that was not seen; then everything else about the loader
    /// is unknown, too.
    pub load_end: Option<Nanos>,
    pub load_cpu: Option<Nanos>,
    /// Files that the loader opened, not counting `/etc/ld.so.cache`.
    pub load_opens: Option<u32>,
    /// Failed lookups by the loader: opens and other calls that reported a missing file.
    pub load_failed_opens: Option<u32>,
    /// Whether the loader could open `/etc/ld.so.cache`. Also `None` if it did not try.
    pub load_cache: Option<bool>,
}

impl Loaded {
    /// Returns what is known about an image with a loader: when the loader was done, and the
    /// thread's CPU time then. The caller adds when `execve` returned.
    pub fn by_loader(end: Option<(Nanos, Nanos)>) -> Loaded {
        let (load_end, load_cpu) = end.unzip();
        Loaded { has_loader: true, load_end, load_cpu, ..Loaded::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exited {
    /// When the process first got a CPU, if that was seen.
    pub first_run: Option<Nanos>,
    /// When this thread called `exit_group`, if it did: the exit of the whole process begins with
    /// that call.
    pub exit_group_entered: Option<Nanos>,
    pub last_thread: bool,
    /// The status as `wait(2)` encodes it, if that was seen.
    pub wait_status: Option<i32>,
    /// CPU time of the thread when its exit began, if that was seen.
    pub cpu: Option<Nanos>,
    /// CPU time of the thread when the last program it executed first used a file that the
    /// program's arguments name, or first read standard input.
    pub work_cpu: Option<Nanos>,
    /// Minor page faults of the thread since it last launched or reaped a child; `None` if it never
    /// did.
    pub exit_faults: Option<u32>,
    /// Resident set of the process in bytes; `None` if it was already freed.
    pub exit_rss_bytes: Option<u64>,
}

/// A stretch of a thread on a CPU and the stretch off it that follows. The thread is back on a CPU
/// at the event's `at`, or has ended (`LeftCpu::Ended`; then `at` equals `off`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When the thread got the CPU; `None` if it had never run, or if that was not seen.
    pub on: Option<Nanos>,
    /// When it left the CPU (for a new thread: when it was created).
    pub off: Nanos,
    pub reason: LeftCpu,
    /// The system call that the thread was in when it left the CPU.
    pub syscall: Option<Syscall>,
    /// The number of system calls that the thread entered while on the CPU, if they were counted. A
    /// collector whose cost differs between calls counts costs of `recorded_call` instead.
    pub calls: Option<u32>,
    /// What the thread waited for, if it was blocked and the object is known.
    pub object: Option<Object>,
    /// When and by what the thread was woken, if it was blocked and the wake-up was seen.
    pub wake: Option<Wake>,
}

impl Slice {
    /// Returns a slice of which only its middle is known: when and why the thread left the CPU.
    pub fn new(off: Nanos, reason: LeftCpu) -> Slice {
        Slice { on: None, off, reason, syscall: None, calls: None, object: None, wake: None }
    }
}

crate::named_enum! {
    /// Why a thread was off-CPU.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum LeftCpu {
        /// The thread had just been created and had never run.
        Created = "created",
        /// The thread was runnable, but another thread got the CPU.
        Preempted = "preempted",
        /// The thread slept interruptibly: signals could wake it.
        Interruptible = "interruptible",
        /// The thread slept uninterruptibly: signals could not wake it (disk, page fault, vfork).
        Uninterruptible = "uninterruptible",
        /// The thread was stopped by a signal or a tracer.
        Stopped = "stopped",
        Ended = "ended",
    }
}

/// A system call and its first argument (a file descriptor, pid or address).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// The call's number on the architecture of the recording.
    pub number: u32,
    pub argument: u64,
}

/// What a thread waited for inside a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    pub kind: ObjectKind,
    /// The device of its file system, encoded as in the kernel: major << 20 | minor.
    pub device: u32,
    /// The inode in that file system; 0 if all objects of this kind share one inode.
    pub inode: u64,
}

crate::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum ObjectKind {
        Pipe = "pipe",
        Fifo = "fifo",
        UnixSocket = "unix_socket",
        Socket = "socket",
        /// A terminal or other character device.
        CharacterDevice = "character_device",
        BlockDevice = "block_device",
        File = "file",
        Directory = "directory",
        Epoll = "epoll",
        Eventfd = "eventfd",
        Signalfd = "signalfd",
        Timerfd = "timerfd",
        Pidfd = "pidfd",
        /// Any other anonymous inode.
        Anonymous = "anonymous",
        /// A permission scanner's answer (fanotify), which a thread waits for when it opens or
        /// executes a file.
        Permission = "permission",
    }
}

/// The wake-up that ends a wait. From then on, the thread is runnable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    pub at: Nanos,
    pub by: Waker,
    /// Whether it is certain that `by` is the waker. Otherwise, the waker may be an interrupt that
    /// hit the thread `by` while that thread ran.
    pub is_certain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waker {
    Task(TaskId),
    /// A thread that is not followed.
    Other {
        pid: Pid,
        name: Vec<u8>,
    },
    /// An interrupt (timer, disk, network). The thread that it interrupted is unrelated.
    Interrupt,
}

crate::table! {
    /// Lost events of one kind. Every report must mention them.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Loss in lost {
        since 1 {
            /// What kind of event was lost, such as `launch` or `slice`.
            kind: String,
            events: u64 = Count,
        }
    }
}

impl Loss {
    pub fn total(losses: &[Loss]) -> u64 {
        losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.events))
    }
}
