//! Facts about the machine: constants that were measured before a recording, and what the collector cannot see here.

use std::fmt;

use super::Nanos;

/// The calibration pauses for this long before each round of `Constant::ColdForkExit`.
pub const CALIBRATION_PAUSE: Nanos = Nanos(3_000_000);

/// A constant of the machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// From entering `fork` in a small process to the child's first instruction.
    ForkCreate,
    /// A whole `fork`, `_exit` and `wait` in a small process.
    ForkExit,
    /// Like `ForkExit`, after a pause of `CALIBRATION_PAUSE`, during which the caches go cold.
    ColdForkExit,
    /// Like `ForkCreate`, with CLONE_VM and CLONE_VFORK.
    VforkCreate,
    /// Like `ForkExit`, with CLONE_VM and CLONE_VFORK.
    VforkExit,
    /// The increase of `ForkCreate` per MiB that the parent has touched, in 4 KiB pages.
    PageCopy,
    /// The increase of the rest of `ForkExit` per such MiB: freeing the copied page tables.
    PageFree,
    /// One copy-on-write fault in the parent while the child is alive.
    CowFault,
    /// The same fault after the child has ended or called exec: no page is copied.
    ReuseFault,
    /// One CPUID instruction. Under a hypervisor, the hypervisor emulates it.
    Cpuid,
    /// All CPUID instructions of a program's start, as many as the machine's C library executes on its processor.
    Identify,
    /// One open of a file that does not exist, in a directory that the kernel has cached.
    FailedOpen,
    /// The increase of a system call's duration during a recording.
    RecordedCall,
    /// The increase of a launch without exec during a recording, from creation to reaping, with its switches.
    RecordedLaunch,
    /// What an exec adds to that.
    RecordedExec,
}

impl Constant {
    /// Every constant.
    pub const ALL: [Constant; 15] = [
        Constant::ForkCreate,
        Constant::ForkExit,
        Constant::ColdForkExit,
        Constant::VforkCreate,
        Constant::VforkExit,
        Constant::PageCopy,
        Constant::PageFree,
        Constant::CowFault,
        Constant::ReuseFault,
        Constant::Cpuid,
        Constant::Identify,
        Constant::FailedOpen,
        Constant::RecordedCall,
        Constant::RecordedLaunch,
        Constant::RecordedExec,
    ];

    /// The constant's name in a recording.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Constant::ForkCreate => "fork_create",
            Constant::ForkExit => "fork_exit",
            Constant::ColdForkExit => "cold_fork_exit",
            Constant::VforkCreate => "vfork_create",
            Constant::VforkExit => "vfork_exit",
            Constant::PageCopy => "page_copy",
            Constant::PageFree => "page_free",
            Constant::CowFault => "cow_fault",
            Constant::ReuseFault => "reuse_fault",
            Constant::RecordedCall => "recorded_call",
            Constant::RecordedLaunch => "recorded_launch",
            Constant::RecordedExec => "recorded_exec",
            Constant::Cpuid => "cpuid",
            Constant::Identify => "identify",
            Constant::FailedOpen => "failed_open",
        }
    }
}

crate::table! {
    /// A machine constant as measured before the recording.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Calibration in calibration {
        since 2 {
            /// Which constant.
            what: Constant,
            /// The median.
            ns: f64,
            /// The lower quartile.
            low_ns: Option<f64>,
            /// The upper quartile.
            high_ns: Option<f64>,
        }
    }
}

crate::table! {
    /// Something that the collector cannot see on this machine.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Missing in missing {
        since 1 {
            /// The feature that could not be set up, such as `sched_prepare_exec`.
            what: String,
            /// What is unknown as a result, as text for the report.
            effect: String,
        }
    }
}

impl Missing {
    /// `what`, if the collector sees neither when threads get and leave a CPU nor what wakes them.
    pub const SCHEDULER: &str = "the scheduler's decisions";

    /// `what`, if the collector does not see how long a new process waits for its first CPU, although it sees when that process starts.
    pub const FIRST_WAITS: &str = "when new processes get a CPU";

    /// `what`, if the collector sees when threads get and leave a CPU, but not what wakes them.
    pub const WAKERS: &str = "what wakes threads";
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what.as_str() {
            Missing::SCHEDULER => "scheduler events",
            what => what,
        };
        write!(f, "not recorded: {what}; unknown: {}", self.effect)
    }
}
