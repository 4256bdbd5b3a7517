//! The part of the wire format that programs keep of each thread that is followed.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireWaker;

/// Value of the map that says which threads are followed; the collector seeds it with the first ones.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireTask {
    pub task: u64,
    pub launch: u64,
    pub first_run: u64,
    /// When it got the CPU, when it left it, and the CPU time it had had by then.
    pub on: u64,
    pub off: u64,
    pub cpu: u64,
    pub waker: WireWaker,
    /// Entry of the present system call, for those whose duration matters.
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
    /// During set-up, when the latest call of close or close_range was entered or returned, if no other system call
    /// came since; else 0. The time from each such instant to the next makes up `setup_close_span`.
    pub close_run_since: u64,
    pub setup_close_span: u64,
    /// When the errands began that the thread is on, and when the last of them returned. Errands are the calls that go
    /// with launching: on signals, pipes, descriptors, children; less than ERRAND_GAP_NS apart, nothing else between.
    pub errand_since: u64,
    pub errand_last: u64,
    /// When the errands that followed its last reaping were done.
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
    /// Files that the loader opened so far, and looks for files that failed; and how many of each at `load_candidate`.
    pub load_opens: u32,
    pub load_failed_opens: u32,
    pub candidate_opens: u32,
    pub candidate_failed_opens: u32,
    /// CACHE_*.
    pub cache: u32,
    pub object_kind: u32,
    /// Of the wait that is over and not told yet: who ended it; from when on the thread had been on the CPU before, and `calls` of that
    /// time.
    pub held: WireWaker,
    pub held_on: u64,
    pub object_inode: u64,
    /// Second argument of the present system call, for those that wait for several descriptors.
    pub second_argument: u64,
    pub object_device: u32,
    /// System calls that it entered since it got the CPU.
    pub calls: u32,
    /// Of a subshell of dash: the line that it was forked for (0: not known), and the head of the function that it was in.
    pub script_line: u32,
    pub script_function: u32,
    /// What its commands were read from (DASH_READS_*), and how many lines of strings at most, which were being evaluated.
    pub script_input: u32,
    pub script_counted: u32,
    /// The line at or below which it must stand itself, until it was told.
    pub script_bound: u32,
    /// How many files it has moved out of the way, as dash does with those that it reads commands from: two are many.
    pub script_files: u32,
    /// Of a process's first thread: how often the process mapped code or made memory executable.
    pub code_changes: u32,
    /// The mappings that were told for this thread's launches (0: none), and what `code_changes` and the kernel's count of
    /// executable pages were then.
    pub told_changes: u32,
    pub told_image: u64,
    pub told_pages: u64,
    /// The number under which its mappings are to be told, since samples have named it; 0: none.
    pub wanted_image: u64,
    /// Time of its waits since the last one that was taken as a sample.
    pub waited: u64,
    /// 1: of a process that existed before, somebody has begun to follow it.
    pub claimed: u32,
    pub held_calls: u32,
}

/// `flags` of a task: do not follow it, nor what it creates.
pub const TASK_IGNORED: u32 = 1;
/// `flags` of a task: the last thread of its process to exit.
pub const TASK_LAST_THREAD: u32 = 2;
/// `flags` of a task: an `execve` of it succeeded and has not returned yet.
pub const TASK_EXECUTED: u32 = 4;
/// `flags` of a task: the first thread of a process that was created while recording and has not executed a program yet.
pub const TASK_IN_SETUP: u32 = 8;
/// `flags` of a task: it is on the errands that follow a reaping.
pub const TASK_TIDYING: u32 = 16;
/// `flags` of a task: a shell, or one that it descends from, was created at a line that is not known.
pub const TASK_LINE_DOUBT: u32 = 32;
/// `flags` of a task: a shell that another forked; what it executes stands at or below `script_line`.
pub const TASK_SUBSHELL: u32 = 64;
/// `flags` of a task: where it was asked for is told when it begins to execute.
pub const TASK_ASKS: u32 = 128;
/// `flags` of a task: its own line says that, not the line of the shell which forked it.
pub const TASK_OWN_LINE: u32 = 256;
/// `flags` of a task: a wait of it is over that is to be told as a sample.
pub const TASK_WAITED: u32 = 512;
/// `flags` of a task: it is off the CPU in a wait that may become a sample.
pub const TASK_WAITS: u32 = 1024;
/// `flags` of a task: it has left the CPU for good.
pub const TASK_GONE: u32 = 2048;
/// `flags` of a task: its last wait is told when its system call has returned, which says who ended it.
pub const TASK_HOLDS_SLICE: u32 = 4096;
/// `flags` of a task: a program has handled the thread's event, and its spare need not.
pub const TASK_HANDLED: u32 = 8192;
