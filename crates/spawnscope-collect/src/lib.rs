//! Collectors: they turn what the kernel reports into `Event`s and know nothing of reports. `callers` knows the interpreters whose
//! scripts request launches. `stacks` turns copied stacks into call chains.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use spawnscope_data::event::{Event, LaunchId, Loss, Missing, Pid};

mod callers;
mod clone_call;
#[cfg(feature = "ebpf")]
pub mod ebpf;
#[cfg(all(fuzzing, feature = "ebpf"))]
pub mod fuzzing;
mod initial_stack;
#[cfg(feature = "ebpf")]
mod inode;
#[cfg(feature = "ebpf")]
mod listeners;
pub mod perf;
pub mod ptrace;
mod scripts;
#[cfg(feature = "ebpf")]
mod stacks;
mod untraced;
mod wire;

/// The id of the command or process to follow.
pub const ROOT: LaunchId = LaunchId(1);

/// What to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The held command, and everything it launches.
    Command(Pid),
    /// An existing process, and everything it will launch.
    Process(Pid),
    /// Every process of the machine, and the command, if there is one.
    System(Option<Pid>),
}

/// How to collect.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Size of the buffer between kernel and recorder; rounded up to a power of two of pages.
    pub buffer_bytes: u32,
    /// Device number of a terminal; its use by a followed process is reported.
    pub terminal: Option<u64>,
    /// Whether to report the script line of each launch.
    pub script_lines: bool,
    /// Whether Node.js programs tell their call sites (eBPF).
    pub node_lines: bool,
    /// The file that the command will execute, if there is a command.
    pub command: Option<PathBuf>,
    /// Processes that run already, such as daemons, to follow beside the command (eBPF).
    pub with: Vec<Pid>,
    /// Whether to report the native call chain of each launch.
    pub stacks: bool,
    /// Samples per second of what followed threads do and what they wait for.
    pub sample: Option<u32>,
    /// Whether to report failed execs where that has a price of its own (ptrace).
    pub failed_execs: bool,
    /// Whether to stop threads that launch at their system calls, which gives `create` and `reap` (ptrace).
    pub launcher_calls: bool,
}

/// A source of events.
pub trait Collector {
    /// The name stored in the recording.
    fn name(&self) -> &'static str;
    /// What it cannot see on this machine.
    fn missing(&self) -> &[Missing];
    /// Programs that the kernel refused, whether or not a fallback replaces them.
    fn refusals(&self) -> &[Refusal];
    /// Readable when events should be drained at once. They may be drained at any time.
    fn readiness(&self) -> BorrowedFd<'_>;
    /// Moves one batch of pending events into `events`. Returns whether there are more.
    ///
    /// # Errors
    /// If the kernel's buffer cannot be read.
    fn drain(&mut self, events: &mut Vec<Event>) -> Result<bool, CollectError>;
    /// Events lost so far, by kind.
    ///
    /// # Errors
    /// If the kernel does not report the counts.
    fn losses(&self) -> Result<Vec<Loss>, CollectError>;
    /// Whether a followed process has used the terminal named in the settings.
    fn terminal_used(&self) -> bool;
    /// Runs `act` while the recorder's main thread, which must be the caller, has the overhead of a followed thread. Its events are
    /// not recorded.
    ///
    /// # Errors
    /// If the kernel refuses.
    fn as_followed(&self, act: &mut dyn FnMut()) -> Result<(), CollectError>;
    /// Stops following. Events in the buffer can still be drained.
    fn detach(&mut self);
    /// Reaps the command, a child of this process that has ended, and returns its wait status; `None` if it is not a child.
    fn reap(&mut self, command: Pid) -> Option<i32> {
        spawnscope_system::process::reap(command.0)
            .ok()
            .map(|(_, status)| status)
    }
    /// What the user must know about this recording and the commands in it, since the last call.
    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A BPF program that the kernel refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Its name in the BPF object.
    pub program: String,
    /// The last line of the verifier's log, or the kernel's error if the log is empty.
    pub reason: String,
    /// The last lines of the verifier's log.
    pub log: Vec<String>,
}

/// Why collecting failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The user may not load BPF programs.
    #[error(
        "load BPF programs: permission denied; this needs root or the capabilities CAP_BPF and CAP_PERFMON: run it with \
         sudo, or grant them with `sudo setcap cap_bpf,cap_perfmon+ep {program}` (any user who may execute that file can then \
         watch the whole machine)"
    )]
    NotPermitted {
        /// This executable.
        program: String,
    },
    /// The kernel lacks a feature that has no replacement.
    #[error("set up the eBPF collector: {0}; it needs Linux 5.10 or later with BTF (/sys/kernel/btf/vmlinux)")]
    Unsupported(String),
    /// The kernel refuses a program that has no replacement.
    #[error("load the BPF program {}: the kernel refuses it ({})", .0.program, .0.reason)]
    Refused(Refusal),
    /// The process to follow does not exist.
    #[error("follow process {pid}: {reason}")]
    NoProcess {
        /// The pid as the user gave it.
        pid: i32,
        /// The reason.
        reason: String,
    },
    /// The program has no eBPF collector.
    #[error("load BPF programs: this spawnscope was built without eBPF support; build it with the feature `ebpf`")]
    NotBuilt,
    /// This collector can only follow a command that it starts.
    #[error(
        "follow processes that run already (-p, -a, --with): that needs eBPF; give a command to record (`spawnscope record -- CMD`)"
    )]
    CommandOnly,
    /// Something failed while collecting.
    #[error("{action}: {detail}")]
    Failed {
        /// The action that failed.
        action: &'static str,
        /// What went wrong.
        detail: String,
    },
}
