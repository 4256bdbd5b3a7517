//! Measures how long a launch worked.

use crate::phases::Phase;
use crate::timeline::{ThreadIndex, Timelines, run_queue_span};
use crate::tree::Forest;
use spawnscope_data::event::Nanos;

/// Returns the length of the run phase of a launch, without the time in which it waited for a CPU.
/// Sleep counts as work, since it may be the purpose of the program.
pub(crate) fn work_time(forest: &Forest<'_>, timelines: &Timelines, index: usize) -> Option<Nanos> {
    let launch = &forest.launches[index];
    let run = launch.phases.get(Phase::Run)?;
    let mut runs = launch.pieces(Some(forest.end));
    runs.retain(|piece| piece.phase == Phase::Run);
    let mut queued = 0;
    for slice in timelines.slices(index as ThreadIndex).iter() {
        if let Some((off_span, waited)) = slice.off_span.zip(run_queue_span(&slice)) {
            let to = Nanos(slice.off.0 + off_span.0);
            let from = to.since(waited);
            queued += runs.iter().map(|piece| to.min(piece.end).since(from.max(piece.start)).0).sum::<u64>();
        }
    }
    Some(run.since(Nanos(queued)))
}
