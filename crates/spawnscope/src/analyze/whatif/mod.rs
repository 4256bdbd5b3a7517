//! What if: a recording with changes, played again. `changes` turn launches into `adjustments`, `apply` rewrites the programs by
//! them, and the replay says how long it takes then; `interval` says how far that may be off.

pub mod adjustments;
mod apply;
pub mod changes;
pub mod constants;
mod interval;
pub mod refill;
mod supervision;
pub mod whatif_report;

use std::collections::HashSet;

use super::critical_path::CriticalPath;
use super::replay::{Replay, critical_path_of, simulate};
use super::timeline::Timelines;
use super::tree::Forest;
use crate::event::Nanos;
use adjustments::Adjustments;
use apply::Edited;
use changes::{Change, Context};
use constants::Constants;
use simulate::Machine;

/// A change and the launches that it is asked for.
#[derive(Clone, Debug)]
pub struct Fix {
    /// What is done.
    pub change: Change,
    /// To which launches, by index.
    pub launches: Vec<u32>,
}

/// A recording that changes can be tried on.
#[derive(Clone, Copy)]
pub struct WhatIf<'w, 'a> {
    /// The launches.
    pub forest: &'w Forest<'a>,
    /// Their threads.
    pub timelines: &'w Timelines,
    /// The recording, ready to be played.
    pub replay: &'w Replay,
    /// What creation costs on the machine.
    pub constants: &'w Constants,
}

/// What the replay does not know of other CPUs, caches and clocks among them, as a share of what they save.
const SPREAD_OF_CPUS: f64 = 0.2;

/// What changes would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The wall as it was measured.
    pub wall: Nanos,
    /// The same without what recording took, as far as that is known.
    pub unrecorded: Nanos,
    /// The wall with the changes, unrecorded.
    pub predicted: Nanos,
    /// It is likely (95 %) to lie between this
    pub low: Nanos,
    /// and this.
    pub high: Nanos,
    /// What is saved is likely to differ from what is predicted by no more than this; less than the wall, which drifts besides.
    pub saving_margin: Nanos,
    /// By how much the unchanged replay missed the measured wall, as a share of it.
    pub replay_error: f64,
    /// For each change the launches that it holds for, by index.
    pub changed: Vec<Vec<u32>>,
}

impl Prediction {
    /// What is saved: the expected, the least and the most, each zero at least.
    #[must_use]
    pub fn saving(&self) -> [Nanos; 3] {
        let expected = self.unrecorded.since(self.predicted);
        let most = Nanos((expected.0 + self.saving_margin.0).min(self.unrecorded.0));
        [expected, expected.since(self.saving_margin), most]
    }
}

/// The launches that a change holds for.
struct Held {
    /// Those that it took away itself.
    removed: Vec<u32>,
    /// Those that another change may yet take away, or has.
    others: Vec<u32>,
}

impl Held {
    fn by(fix: &Fix, context: Context<'_, '_>, adjustments: &mut Adjustments) -> Held {
        let was_there = |launch: &u32| !adjustments.is_removed(*launch);
        let before: HashSet<u32> = fix.launches.iter().copied().filter(was_there).collect();
        let held = fix.change.edit(context, &fix.launches, adjustments);
        let is_its_own = |launch: &u32| before.contains(launch) && adjustments.is_removed(*launch);
        let (removed, others) = held.into_iter().partition(is_its_own);
        Held { removed, others }
    }

    /// What is taken away by another change is no longer changed by this one.
    fn in_the_end(mut self, adjustments: &Adjustments) -> Vec<u32> {
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
        // Whoever runs the command with the changes does not record it.
        let played = simulate::simulate(edited, &Machine::with_cpus(cpus).unrecorded());
        let (predicted, wall) = (self.as_measured(played), self.as_measured(self.replay.unrecorded));
        let error = self.replay.error();
        let savings = adjustments.savings(self.forest);
        let constants = uncertain / savings.iter().flatten().sum::<f64>().max(1.0);
        let spread = constants.hypot(adjustments.cpus.map_or(0.0, |_| SPREAD_OF_CPUS));
        let margins = interval::margins(predicted, wall - predicted, &savings, spread, error);
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

    /// The wall without what recording took, as far as that is known.
    #[must_use]
    pub fn unrecorded(&self) -> Nanos {
        Nanos(self.as_measured(self.replay.unrecorded).round() as u64)
    }

    /// The replay's own error is in all walls, so their ratio is free of most of it.
    fn as_measured(&self, played: Nanos) -> f64 {
        let measured = self.replay.measured.0 as f64 / self.replay.unchanged.0.max(1) as f64;
        measured * played.0 as f64
    }

    /// The critical path with all changes together.
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
        };
        let mut adjustments = Adjustments::none(self.forest);
        adjustments.refill = self.constants.refill;
        let changed: Vec<Held> = fixes
            .iter()
            .map(|fix| Held::by(fix, context, &mut adjustments))
            .collect();
        let changed = changed.into_iter().map(|held| held.in_the_end(&adjustments)).collect();
        (adjustments, changed)
    }
}
