//! The simulated machine: what of a replay is not recorded.

use super::activity::Activity;
use super::steps::Step;
use spawnscope_data::event::Nanos;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub cpus: u32,
    /// The share of the overhead of recording that remains: 1 during a recording.
    pub recording: f64,
}

/// How long a thread keeps its CPU while other threads wait for one: the usual time slice of the
/// kernel with few CPUs.
pub(in crate::predict) const TIME_SLICE: Nanos = Nanos(3_000_000);

/// The longest time that the scheduler needs to give a free CPU to a thread. With longer waits,
/// another program held the CPU.
pub(in crate::predict) const MAX_WAKE_UP: Nanos = Nanos(200_000);

impl Machine {
    /// Returns a machine with this many CPUs, including the overhead of recording.
    pub fn with_cpus(cpus: u32) -> Machine {
        Machine { cpus: cpus.max(1), recording: 1.0 }
    }

    pub fn unrecorded(self, remains: f64) -> Machine {
        Machine { recording: remains, ..self }
    }

    pub(super) fn is_recorded(&self) -> bool {
        self.recording >= 1.0
    }

    pub(super) fn cpu_time(&self, step: Step) -> Option<(Nanos, Activity)> {
        match step {
            Step::Run(span, overhead, activity) => {
                Some((Nanos(span.0 + (overhead.0 as f64 * self.recording) as u64), activity))
            }
            _ => None,
        }
    }

    /// Returns how long a thread loses CPU time, if recording caused this share of long losses.
    pub(super) fn lost(&self, span: Nanos, by_recorder: f64) -> Nanos {
        let goes = if span > MAX_WAKE_UP { by_recorder * (1.0 - self.recording) } else { 0.0 };
        Nanos((span.0 as f64 * (1.0 - goes)) as u64)
    }
}
