//! Who held the CPUs while recorded threads waited for one: other threads of the recording, or
//! programs outside of it.

use crate::model::timeline::{ThreadIndex, Timelines};
use crate::predict::replay::steps::Step;
use crate::predict::replay::{Replay, runnable};
use spawnscope_data::event::Nanos;

/// The waits of all threads for a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuWaits {
    /// The sum of all waits.
    pub all: Nanos,
    /// The part in which no recorded thread used the CPU: a program outside of the recording held
    /// it, or it was waking from idle.
    pub held_by_others: Nanos,
}

impl CpuWaits {
    pub(crate) fn of(replay: &Replay, timelines: &Timelines) -> CpuWaits {
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let steps = threads.clone().flat_map(|thread| replay.programs.steps_of(thread));
        let lost = steps.map(|step| if let Step::Lose(span, _) = step { span.0 } else { 0 });
        let slices = threads.flat_map(|thread| timelines.slices(thread).iter());
        let waited = slices.filter_map(|slice| runnable(&slice)).map(|(from, to)| to.since(from).0);
        CpuWaits { all: Nanos(waited.sum()), held_by_others: Nanos(lost.sum()) }
    }
}
