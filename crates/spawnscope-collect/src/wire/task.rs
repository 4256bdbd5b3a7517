//! The part of the wire format that the programs keep for each followed thread.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireWaker;

/// Value of the map of followed threads. The collector inserts the first ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireTask {
    pub task: u64,
    pub launch: u64,
    pub first_run: u64,
    /// When it got the CPU, when it left it, and its CPU time at that moment.
    pub on: u64,
    pub off: u64,
    pub cpu: u64,
    pub waker: WireWaker,
    /// Entry of the current system call, for calls whose duration matters.
    pub entered: u64,
    pub argument: u64,
    pub clone_flags: u64,
    pub exec_entered: u64,
    pub exec_entry_cpu: u64,
    pub exec_returned: u64,
    pub exec_return_cpu: u64,
    pub exit_group_entered: u64,
    pub exit_group_cpu: u64,
    pub zombie: u64,
    pub zombie_cpu: u64,
    pub interpreter_base: u64,
    pub cache_address: u64,
    pub load_candidate: u64,
    pub load_candidate_cpu: u64,
    /// During setup, when the latest call of close or close_range was entered or returned, if no other system call followed;
    /// otherwise 0. The intervals between these instants add up to `setup_close_span`.
    pub close_run_since: u64,
    pub setup_close_span: u64,
    /// When the thread's current surrounding calls began, and when the last of them returned. They accompany a launch:
    /// on signals, pipes, descriptors, children; less than SURROUNDING_GAP_NS apart, with no other call in between.
    pub surrounding_since: u64,
    pub surrounding_last: u64,
    /// When the surrounding calls after its last reaping ended.
    pub tidied: u64,
    /// Its minor faults at its last launch or reaping, plus one; 0 before the first.
    pub faults_then: u64,
    /// Number of the system call it is in; -1 in user space.
    pub syscall: i32,
    pub left: u32,
    pub cache_fd: i32,
    pub load_state: u32,
    /// TASK_* flags.
    pub flags: u32,
    pub setup_closes: u32,
    /// Files opened by the loader and failed lookups so far; and the same numbers at `load_candidate`.
    pub load_opens: u32,
    pub load_failed_opens: u32,
    pub candidate_opens: u32,
    pub candidate_failed_opens: u32,
    /// CACHE_*.
    pub cache: u32,
    pub object_kind: u32,
    /// The finished wait that has not been emitted yet: its waker, the start of the on-CPU stretch before it, and the `calls` of
    /// that stretch.
    pub held: WireWaker,
    pub held_on: u64,
    pub object_inode: u64,
    /// Second argument of the current system call, for calls that wait for several descriptors.
    pub second_argument: u64,
    /// Its third argument, for select.
    pub third_argument: u64,
    pub object_device: u32,
    /// System calls that it entered since it got the CPU.
    pub calls: u32,
    /// For a dash subshell: the line that it was forked for (0: unknown), and the line of the head of the enclosing function.
    pub script_line: u32,
    pub script_function: u32,
    /// The input of its commands (DASH_READS_*), and the largest line count of the strings being evaluated.
    pub script_input: u32,
    pub script_counted: u32,
    /// The smallest line that its own position can have, until it is reported.
    pub script_bound: u32,
    /// Number of files that it moved to high descriptors, as dash does with files that it reads commands from; not counted beyond
    /// two.
    pub script_files: u32,
    /// For a process's first thread: how often the process mapped code or made memory executable.
    pub code_changes: u32,
    /// The mappings reported for this thread's launches (0: none), and the values of `code_changes` and of the kernel's count of
    /// executable pages at that time.
    pub reported_changes: u32,
    pub reported_image: u64,
    pub reported_pages: u64,
    /// The number under which its mappings must be reported because samples refer to it; 0: none.
    pub wanted_image: u64,
    /// Total time of its waits since the last one that was sampled.
    pub waited: u64,
    /// 1: a CPU has begun to follow this process, which existed before the recording.
    pub claimed: u32,
    pub held_calls: u32,
    /// Its stack pointer when its program started, until its work begins; 0: not looked for.
    pub entry_stack: u64,
    /// Its CPU time when its program began its work; 0: not seen.
    pub work_cpu: u64,
    /// System calls that could have begun it.
    pub work_looks: u32,
    /// 1: the last of these opened a library or module of the system, so that the program still prepares.
    pub work_loading: u32,
}

/// `flags` of a task: do not follow it or its children.
pub const TASK_IGNORED: u32 = 1;
/// `flags` of a task: the last thread of its process to exit.
pub const TASK_LAST_THREAD: u32 = 2;
/// `flags` of a task: its `execve` succeeded and has not returned yet.
pub const TASK_EXECUTED: u32 = 4;
/// `flags` of a task: the first thread of a process that was created during the recording and has not called exec yet.
pub const TASK_IN_SETUP: u32 = 8;
/// `flags` of a task: it makes the surrounding calls that follow a reaping.
pub const TASK_TIDYING: u32 = 16;
/// `flags` of a task: the shell, or one of its ancestors, was created at an unknown line.
pub const TASK_LINE_DOUBT: u32 = 32;
/// `flags` of a task: a shell forked by another; what it executes is at line `script_line` or later.
pub const TASK_SUBSHELL: u32 = 64;
/// `flags` of a task: its call site is reported when it begins to execute.
pub const TASK_CALL_PENDING: u32 = 128;
/// `flags` of a task: its own line is the call site, not the line of the shell that forked it.
pub const TASK_OWN_LINE: u32 = 256;
/// `flags` of a task: a wait of it is over and will be emitted as a sample.
pub const TASK_WAITED: u32 = 512;
/// `flags` of a task: it is off-CPU in a wait that may become a sample.
pub const TASK_WAITS: u32 = 1024;
/// `flags` of a task: it has left the CPU for the last time.
pub const TASK_GONE: u32 = 2048;
/// `flags` of a task: its last wait is emitted after its system call has returned, because the result may identify the waker.
pub const TASK_HOLDS_SLICE: u32 = 4096;
/// `flags` of a task: a program has handled the thread's event, so its spare does nothing.
pub const TASK_HANDLED: u32 = 8192;
/// `flags` of a task: an ancestor is a program that may set variables that are recorded, such as cargo or python.
pub const TASK_HAS_VARIABLES: u32 = 16384;
