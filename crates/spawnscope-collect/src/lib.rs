//! Collectors, which turn what the kernel delivers into `Event`s and know nothing about how events
//! are presented. `callers` recognizes the interpreters whose scripts request launches. `stacks`
//! turns copied stacks into call chains.

use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use spawnscope_data::event::{Constant, Event, LaunchId, Loss, Missing, Pid};

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
pub mod ptrace;
mod scripts;
pub mod shell_start;
#[cfg(feature = "ebpf")]
mod stacks;
mod untraced;
mod wire;

/// The launch id of the command or process to follow.
pub const ROOT: LaunchId = LaunchId(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The held command, and everything that it launches.
    Command(Pid),
    /// An existing process, and everything that it will launch.
    Process(Pid),
    /// Every process of the machine, and the command, if there is one (its pid).
    System(Option<Pid>),
}

#[derive(Clone, Debug)]
pub struct Settings {
    /// Size of the buffer between kernel and recorder, in bytes. It is rounded up to a power of
    /// two.
    pub buffer_bytes: u32,
    /// Whether to report the script line of each launch.
    pub script_lines: bool,
    /// Whether Node.js programs report their call sites (eBPF).
    pub node_lines: bool,
    /// The file that the command will execute, if there is a command.
    pub command: Option<PathBuf>,
    /// Processes that are already running, such as daemons, to follow in addition to the command
    /// (eBPF).
    pub with: Vec<Pid>,
    /// Whether to report the native call chain of each launch.
    pub stacks: bool,
    /// Number of samples per second of what followed threads do and what they wait for; `None`: no
    /// samples.
    pub sample: Option<u32>,
    /// Whether to report failed execs even if this slows down the command (ptrace).
    pub failed_execs: bool,
    /// Whether to stop launching threads at each system call, so that `create` and `reap` are known
    /// (ptrace).
    pub launcher_calls: bool,
}

/// A source of events.
pub trait Collector {
    /// Returns the name that is stored in the recording.
    fn name(&self) -> &'static str;
    /// Returns what the collector cannot observe on this machine.
    fn missing(&self) -> &[Missing];
    /// Returns the BPF programs that the kernel refused, whether or not a fallback replaces them.
    fn refusals(&self) -> &[Refusal];
    /// Returns a descriptor that is readable if events should be drained at once. They may be
    /// drained at any time.
    fn readiness(&self) -> BorrowedFd<'_>;
    /// Moves one batch of pending events into `events`. Returns whether there may be more.
    ///
    /// # Errors
    /// If the kernel's buffer cannot be read.
    fn drain(&mut self, events: &mut Vec<Event>) -> Result<bool, CollectError>;
    /// Returns the numbers of events lost so far, by kind. Numbers may be 0: monitoring needs a
    /// counter from its start.
    ///
    /// # Errors
    /// If the kernel does not report the counts.
    fn losses(&self) -> Result<Vec<Loss>, CollectError>;
    /// Runs `act` with the calling thread (the recorder's main thread) followed, so that the
    /// overhead can be measured. Its events are not recorded.
    ///
    /// # Errors
    /// If the kernel refuses, or the collector does not support this.
    fn as_followed(&self, act: &mut dyn FnMut()) -> Result<(), CollectError>;
    /// Returns how much more than measured by `as_followed` each constant was so far, in
    /// nanoseconds, if it is known.
    fn cost_beyond_calibration(&self) -> Vec<(Constant, f64)> {
        Vec::new()
    }
    /// Stops following. Events in the buffer can still be drained.
    fn detach(&mut self);
    /// Reaps the command, a child of this process that has ended, and returns its wait status;
    /// `None` if it is not a child.
    fn reap(&mut self, command: Pid) -> Option<i32> {
        spawnscope_system::process::reap(command.0).ok().map(|(_, status)| status)
    }
    /// Whether the command, a child of this process, has been stopped by a signal since the last
    /// call.
    fn has_stopped(&mut self, command: Pid) -> bool {
        spawnscope_system::job_control::has_stopped(command)
    }
    /// Returns the notices for the user about this recording that were added since the last call.
    fn notices(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// A BPF program that the kernel refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// The program's name in the BPF object.
    pub program: String,
    /// The last line of the verifier's log, or the kernel's error if the log is empty.
    pub reason: String,
    /// The last lines of the verifier's log.
    pub log: Vec<String>,
}

/// Why collecting failed.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The user is not allowed to load BPF programs.
    #[error(
        "load BPF programs: permission denied. Run spawnscope with sudo, or grant the capabilities \
         CAP_BPF and CAP_PERFMON: `sudo setcap cap_bpf,cap_perfmon+ep {program}` (anyone who may \
         execute that file can then watch the whole machine)"
    )]
    NotPermitted {
        /// The path of this executable.
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
        /// Why it cannot be followed.
        reason: String,
    },
    /// This build has no eBPF collector.
    #[error("load BPF programs: this spawnscope was built without eBPF support; build it with the feature `ebpf`")]
    NotBuilt,
    /// This collector can only follow a command that it starts.
    #[error(
        "only eBPF can follow processes that are already running (-p, -a, --with); without it, give a command to record \
         (`spawnscope record -- CMD`)"
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
