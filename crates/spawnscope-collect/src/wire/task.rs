//! The part of the wire format that the BPF programs store for each followed thread.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::WireWaker;

/// Value of the map of followed threads. The collector inserts the values of the first threads.
/// Instants are CLOCK_MONOTONIC nanoseconds; the CPU times (`*_cpu`) are those of the thread at the
/// corresponding instants, in nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct WireTask {
    pub task: u64,
    pub launch: u64,
    pub first_run: u64,
    /// When the thread last got a CPU.
    pub on: u64,
    /// When the thread last left its CPU.
    pub off: u64,
    /// The thread's CPU time at `off`.
    pub cpu: u64,
    pub waker: WireWaker,
    /// When the thread entered the system call that creates a process or thread.
    pub create: u64,
    /// First argument of the current system call.
    pub argument: u64,
    pub clone_flags: u64,
    pub exec_enter: u64,
    pub exec_enter_cpu: u64,
    pub exec_returned: u64,
    pub exec_return_cpu: u64,
    pub exit_group_entered: u64,
    pub exit_group_cpu: u64,
    pub zombie: u64,
    pub zombie_cpu: u64,
    pub interpreter_base: u64,
    pub cache_address: u64,
    /// When the call that may have been the loader's last one returned; 0: none.
    pub load_candidate: u64,
    pub load_candidate_cpu: u64,
    /// During setup, when the latest call of close or close_range was entered or returned, provided
    /// that no other system call followed; otherwise 0. The intervals between these instants add up
    /// to `setup_close_span`.
    pub close_run_since: u64,
    pub setup_close_span: u64,
    /// When the thread's current run of surrounding calls began. Surrounding calls accompany a
    /// launch: they concern signals, pipes, descriptors and children, are at most
    /// SURROUNDING_GAP_NS apart, and have no other call between them.
    pub surrounding_since: u64,
    /// When the last of these calls returned.
    pub surrounding_end: u64,
    /// When the surrounding calls after the thread's last reaping ended.
    pub tidied: u64,
    /// The thread's minor faults at its last launch or reaping, plus one; 0 before the first.
    pub last_faults_plus_one: u64,
    /// Number of the system call that the thread is in; -1 in user space.
    pub syscall: i32,
    /// LEFT_*: why the thread left its CPU.
    pub reason: u32,
    /// The loader's descriptor of /etc/ld.so.cache; -1: not open.
    pub cache_fd: i32,
    /// LOAD_* (`loader.h`).
    pub load_state: u32,
    /// TASK_* flags.
    pub flags: u32,
    pub setup_closes: u32,
    /// Number of files that the loader has opened so far, and of failed lookups.
    pub load_opens: u32,
    pub load_failed_opens: u32,
    /// The same numbers at `load_candidate`.
    pub candidate_opens: u32,
    pub candidate_failed_opens: u32,
    /// CACHE_*.
    pub cache: u32,
    pub object_kind: u32,
    /// The waker of the finished wait that has not been emitted yet, with TASK_HAS_DEFERRED_SLICE.
    pub deferred_waker: WireWaker,
    /// The start of the time on the CPU before that wait. `deferred_calls` is the number of system
    /// calls in that time.
    pub deferred_on: u64,
    pub object_inode: u64,
    /// Second argument of the current system call, for calls that wait for several descriptors.
    pub second_argument: u64,
    /// Third argument of the current system call, for select.
    pub third_argument: u64,
    pub object_device: u32,
    /// Number of system calls that the thread entered since it got the CPU.
    pub calls: u32,
    /// For a dash subshell: the line that it was forked for; 0: unknown.
    pub script_line: u32,
    /// For a dash subshell: the line where the enclosing function begins; 0: none.
    pub script_function: u32,
    /// The input that a dash subshell reads commands from (DASH_READS_*).
    pub script_input: u32,
    /// The largest line count of the strings that a dash subshell was evaluating when it was
    /// forked.
    pub script_string_lines: u32,
    /// The smallest line that a dash subshell can be at, until its call site is reported.
    pub script_min_line: u32,
    /// Number of files that the process moved to high descriptors, as dash does with files that it
    /// reads commands from; counted up to two.
    pub script_files: u32,
    /// For a dash subshell: the address of the name of the sourced file that was being read when it
    /// was forked.
    pub script_name: u64,
    /// For a process's first thread: how often the process mapped code or made memory executable.
    pub code_changes: u32,
    /// The value of `code_changes` when the mappings `reported_image` were reported.
    pub reported_changes: u32,
    /// The number of the mappings that were last reported for this thread; 0: none.
    pub reported_image: u64,
    /// The kernel's count of executable pages at that time.
    pub reported_pages: u64,
    /// The number under which its mappings must be reported because samples refer to it; 0: none.
    pub wanted_image: u64,
    /// Total time of the thread's waits since the last sampled wait, in nanoseconds.
    pub waited: u64,
    /// For a process that existed before the recording. 1: a CPU is filling in this entry, or has
    /// done so.
    pub claimed: u32,
    pub deferred_calls: u32,
    /// The stack pointer when the program started, while the beginning of its work is looked for;
    /// otherwise 0.
    pub entry_stack: u64,
    /// The thread's CPU time when its program began its work; 0: not observed.
    pub work_cpu: u64,
    /// Number of system calls that might have begun the program's work.
    pub work_calls: u32,
    /// 1: the last of these calls opened a library or module of the system, so the program is still
    /// being loaded.
    pub work_loading: u32,
}

/// `flags` of a task: do not follow it or its children.
pub const TASK_IGNORED: u32 = 1;
/// `flags` of a task: it is the last thread of its process to exit.
pub const TASK_LAST_THREAD: u32 = 2;
/// `flags` of a task: its `execve` succeeded and has not returned yet.
pub const TASK_EXECUTED: u32 = 4;
/// `flags` of a task: it is the first thread of a process that was created during the recording and
/// has not called exec yet.
pub const TASK_IN_SETUP: u32 = 8;
/// `flags` of a task: it is making the surrounding calls that follow a reaping.
pub const TASK_TIDYING: u32 = 16;
/// `flags` of a task: it is a shell, and the shell or one of its ancestors was forked at an unknown
/// line.
pub const TASK_LINE_UNCERTAIN: u32 = 32;
/// `flags` of a task: it is a shell that another shell forked; its commands are at line
/// `script_line` or later.
pub const TASK_SUBSHELL: u32 = 64;
/// `flags` of a task: it is a dash subshell whose call site is reported when its setup is over.
pub const TASK_CALL_PENDING: u32 = 128;
/// `flags` of a task: its call site is its own line, not that of the shell that forked it.
pub const TASK_OWN_LINE: u32 = 256;
/// `flags` of a task: its last wait is over and will be emitted as a sample.
pub const TASK_WAITED: u32 = 512;
/// `flags` of a task: it is off-CPU in a wait that may become a sample.
pub const TASK_WAITS: u32 = 1024;
/// `flags` of a task: it has left the CPU for the last time.
pub const TASK_GONE: u32 = 2048;
/// `flags` of a task: its last wait is emitted after its system call has returned, because the
/// result may identify the waker.
pub const TASK_HAS_DEFERRED_SLICE: u32 = 4096;
/// `flags` of a task: a BPF program has handled the thread's current event, so that program's spare
/// does nothing.
pub const TASK_HANDLED: u32 = 8192;
/// `flags` of a task: an ancestor is a program that may set variables that are recorded, such as
/// cargo or python.
pub const TASK_HAS_VARIABLES: u32 = 16384;
