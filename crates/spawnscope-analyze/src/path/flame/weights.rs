//! The weight of a launch in a flame graph. While a child exists, the time of its parent does not
//! count, so a box together with the boxes on top of it is as wide as the lifetime of the process.
//! Concurrent children count separately, as threads do in other flame graphs.

use super::{FlameOptions, Label, Stacking, Stacks, Weight};
use crate::model::phases::Phase;
use crate::model::pieces::Piece;
use crate::model::tree::Forest;
use crate::model::unknown_waits::merge_overlapping;
use crate::path::critical_path::{Charges, CriticalPath};
use spawnscope_data::event::Nanos;

pub(super) struct Weights<'f, 'a> {
    pub(super) forest: &'f Forest<'a>,
    pub(super) path: Option<&'f CriticalPath>,
    pub(super) options: FlameOptions,
}

impl<'a> Weights<'_, 'a> {
    pub(super) fn add_launch(&self, stacks: &mut Stacks<'a>, node: u32, index: usize) {
        if self.options.weight == Weight::Count {
            stacks.add(node, u64::from(self.is_counted(index)));
            return;
        }
        for (label, span) in self.parts(index) {
            let is_wanted = self.options.phase.is_none_or(|phase| label == Label::Phase(phase));
            if span.0 == 0 || !is_wanted {
                continue;
            }
            let target = match self.options.stacking {
                Stacking::Tree | Stacking::Command => stacks.box_above(Some(node), label),
                Stacking::Caller => node,
            };
            stacks.add(target, span.0);
        }
    }

    /// Whether a launch is counted. If a phase was requested, only launches with time in this phase
    /// are counted.
    fn is_counted(&self, index: usize) -> bool {
        let phases = &self.forest.launches[index].phases;
        self.options.phase.is_none_or(|phase| phases.get(phase).is_some_and(|span| span.0 > 0))
    }

    fn parts(&self, index: usize) -> Vec<(Label<'a>, Nanos)> {
        match (self.options.weight, self.path) {
            (Weight::Wall, _) => own_wall(self.forest, index),
            (Weight::Critical, Some(path)) => charged(&path.launches[index]),
            // Weights of samples are not computed from launches.
            (Weight::Critical, None) | (Weight::Count | Weight::OnCpu | Weight::OffCpu, _) => Vec::new(),
            (Weight::Tax, _) => {
                let phases = &self.forest.launches[index].phases;
                let known = Phase::TAX.iter().filter_map(|phase| Some((*phase, phases.get(*phase)?)));
                known.map(|(phase, span)| (Label::Phase(phase), span)).collect()
            }
        }
    }
}

fn charged<'a>(charges: &Charges) -> Vec<(Label<'a>, Nanos)> {
    let phases = Phase::ALL.iter().map(|phase| (Label::Phase(*phase), charges.get(*phase)));
    phases.chain([(Label::RunQueue, charges.run_queue())]).collect()
}

/// Returns, by phase, the time in which a launch existed but none of its children did.
fn own_wall<'a>(forest: &Forest<'a>, index: usize) -> Vec<(Label<'a>, Nanos)> {
    let launch = &forest.launches[index];
    let known = launch.pieces(Some(forest.end));
    let end = if launch.is_unfinished() { Some(forest.end) } else { launch.end() };
    let mut children = lifetimes_of_children(forest, index).into_iter().peekable();
    let mut parts: Vec<(Label<'a>, Nanos)> = Vec::with_capacity(known.len());
    // A child that outlives this piece stays the first in the list.
    let mut uncovered = |start: Nanos, end: Nanos| {
        let (mut at, mut sum) = (start, 0);
        while let Some((born, died)) = children.peek().copied().filter(|(born, _)| *born < end) {
            sum += born.min(end).since(at).0;
            at = at.max(died.min(end));
            if died > end {
                break;
            }
            children.next();
        }
        Nanos(sum + end.since(at).0)
    };
    let mut at = launch.start().or(known.first().map(|piece| piece.start));
    for Piece { phase, start, end } in known {
        let gap = at.map_or(Nanos(0), |at| uncovered(at, start));
        parts.push((Label::UnknownPhase, gap));
        parts.push((Label::Phase(phase), uncovered(start, end)));
        at = Some(end);
    }
    if let (Some(at), Some(end)) = (at, end) {
        parts.push((Label::UnknownPhase, uncovered(at, end)));
    }
    parts
}

/// Returns the intervals in which at least one child existed, in order.
fn lifetimes_of_children(forest: &Forest<'_>, index: usize) -> Vec<(Nanos, Nanos)> {
    let children = forest.children(index).iter().map(|child| &forest.launches[*child]);
    merge_overlapping(children.filter_map(|child| child.lifetime(forest.end)).collect())
}
