//! Collectors: they know the kernel and nothing of reports. A collector turns what the kernel says into `Event`s.
//! `held` starts the command and keeps it from running until a collector is attached; `calibrate` measures meanwhile what
//! creating processes costs here; `callers` knows the interpreters whose scripts ask for launches, `stacks` makes call chains of
//! copied stacks.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use crate::event::{Event, LaunchId, Loss, Missing, Nanos, Pid};

pub mod calibrate;
#[cfg(feature = "ebpf")]
mod callers;
#[cfg(feature = "ebpf")]
pub mod ebpf;
#[cfg(all(fuzzing, feature = "ebpf"))]
pub mod fuzzing;
pub mod held;
#[cfg(feature = "ebpf")]
mod inode;
pub mod shared;
#[cfg(feature = "ebpf")]
mod stacks;

/// The number of the command or process that a collector is told to follow.
pub const ROOT: LaunchId = LaunchId(1);

/// What to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// The command that is held at its birth, and everything it launches.
    Command(Pid),
    /// A process that is there already, and everything it will launch.
    Process(Pid),
    /// Every process of the machine, and the command, where there is one.
    System(Option<Pid>),
}

/// How to collect.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Size of the buffer between kernel and recorder; rounded up to a power of two of pages.
    pub buffer_bytes: u32,
    /// Device number of a terminal whose use by a followed process is to be noticed.
    pub terminal: Option<u64>,
    /// Whether to tell where in a script each launch was asked for.
    pub script_lines: bool,
    /// The file that the command will execute, where there is a command.
    pub command: Option<PathBuf>,
    /// Whether to tell where in their machine code processes launch others.
    pub stacks: bool,
    /// How often a second to look what followed threads do, and what they wait for.
    pub sample: Option<u32>,
}

/// A source of events.
pub trait Collector {
    /// The name stored in the recording.
    fn name(&self) -> &'static str;
    /// What this machine does not let it see.
    fn missing(&self) -> &[Missing];
    /// Programs that the kernel refused, whether or not others replace them.
    fn refusals(&self) -> &[Refusal];
    /// Readable when events should be drained at once; they may be drained at any time.
    fn readiness(&self) -> BorrowedFd<'_>;
    /// Moves the events that have come since into `events`, as many as are a batch; says whether there are more.
    ///
    /// # Errors
    /// When the kernel's buffer cannot be read.
    fn drain(&mut self, events: &mut Vec<Event>) -> Result<bool, CollectError>;
    /// Events dropped so far, by kind.
    ///
    /// # Errors
    /// When the kernel does not tell.
    fn losses(&self) -> Result<Vec<Loss>, CollectError>;
    /// Whether a followed process has used the terminal of the settings.
    fn terminal_used(&self) -> bool;
    /// Runs `act` while the recorder's first thread, which has to be the caller, costs what a followed one does. Nothing of it is
    /// recorded.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn as_followed(&self, act: &mut dyn FnMut()) -> Result<(), CollectError>;
    /// Stops following; what is in the buffer can still be drained.
    fn detach(&mut self);
}

/// A BPF program that the kernel did not take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Its name in the BPF object.
    pub program: String,
    /// The verifier's last line, or the kernel's error where the verifier said nothing.
    pub reason: String,
    /// The last lines of the verifier's log.
    pub log: Vec<String>,
}

/// Why events cannot be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The user may not load BPF programs.
    #[error(
        "load BPF programs: permission denied; this needs root or the capabilities CAP_BPF and CAP_PERFMON: run it with \
         sudo, or grant them with `sudo setcap cap_bpf,cap_perfmon+ep {program}` (whoever may execute that file can then \
         watch the whole machine)"
    )]
    NotPermitted {
        /// This executable.
        program: String,
    },
    /// The kernel lacks something that nothing can replace.
    #[error("set up the eBPF collector: {0}; it needs Linux 5.10 or later with BTF (/sys/kernel/btf/vmlinux)")]
    Unsupported(String),
    /// The kernel refuses a program that nothing can replace.
    #[error("load the BPF program {}: the kernel refuses it: {}", .0.program, .0.reason)]
    Refused(Refusal),
    /// The process to follow is not there.
    #[error("follow process {pid}: {reason}")]
    NoProcess {
        /// As the user gave it.
        pid: i32,
        /// Why not.
        reason: String,
    },
    /// Something failed while collecting.
    #[error("{action}: {detail}")]
    Failed {
        /// What was being done.
        action: &'static str,
        /// What went wrong.
        detail: String,
    },
}

/// A handle of a process, which no reuse of its pid can mislead.
///
/// # Errors
/// When there is no such process, or it is a thread of one.
pub fn pidfd(pid: Pid) -> std::io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid.0).ok_or(rustix::io::Errno::SRCH)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// CLOCK_MONOTONIC, the clock of all events.
#[must_use]
pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
