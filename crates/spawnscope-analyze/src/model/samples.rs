//! Assigns samples of threads to launches and phases.

use crate::model::phases::Phase;
use crate::model::pieces::Piece;
use crate::model::tree::Forest;
use foldhash::HashMap;
use spawnscope_data::event::{LaunchId, Nanos, TaskId};
use spawnscope_data::rows::{SampleRow, StackId, ThreadRow};

/// What a thread did at an instant, or the wait that started at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The index in the forest of the thread's launch.
    pub launch: usize,
    pub phase: Option<Phase>,
    pub is_waiting: bool,
    pub span: Nanos,
    pub stack: StackId,
}

/// Finds the launch and phase of each sample. Samples of unrecorded processes are dropped.
pub fn assign_phases(forest: &Forest<'_>, threads: &[ThreadRow], rows: &[SampleRow]) -> Vec<Sample> {
    let process_of: HashMap<TaskId, LaunchId> = threads.iter().map(|row| (row.task, row.launch)).collect();
    let mut pieces_of: HashMap<usize, Vec<Piece>> = HashMap::default();
    let mut samples = Vec::with_capacity(rows.len());
    for row in rows {
        let process = process_of.get(&row.task).copied().unwrap_or(LaunchId(row.task.0));
        let Some(launch) = forest.index_of(process) else { continue };
        let pieces = pieces_of.entry(launch).or_insert_with(|| forest.launches[launch].pieces(Some(forest.end)));
        let phase = phase_at(pieces, row.at);
        samples.push(Sample { launch, phase, is_waiting: row.is_waiting, span: row.span, stack: row.stack });
    }
    samples
}

/// Returns the phase at an instant. An instant on a boundary belongs to the phase that starts
/// there.
fn phase_at(pieces: &[Piece], at: Nanos) -> Option<Phase> {
    let begun = pieces.partition_point(|piece| piece.start <= at);
    let piece = pieces[..begun].last()?;
    (at < piece.end).then_some(piece.phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_belongs_to_the_phase_that_has_begun_and_not_ended() {
        let (exec, load, run, teardown) = (Phase::Exec, Phase::Load, Phase::Run, Phase::Teardown);
        // The boundary between run and teardown is unknown.
        let pieces = [(exec, 10, 20), (load, 20, 20), (run, 20, 30), (teardown, 40, 50)];
        let pieces = pieces.map(|(phase, start, end)| Piece { phase, start: Nanos(start), end: Nanos(end) });
        let phases = [9, 10, 19, 20, 29, 30, 39, 40, 50].map(|at| phase_at(&pieces, Nanos(at)));
        let expected = [None, Some(exec), Some(exec), Some(run), Some(run), None, None, Some(teardown), None];
        assert_eq!(phases, expected);
    }
}
