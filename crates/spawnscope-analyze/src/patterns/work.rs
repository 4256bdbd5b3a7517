//! Measures how long a launch worked.

use crate::phases::Phase;
use crate::pieces::Piece;
use crate::timeline::{ThreadIndex, Timelines, run_queue_span};
use crate::tree::Forest;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::SliceRow;

/// Returns the length of the run phase of a launch, without the time in which it waited for a CPU.
/// Sleep counts as work, since it may be the purpose of the program.
pub(crate) fn work_time(forest: &Forest<'_>, timelines: &Timelines, index: usize) -> Option<Nanos> {
    let launch = &forest.launches[index];
    let run = launch.phases.get(Phase::Run)?;
    let slices = timelines.slices(index as ThreadIndex);
    let without_cpu = |slice: &SliceRow| {
        let returned = Nanos(slice.off.0 + slice.off_span?.0);
        Some((Nanos(returned.0.saturating_sub(run_queue_span(slice)?.0)), returned))
    };
    let queued = |piece: &Piece| {
        let queued = slices.iter().filter_map(|slice| without_cpu(&slice));
        queued.map(|(from, to)| to.min(piece.end).since(from.max(piece.start)).0).sum::<u64>()
    };
    let pieces = launch.pieces(Some(forest.end));
    let runs = pieces.iter().filter(|piece| piece.phase == Phase::Run);
    Some(run.since(Nanos(runs.map(queued).sum())))
}
