//! Facts about the machine: constants that are measured before a recording, and what the collector
//! cannot see on this machine.

use std::fmt;

use super::Nanos;
use crate::table::Cost;

/// The calibration pauses for this long before each round of `Constant::ColdForkExit`.
pub const CALIBRATION_PAUSE: Nanos = Nanos(3_000_000);

crate::named_enum! {
    /// A constant of the machine, in nanoseconds.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Constant {
        /// The time from entering `fork` in a small process to the child's first instruction.
        ForkCreate = "fork_create",
        /// The time of a whole `fork`, `_exit` and `wait` in a small process.
        ForkExit = "fork_exit",
        /// Like `ForkExit`, after a pause of `CALIBRATION_PAUSE`, during which the CPU caches go
        /// cold.
        ColdForkExit = "cold_fork_exit",
        /// Like `ForkCreate`, with CLONE_VM and CLONE_VFORK.
        VforkCreate = "vfork_create",
        /// Like `ForkExit`, with CLONE_VM and CLONE_VFORK.
        VforkExit = "vfork_exit",
        /// The increase of `ForkCreate` per MiB that the parent has touched, in 4 KiB pages.
        PageCopy = "page_copy",
        /// The increase of `ForkExit` minus `ForkCreate` per MiB that the parent has touched:
        /// freeing the copied page tables.
        PageFree = "page_free",
        /// The time of one copy-on-write fault in the parent while the child is alive.
        CowFault = "cow_fault",
        /// The time of one such fault after the child has ended or called exec: no page is copied.
        ReuseFault = "reuse_fault",
        /// The time of one CPUID instruction. In a virtual machine, the hypervisor emulates it.
        Cpuid = "cpuid",
        /// The time of all CPUID instructions that the C library of this machine executes on this
        /// processor when a program starts.
        Identify = "identify",
        /// The time of one open of a file that does not exist, in a directory that the kernel has
        /// cached.
        FailedOpen = "failed_open",
        /// How much longer a system call takes during a recording.
        RecordedCall = "recorded_call",
        /// How much longer a launch without exec takes during a recording, from creation to
        /// reaping, context switches included.
        RecordedLaunch = "recorded_launch",
        /// How much longer one exec takes during a recording.
        RecordedExec = "recorded_exec",
        /// How much longer a process took because the collector stopped it once, in recordings of
        /// format 12. Later ones have each stop.
        RecordedStop = "recorded_stop",
    }
}

crate::table! {
    /// A machine constant, as measured before the recording.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Calibration in calibration {
        since 2 {
            what: Constant,
            /// The median.
            ns: f64 = Cost,
            /// The lower quartile.
            low_ns: Option<f64> = Cost,
            /// The upper quartile.
            high_ns: Option<f64> = Cost,
        }
    }
}

impl Calibration {
    /// Returns the constant if it is greater by `more` nanoseconds. If nothing would be left of it,
    /// noise exceeded the cost in one of the measurements, and it stays as it is.
    pub fn increased(&self, more: f64) -> Calibration {
        if self.ns + more <= 0.0 {
            return *self;
        }
        let increase = |ns: f64| (ns + more).max(0.0);
        Calibration {
            what: self.what,
            ns: increase(self.ns),
            low_ns: self.low_ns.map(increase),
            high_ns: self.high_ns.map(increase),
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
    /// The value of `what` if the collector sees neither when threads get and leave a CPU nor what
    /// wakes them.
    pub const SCHEDULER: &str = "the scheduler's decisions";

    /// The value of `what` if the collector sees when a new process starts, but not how long it
    /// waits for its first CPU.
    pub const FIRST_WAITS: &str = "when new processes get a CPU";

    /// The value of `what` if the processes were traced in a way that made launches much slower
    /// (`Recording::max_slowdown`).
    pub const UNTRACED_TIMES: &str = "times without the tracer";

    /// The value of `what` if macOS checked files before their first launch, but not when.
    pub const SCANS: &str = "scans of new files";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_that_noise_would_make_nothing_stays_as_measured() {
        let row = |ns: f64| {
            let [low_ns, high_ns] = [ns - 50.0, ns + 50.0].map(|ns| Some(ns.max(0.0)));
            Calibration { what: Constant::RecordedCall, ns, low_ns, high_ns }
        };
        assert_eq!(row(200.0).increased(100.0), row(300.0));
        assert_eq!(row(200.0).increased(-180.0), row(20.0));
        assert_eq!(row(200.0).increased(-200.0), row(200.0));
    }
}
