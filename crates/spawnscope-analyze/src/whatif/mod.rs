//! What-if: replays a recording with changes. `changes` turn launches into `adjustments`, `apply` rewrites the programs accordingly, and
//! the replay predicts the wall. `interval` computes the confidence interval.

pub mod adjustments;
mod apply;
pub mod changes;
pub mod constants;
pub(crate) mod interval;
pub mod refill;
mod supervision;
pub mod whatif_report;

use std::collections::HashSet;

use crate::critical_path::CriticalPath;
use crate::replay::simulate::{Machine, simulate};
use crate::replay::{Replay, critical_path_of};
use crate::timeline::Timelines;
use crate::tree::Forest;
use adjustments::Adjustments;
use apply::Edited;
use changes::{Change, Context};
use constants::Constants;
use spawnscope_data::event::Nanos;

/// A change and the launches it is requested for.
#[derive(Clone, Debug)]
pub struct Fix {
    /// The change.
    pub change: Change,
    /// The launches, by index.
    pub launches: Vec<u32>,
}

/// The input of a what-if.
#[derive(Clone, Copy)]
pub struct WhatIf<'w, 'a> {
    /// The launches.
    pub forest: &'w Forest<'a>,
    /// Their threads.
    pub timelines: &'w Timelines,
    /// The replay of the recording.
    pub replay: &'w Replay,
    /// What creating a process costs on the recorded machine.
    pub constants: &'w Constants,
}

/// Uncertainty of a different number of CPUs, as a share of the saving: the replay does not model caches and clock rates.
const SPREAD_OF_CPUS: f64 = 0.2;

/// The predicted effect of changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The measured wall.
    pub wall: Nanos,
    /// The measured wall without the overhead of recording, as far as that is known.
    pub unrecorded: Nanos,
    /// The predicted wall with the changes, without the overhead of recording.
    pub predicted: Nanos,
    /// Lower end of the 95 % confidence interval of `predicted`.
    pub low: Nanos,
    /// Upper end of the 95 % confidence interval of `predicted`.
    pub high: Nanos,
    /// 95 % margin of the saving. Smaller than that of the wall, which also drifts between runs.
    pub saving_margin: Nanos,
    /// The replay error: the deviation of the unchanged replay from the measured wall, as a share of it.
    pub replay_error: f64,
    /// For each change, the launches it applies to, by index.
    pub changed: Vec<Vec<u32>>,
}

impl Prediction {
    /// Returns the saving: expected value, lower and upper end. None is below zero.
    #[must_use]
    pub fn saving(&self) -> [Nanos; 3] {
        let expected = self.unrecorded.since(self.predicted);
        let most = Nanos((expected.0 + self.saving_margin.0).min(self.unrecorded.0));
        [expected, expected.since(self.saving_margin), most]
    }
}

/// The launches that a change applies to.
struct AffectedLaunches {
    /// Launches that this change removed.
    removed: Vec<u32>,
    /// Launches that another change has removed, or may still remove.
    others: Vec<u32>,
}

impl AffectedLaunches {
    fn of(fix: &Fix, context: Context<'_, '_>, adjustments: &mut Adjustments) -> AffectedLaunches {
        let mut before: HashSet<u32> = fix.launches.iter().copied().collect();
        before.retain(|launch| !adjustments.is_removed(*launch));
        let affected = fix.change.edit(context, &fix.launches, adjustments).into_iter();
        let (removed, others) = affected.partition(|launch| before.contains(launch) && adjustments.is_removed(*launch));
        AffectedLaunches { removed, others }
    }

    /// Returns the launches without those that another change removed.
    fn remaining(mut self, adjustments: &Adjustments) -> Vec<u32> {
        self.others.retain(|launch| !adjustments.is_removed(*launch));
        self.removed.extend(self.others);
        self.removed.sort_unstable();
        self.removed
    }
}

impl WhatIf<'_, '_> {
    /// Predicts the wall with all changes together.
    #[must_use]
    pub fn predict(&self, fixes: &[Fix]) -> Prediction {
        let (adjustments, changed) = self.adjustments(fixes);
        let edited = Edited::new(&self.replay.programs, &adjustments);
        let uncertain = edited.uncertain;
        let cpus = adjustments.cpus.unwrap_or(self.replay.cpus);
        // The prediction is for a run without recording.
        let played = simulate(edited, &Machine::with_cpus(cpus).unrecorded());
        let (predicted, wall) = (self.as_measured(played), self.as_measured(self.replay.unrecorded));
        let error = self.replay.error();
        let savings = adjustments.savings(self.forest);
        // More than the whole saving cannot be uncertain.
        let constants = (uncertain / savings.iter().flatten().sum::<f64>().max(1.0)).min(1.0);
        let spread = constants.hypot(adjustments.cpus.map_or(0.0, |_| SPREAD_OF_CPUS));
        let margins = interval::margins(predicted, wall - predicted, &savings, spread, error);
        let margins = margins.with_rounds(wall - predicted, self.timelines.waits_for_polling);
        Prediction {
            wall: self.replay.measured,
            unrecorded: Nanos(wall.round() as u64),
            predicted: Nanos(predicted.round() as u64),
            low: Nanos((predicted - margins.wall).max(0.0) as u64),
            high: Nanos((predicted + margins.wall) as u64),
            saving_margin: Nanos(margins.saving as u64),
            replay_error: error,
            changed,
        }
    }

    /// Returns the wall without the overhead of recording, as far as that is known.
    #[must_use]
    pub fn unrecorded(&self) -> Nanos {
        Nanos(self.as_measured(self.replay.unrecorded).round() as u64)
    }

    /// Scales a replayed wall by measured to unchanged wall. All replayed walls share the replay error, so most of it cancels. Without the
    /// overhead of recording, threads may meet in another order; the command takes no longer for that.
    fn as_measured(&self, played: Nanos) -> f64 {
        let unchanged = self.replay.unchanged.max(self.replay.unrecorded);
        let measured = self.replay.measured.0 as f64 / unchanged.0.max(1) as f64;
        measured * played.0 as f64
    }

    /// Returns the critical path with all changes together.
    #[must_use]
    pub fn critical_path(&self, fixes: &[Fix]) -> CriticalPath {
        let (adjustments, _) = self.adjustments(fixes);
        let edited = Edited::new(&self.replay.programs, &adjustments);
        let cpus = adjustments.cpus.unwrap_or(self.replay.cpus);
        let machine = Machine::with_cpus(cpus).unrecorded();
        critical_path_of(edited, &machine, self.forest.launches.len())
    }

    fn adjustments(&self, fixes: &[Fix]) -> (Adjustments, Vec<Vec<u32>>) {
        let context = Context {
            forest: self.forest,
            timelines: self.timelines,
            constants: self.constants,
            cpus: self.replay.cpus,
        };
        let mut adjustments = Adjustments::none(self.forest);
        adjustments.refill = self.constants.refill;
        let changed: Vec<AffectedLaunches> = fixes
            .iter()
            .map(|fix| AffectedLaunches::of(fix, context, &mut adjustments))
            .collect();
        let changed = changed
            .into_iter()
            .map(|affected| affected.remaining(&adjustments))
            .collect();
        (adjustments, changed)
    }
}
