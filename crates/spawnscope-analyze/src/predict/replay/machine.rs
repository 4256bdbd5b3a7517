//! The simulated machine: what of a replay is not recorded.

use super::activity::Activity;
use super::steps::Step;
use spawnscope_data::event::Nanos;

/// The simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Number of CPUs.
    pub cpus: u32,
    /// The time slice: how long a thread keeps its CPU while other threads wait for one.
    pub slice: Nanos,
    /// Whether the overhead of recording is included.
    pub is_recorded: bool,
}

/// The usual time slice of the kernel with few CPUs.
const TIME_SLICE: Nanos = Nanos(3_000_000);

impl Machine {
    /// Returns a machine with this many CPUs and the usual time slice, including the overhead of
    /// recording.
    #[must_use]
    pub fn with_cpus(cpus: u32) -> Machine {
        Machine { cpus: cpus.max(1), slice: TIME_SLICE, is_recorded: true }
    }

    /// Returns the same machine without the overhead of recording.
    #[must_use]
    pub fn unrecorded(self) -> Machine {
        Machine { is_recorded: false, ..self }
    }

    /// Returns the CPU time of a step. `None` for a step that uses no CPU.
    pub(super) fn cpu_time(&self, step: Step) -> Option<(Nanos, Activity)> {
        match step {
            Step::Run(span, activity) => Some((span, activity)),
            Step::Record(span, activity) => Some((if self.is_recorded { span } else { Nanos(0) }, activity)),
            _ => None,
        }
    }
}
