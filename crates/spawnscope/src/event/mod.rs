//! The vocabulary every stage shares: what a collector can say about launches, as plain data.
//! No I/O and no policy here; it imports nothing of the crate. Timestamps are CLOCK_MONOTONIC.

mod callers;
mod machine;
pub mod syscalls;

use std::sync::Arc;

pub use callers::{Chain, Frame, Language};
pub use machine::{CALIBRATION_PAUSE, Calibration, Constant, Missing};

/// Nanoseconds: an instant of CLOCK_MONOTONIC, or a span between two of them where the name says so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The span from `earlier` to `self`; zero when the order is the other way round, which two CPUs can cause.
    #[must_use]
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A process or thread id in the pid namespace of the recorder: what its user would see in `ps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pid(pub i32);

/// One launch, unique within a recording, so that a reused pid never confuses two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaunchId(pub u64);

/// One thread, unique within a recording. A process's first thread has the number of its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(pub u64);

/// How a process was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mechanism {
    /// `fork(2)`, or `clone(2)` with nothing shared, which is what libc's `fork` calls.
    Fork,
    /// `vfork(2)`.
    Vfork,
    /// `clone` or `clone3` with CLONE_VM and CLONE_VFORK: `posix_spawn` and its like.
    PosixSpawn,
    /// `clone(2)` with any other flags.
    Clone,
    /// `clone3(2)` with any other flags.
    Clone3,
}

impl Mechanism {
    /// Every mechanism, in the order of their numbers in a recording.
    pub const ALL: [Mechanism; 5] = [
        Mechanism::Fork,
        Mechanism::Vfork,
        Mechanism::PosixSpawn,
        Mechanism::Clone,
        Mechanism::Clone3,
    ];

    /// The name shown to people and stored in exports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Fork => "fork",
            Mechanism::Vfork => "vfork",
            Mechanism::PosixSpawn => "posix_spawn",
            Mechanism::Clone => "clone",
            Mechanism::Clone3 => "clone3",
        }
    }
}

/// What the parent weighed when it created a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentMemory {
    /// Resident set in bytes; may lag by a few dozen pages for each CPU (the kernel's per-CPU counters).
    pub rss_bytes: u64,
    /// Page tables in bytes: what `fork` has to copy.
    pub page_table_bytes: u64,
}

/// One thing that happened, in the order the collector saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: Nanos,
    /// The process it happened to.
    pub launch: LaunchId,
    /// The thread it happened to.
    pub task: TaskId,
    /// What happened.
    pub kind: EventKind,
}

/// What happened to a process or thread. Byte strings are as the kernel had them: any byte but NUL may occur.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A process that existed before the recording began is now followed (`-p`, `-a`): not a launch.
    Adopted { pid: Pid, name: Vec<u8> },
    /// The root command, held at birth by the recorder, was let go at `at`: its set-up begins here.
    Released { pid: Pid },
    /// A process came into being; `at` is the end of its `create` phase.
    Launched(Launched),
    /// A thread came into being in `launch`.
    ThreadStarted { tid: Pid, creator: TaskId },
    /// An `execve` failed; `at` is its return.
    ExecFailed { entered: Nanos, path: Vec<u8>, errno: i32 },
    /// An `execve` passed the point of no return and the new image stands.
    Executed(Executed),
    /// The new image is ready to run; `at` is when the collector knew it.
    Loaded(Loaded),
    /// A thread began to exit.
    Exited(Exited),
    /// A thread left the CPU for good. `zombie` is set by the thread with which its whole process became reapable.
    /// `cpu` is all the CPU time it ever had.
    Gone {
        zombie: Option<Nanos>,
        auto_reaped: bool,
        cpu: Nanos,
    },
    /// `launch` waited for a child and got it; `pid` is the child as `launch`'s own pid namespace names it.
    Reaped { pid: Pid },
    /// A thread was on a CPU, left it, and (unless it ended) is back at `at`.
    Slice(Slice),
    /// The recording ends at `at`, and the thread has not been back on a CPU since the slice's `off`. One that has a CPU to the
    /// end leaves it there, as if another one got it.
    LastSeen(Slice),
    /// The path of a file that a thread began to wait for; the slice of that wait follows when it is over.
    FileNamed { device: u32, inode: u64, path: Vec<u8> },
    /// Where its parent asked for a launch (the event's): in a script, when the chain begins with a frame of a script's
    /// language, else in the parent's machine code. May come before or after `Launched`, and once for each of the two.
    Called(Arc<Chain>),
    /// What a thread did at `at`, or what it began to wait for then; told when it is done with that.
    Sampled(Sampled),
}

/// A moment in the life of a thread that stands for a span of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// How long: between two looks at a thread with a CPU; of a wait, the time off the CPU, with that of shorter waits
    /// since the thread's last sample of one.
    pub span: Nanos,
    /// Whether the thread waited, or had a CPU.
    pub is_waiting: bool,
    /// Where, in the kernel and then in its own machine code.
    pub chain: Arc<Chain>,
}

/// The birth of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The process that asked for it.
    pub parent: LaunchId,
    /// The thread that asked for it.
    pub parent_task: TaskId,
    /// The new process, as the recorder's pid namespace names it; 0 when that does not see it.
    pub pid: Pid,
    /// The process whose child it is, when that one is followed: not `parent` with CLONE_PARENT.
    pub reaper: Option<LaunchId>,
    /// The new process, as its reaper's pid namespace names it: what wait calls return.
    pub pid_for_reaper: Pid,
    /// The call that created it, when that was seen.
    pub mechanism: Option<Mechanism>,
    /// When the parent entered that call: the start of `create`; `None` when that was not seen.
    pub entered: Option<Nanos>,
    /// When the parent began the system calls that go before it (signals, pipes), if there were any.
    pub prepared: Option<Nanos>,
    /// When the parent was done with the system calls that went after the last reaping of a child.
    pub parent_tidied: Option<Nanos>,
    /// Page faults of the parent's thread, without input, since it last launched or reaped a child.
    pub parent_faults: Option<u32>,
    /// The parent's weight at that time.
    pub parent_memory: Option<ParentMemory>,
}

/// A successful `execve`, seen before it returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// When the process first got a CPU, if that was seen.
    pub first_run: Option<Nanos>,
    /// When the `execve` was entered.
    pub entered: Option<Nanos>,
    /// CPU time of the calling thread when the `execve` was entered.
    pub cpu_at_entry: Nanos,
    /// The file as given to `execve`.
    pub path: Vec<u8>,
    /// The interpreter of a `#!` script (the last of a chain), when there is one.
    pub interpreter: Option<Vec<u8>>,
    /// Arguments, each ended by NUL, cut to what the collector keeps.
    pub argv: Vec<u8>,
    /// Bytes that the whole argv takes, NULs included; larger than `argv` when that was cut.
    pub argv_bytes: u64,
    /// The working directory, when it could be read.
    pub cwd: Option<Vec<u8>>,
    /// The descriptors it closed before; `None` for any but the first exec of a launch, and when that was not seen.
    pub closing: Option<Closing>,
}

/// How a process closed descriptors between its creation and its first exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closing {
    /// Calls of `close` and `close_range`.
    pub calls: u32,
    /// Time inside them, and between two of them with no other system call between.
    pub span: Nanos,
}

/// The end of `exec` and of `load`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// When the last successful `execve` returned to user space.
    pub exec_returned: Nanos,
    /// CPU time of the thread at that return.
    pub cpu_at_return: Nanos,
    /// What is known of the dynamic loader.
    pub loader: Loader,
}

/// What is known of an image's dynamic loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    /// The image has no interpreter: there is no `load` phase.
    None,
    /// The loader was done at `at`, the thread's CPU time being `cpu`.
    Done {
        at: Nanos,
        cpu: Nanos,
        search: LibrarySearch,
    },
    /// There is a loader, but its end was not seen.
    Unknown,
}

/// How a dynamic loader found its libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibrarySearch {
    /// Files that it opened, `/etc/ld.so.cache` apart.
    pub opens: u32,
    /// Looks for a file that failed: opens, and other calls that said there is no such file.
    pub failed_opens: u32,
    /// Whether it could open `/etc/ld.so.cache`; `None`: it did not try.
    pub cache: Option<bool>,
}

/// A thread that began to exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exited {
    /// When the process first got a CPU, if that was seen.
    pub first_run: Option<Nanos>,
    /// When this thread called `exit_group`, if it did: the whole process begins to exit there.
    pub exit_group_entered: Option<Nanos>,
    /// Whether this was the last thread of its process.
    pub last_thread: bool,
    /// The status as `wait(2)` encodes it.
    pub wait_status: i32,
    /// CPU time of the thread when its exit began.
    pub cpu: Nanos,
}

/// A stretch on a CPU and the stretch off it that followed. The thread is back on a CPU at the event's `at`,
/// or ended when `left` says so (then `at` equals `off`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// When the thread had got the CPU; `None` for a thread that had never run, or when that was not seen.
    pub on: Option<Nanos>,
    /// When it left the CPU (for a new thread: when it was created).
    pub off: Nanos,
    /// Why it left.
    pub left: LeftCpu,
    /// The system call it sat in when it left.
    pub syscall: Option<Syscall>,
    /// System calls that it entered while it was on the CPU.
    pub calls: u32,
    /// What it waited for, if it was blocked and that is known.
    pub object: Option<Object>,
    /// Who woke it, when, if it was blocked and that was seen.
    pub wake: Option<Wake>,
}

/// Why a thread was not on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeftCpu {
    /// It was just created and had never run.
    Created,
    /// It could have gone on, but another thread got the CPU.
    Preempted,
    /// It slept and signals could wake it.
    Interruptible,
    /// It slept and signals could not wake it (disk, page fault, vfork).
    Uninterruptible,
    /// It was stopped by a signal or a tracer.
    Stopped,
    /// It ended.
    Ended,
}

impl LeftCpu {
    /// Every reason, in the order of their numbers in a recording.
    pub const ALL: [LeftCpu; 6] = [
        LeftCpu::Created,
        LeftCpu::Preempted,
        LeftCpu::Interruptible,
        LeftCpu::Uninterruptible,
        LeftCpu::Stopped,
        LeftCpu::Ended,
    ];
}

/// A system call and its first argument (a file descriptor, pid or address).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syscall {
    /// Its number on the recording's architecture.
    pub number: u32,
    /// Its first argument.
    pub argument: u64,
}

/// What a thread waited for inside a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// The file system it lies on, as the kernel encodes a device: major << 20 | minor.
    pub device: u32,
    /// Its number there; 0 where all of a kind have the same.
    pub inode: u64,
}

/// The kind of an `Object`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ObjectKind {
    /// A pipe without a name.
    Pipe,
    /// A pipe with a name.
    Fifo,
    /// A socket between processes of this machine.
    UnixSocket,
    /// Any other socket.
    Socket,
    /// A terminal and the like.
    CharacterDevice,
    /// A disk.
    BlockDevice,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A set of descriptors, made with `epoll_create`.
    Epoll,
    /// A counter, made with `eventfd`.
    Eventfd,
    /// Signals, as a descriptor.
    Signalfd,
    /// A timer, as a descriptor.
    Timerfd,
    /// A process, as a descriptor.
    Pidfd,
    /// Another descriptor of something that is no file.
    Anonymous,
    /// The permission of a scanner (fanotify) to open or execute a file.
    Permission,
}

impl ObjectKind {
    /// Every kind, in the order of their numbers in a recording.
    pub const ALL: [ObjectKind; 15] = [
        ObjectKind::Pipe,
        ObjectKind::Fifo,
        ObjectKind::UnixSocket,
        ObjectKind::Socket,
        ObjectKind::CharacterDevice,
        ObjectKind::BlockDevice,
        ObjectKind::File,
        ObjectKind::Directory,
        ObjectKind::Epoll,
        ObjectKind::Eventfd,
        ObjectKind::Signalfd,
        ObjectKind::Timerfd,
        ObjectKind::Pidfd,
        ObjectKind::Anonymous,
        ObjectKind::Permission,
    ];

    /// The name in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Pipe => "pipe",
            ObjectKind::Fifo => "fifo",
            ObjectKind::UnixSocket => "unix_socket",
            ObjectKind::Socket => "socket",
            ObjectKind::CharacterDevice => "character_device",
            ObjectKind::BlockDevice => "block_device",
            ObjectKind::File => "file",
            ObjectKind::Directory => "directory",
            ObjectKind::Epoll => "epoll",
            ObjectKind::Eventfd => "eventfd",
            ObjectKind::Signalfd => "signalfd",
            ObjectKind::Timerfd => "timerfd",
            ObjectKind::Pidfd => "pidfd",
            ObjectKind::Anonymous => "anonymous",
            ObjectKind::Permission => "permission",
        }
    }
}

/// The end of a blocked stretch: the thread could run from here on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub at: Nanos,
    /// Through whom.
    pub by: Waker,
    /// Whether it was certainly not an interrupt that hit that thread.
    pub is_certain: bool,
}

/// Who woke a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waker {
    /// A thread that is followed.
    Task(TaskId),
    /// Another thread of the machine.
    Other { pid: Pid, name: Vec<u8> },
    /// An interrupt (timer, disk, network): whoever was running then has nothing to do with it.
    Interrupt,
}

/// Events that were dropped, by kind; a report must say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// What was dropped, such as `launch` or `slice`.
    pub kind: String,
    /// How many.
    pub events: u64,
}
