//! What is known of the machine itself: constants that were measured before a recording, and what it does not let the
//! collector see.

use std::fmt;

use super::Nanos;

/// How long the calibration pauses before each round of `Constant::ColdForkExit`.
pub const CALIBRATION_PAUSE: Nanos = Nanos(3_000_000);

/// A constant of the machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Constant {
    /// From entering `fork` in a small process to the child's first instruction.
    ForkCreate,
    /// A whole `fork`, `_exit` and `wait`, likewise.
    ForkExit,
    /// As `ForkExit`, after a pause of `CALIBRATION_PAUSE`, in which caches are lost.
    ColdForkExit,
    /// As `ForkCreate`, with CLONE_VM and CLONE_VFORK.
    VforkCreate,
    /// As `ForkExit`, with CLONE_VM and CLONE_VFORK.
    VforkExit,
    /// How much longer `ForkCreate` is for each MiB that the parent has touched, in pages of 4 KiB.
    PageCopy,
    /// How much longer the rest of `ForkExit` is for each such MiB: giving the copied page tables back.
    PageFree,
    /// One copy-on-write fault in the parent while the child lives.
    CowFault,
    /// The same after the child has ended, or executed a program: nothing is copied.
    ReuseFault,
    /// One CPUID instruction, which a hypervisor answers where there is one.
    Cpuid,
    /// How much longer a system call takes while there is a recording.
    RecordedCall,
}

impl Constant {
    /// Every constant.
    pub const ALL: [Constant; 11] = [
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
        Constant::RecordedCall,
    ];

    /// The word that stands for it in a recording.
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
            Constant::Cpuid => "cpuid",
        }
    }
}

/// A constant of the machine, as it was measured before the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Which.
    pub what: Constant,
    /// The median.
    pub ns: f64,
    /// The lower quartile.
    pub low_ns: Option<f64>,
    /// The upper quartile.
    pub high_ns: Option<f64>,
}

/// Something this machine did not let the collector see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What could not be set up, such as `sched_prepare_exec`.
    pub what: String,
    /// What is therefore unknown, in words for the report.
    pub effect: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not available here: {}; unknown: {}", self.what, self.effect)
    }
}
