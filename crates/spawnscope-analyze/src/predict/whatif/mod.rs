//! What-if: replays a recording with changes. `changes` turn launches into `adjustments`, `apply`
//! rewrites the programs accordingly, and the replay predicts the wall. `interval` computes the
//! confidence interval.

pub mod adjustments;
mod apply;
pub mod changes;
pub mod constants;
mod interval;
pub mod refill;
mod takeover;
pub mod whatif_report;

use std::collections::BTreeSet;

use crate::model::external_wait::ExternalWait;
use crate::model::phases::Phase;
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use crate::path::critical_path::CriticalPath;
use crate::predict::replay::activity::{Activity, Stage};
use crate::predict::replay::machine::Machine;
use crate::predict::replay::simulate::simulate;
use crate::predict::replay::{Replay, critical_path_of};
use adjustments::Adjustments;
use apply::EditedPrograms;
use changes::Change;
use constants::Constants;
pub use interval::Cause;
use interval::{Margins, Narrowed, Savings};
use spawnscope_data::event::Nanos;
use spawnscope_data::parallel;
pub use takeover::Takeover;

#[derive(Clone, Debug, PartialEq)]
pub struct AppliedChange {
    pub change: Change,
    pub launches: Vec<u32>,
}

#[derive(Clone, Copy)]
pub struct WhatIf<'w, 'a> {
    pub forest: &'w Forest<'a>,
    pub timelines: &'w Timelines,
    pub replay: &'w Replay,
    pub constants: &'w Constants,
}

/// Maximum number of launches in all concurrent replays together, which limits memory. A replay
/// takes about 200 bytes per launch.
const MAX_CONCURRENT_LAUNCHES: usize = 300_000;
/// Uncertainty of a prediction for another number of CPUs, as a share of the saving. The replay
/// does not model caches and clock rates.
const SPREAD_OF_CPUS: f64 = 0.2;

#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    pub wall: Nanos,
    /// The measured wall without the known overhead of recording.
    pub unrecorded: Nanos,
    /// The predicted wall with the changes, without the overhead of recording.
    pub predicted: Nanos,
    /// Lower end of the 95 % confidence interval of `predicted`.
    pub low: Nanos,
    /// Upper end of the 95 % confidence interval of `predicted`.
    pub high: Nanos,
    /// 95 % margin of the saving. It is smaller than the margin of the wall, which also drifts
    /// between runs.
    pub saving_margin: Nanos,
    /// The parts of the margins of the saving and of the wall that differ between runs.
    run_margins: [f64; 2],
    /// What contributes most to the margin of the wall.
    pub widest: Cause,
    /// The replay error, as a share of the measured wall.
    pub replay_error: f64,
    /// For each change, the indices of the launches that it applies to. Empty if several
    /// predictions were made together, which would take much memory.
    pub changed: Vec<Vec<u32>>,
    /// How much less and how much more the saving may be, because some waits have an unknown cause.
    /// `None` if the causes were recorded.
    pub unknown: Option<[Nanos; 2]>,
    /// How much less and how much more the saving may be, because it is unknown how many CPUs the
    /// programs outside of the recording would hold of a larger number. `None` if they held none.
    pub held_by_others: Option<[Nanos; 2]>,
    /// How much less and how much more the saving may be, because nothing tells the start-up of a
    /// program from its work, because it is not known well what recording costs, or because what
    /// remains is quicker.
    guessed: [Nanos; 2],
    /// By how much the lower end of the saving is divided, because recording may have made launches
    /// that many times as long.
    pub slowdown: f64,
}

impl Prediction {
    /// Returns the saving: expected value, lower and upper end of the confidence interval. All are
    /// at least zero.
    pub fn saving(&self) -> [Nanos; 3] {
        let expected = self.unrecorded.since(self.predicted);
        let [_, more] = self.unknown_shift();
        let high = expected.0 + self.saving_margin.0 + more.0;
        // `since` saturates, so the lower end is at least zero.
        let low = expected.since(self.saving_margin).0 as f64 * self.certain_share() / self.slowdown;
        [expected, Nanos(low as u64), Nanos(high).min(self.unrecorded)]
    }

    /// Combines predictions for several recordings of one command. The result is their median, with
    /// the interval of the median: what differs between runs is a smaller part of it, the rest
    /// remains. `None` if there are none.
    pub fn of_several(all: &[Prediction]) -> Option<Prediction> {
        let mut sorted: Vec<&Prediction> = all.iter().collect();
        sorted.sort_by_key(|each| each.predicted);
        let median = *sorted.get(sorted.len() / 2)?;
        let values = |value: fn(&Prediction) -> Nanos| all.iter().map(|each| value(each).0 as f64).collect::<Vec<_>>();
        let [savings, walls] = [values(|each| each.unrecorded.since(each.predicted)), values(|each| each.predicted)];
        let [of_saving, of_wall] = median.run_margins;
        let [saving, wall] = [Narrowed::new(&savings, of_saving), Narrowed::new(&walls, of_wall)];
        let above = median.high.since(median.predicted);
        let below = median.predicted.since(median.low);
        // An interval that ends at zero would be longer.
        let below = if median.low.0 == 0 { below.max(above) } else { below };
        Some(Prediction {
            low: median.predicted.since(wall.of(below)),
            high: Nanos(median.predicted.0 + wall.of(above).0),
            saving_margin: saving.of(median.saving_margin),
            ..median.clone()
        })
    }

    /// Returns how much less and how much more the saving may be, for all unknown reasons together.
    fn unknown_shift(&self) -> [Nanos; 2] {
        let [waits, cpus] = [self.unknown, self.held_by_others].map(Option::unwrap_or_default);
        [0, 1].map(|end| Nanos(waits[end].0 + cpus[end].0 + self.guessed[end].0))
    }

    /// Returns the share of the saving that does not depend on what is unknown.
    fn certain_share(&self) -> f64 {
        let [less, _] = self.unknown_shift();
        let saved = self.unrecorded.since(self.predicted).0;
        if saved == 0 { 1.0 } else { saved.saturating_sub(less.0) as f64 / saved as f64 }
    }
}

impl WhatIf<'_, '_> {
    /// Predicts the wall with each of several sets of changes, as many concurrently as memory
    /// allows.
    pub(crate) fn predict_each(&self, sets: &[&[AppliedChange]]) -> Vec<Prediction> {
        let max_replays = (MAX_CONCURRENT_LAUNCHES / self.forest.launches.len().max(1)).max(1);
        // Several findings may propose the same changes. Each replay takes a while.
        let first_of = |set: &&[AppliedChange]| sets.iter().position(|other| other == set).unwrap_or_default();
        let firsts: Vec<usize> = sets.iter().map(first_of).collect();
        let different: BTreeSet<usize> = firsts.iter().copied().collect();
        let different: Vec<usize> = different.into_iter().collect();
        let predictions = parallel::map(different.len(), max_replays, |index| Prediction {
            changed: Vec::new(),
            ..self.predict(sets[different[index]])
        });
        let of = |first: &usize| predictions[different.binary_search(first).unwrap_or_default()].clone();
        firsts.iter().map(of).collect()
    }

    pub fn predict(&self, changes: &[AppliedChange]) -> Prediction {
        let (adjustments, changed) = self.adjustments(changes);
        let (savings, (predicted, uncertainty)) =
            parallel::join(|| Savings::of(&adjustments.savings(self.forest)), || self.replay_with(&adjustments));
        let wall = self.as_measured(self.replay.unrecorded);
        // At most the whole saving is uncertain.
        let costs = (uncertainty / savings.sum.max(1.0)).min(1.0);
        let costs = costs.hypot(adjustments.cpus.map_or(0.0, |_| SPREAD_OF_CPUS));
        let waits = (self.timelines.polling_uncertainty, self.timelines.is_reconstructed());
        let walls = [predicted, wall - predicted];
        let margins = Margins::new(walls, savings, [costs, self.replay.error()], waits, self.constants.repeatability);
        let saved = (wall - predicted).max(0.0);
        let unknown = self.unknown_waits(&adjustments, &changed, saved, predicted);
        let held_by_others = self.held_by_others(&adjustments, predicted);
        // Launches that ran at the same time save less of the wall than of their own time.
        let scale = saved / savings.sum.max(1.0);
        let guessed = adjustments.guessed_ns.map(|time| time * scale.clamp(0.0, 1.0));
        let unsure = self.unsure_cost(&adjustments, saved);
        let guessed = [guessed[0] + unsure[0], guessed[1] + unsure[1] + margins.quicker].map(|time| Nanos(time as u64));
        let shifts = [unknown.unwrap_or_default(), held_by_others.unwrap_or_default(), guessed];
        let shifts = shifts.map(|shift| shift.map(|time| time.0 as f64));
        let largest = shifts.map(|[less, more]| less.max(more));
        let [less, more] = [0, 1].map(|end| shifts.iter().map(|shift| shift[end]).sum::<f64>());
        Prediction {
            wall: self.replay.measured,
            unrecorded: Nanos(wall.round() as u64),
            predicted: Nanos(predicted.round() as u64),
            low: Nanos((predicted - margins.wall() - more).max(0.0) as u64),
            high: Nanos((predicted + self.margin_above(margins.wall(), saved, less)) as u64),
            saving_margin: Nanos(margins.saving() as u64),
            run_margins: margins.of_one_run(),
            widest: margins.largest_cause(largest),
            replay_error: self.replay.error(),
            changed,
            unknown,
            held_by_others,
            guessed,
            slowdown: self.constants.slowdown.max(1.0),
        }
    }

    /// Replays with adjustments, for a run without recording. Returns the wall and the uncertainty
    /// of the adjustments.
    fn replay_with(&self, adjustments: &Adjustments) -> (f64, f64) {
        let mut edited = EditedPrograms::new(&self.replay.programs, adjustments, self.replay.ends.is_some());
        let played = simulate(&mut edited, &self.machine(adjustments));
        (self.as_measured(played), edited.uncertainty())
    }

    /// Returns how much less and how much more is saved if recording cost as much and as little as
    /// it may have.
    fn unsure_cost(&self, adjustments: &Adjustments, saved: f64) -> [f64; 2] {
        let ends = self.replay.ends.into_iter().flatten().map(|(remains, unrecorded)| {
            let machine = self.machine(adjustments).unrecorded(remains);
            let played = simulate(&mut EditedPrograms::new(&self.replay.programs, adjustments, true), &machine);
            self.as_measured(unrecorded) - self.as_measured(played)
        });
        ends.fold([0.0, 0.0], |[less, more], end| [less.max(saved - end), more.max(end - saved)])
    }

    fn machine(&self, adjustments: &Adjustments) -> Machine {
        Machine::with_cpus(adjustments.cpus.unwrap_or(self.replay.cpus)).unrecorded(self.replay.remains)
    }

    /// Returns by how much the wall may be longer than predicted. `less`: how much less than
    /// `saved` may be saved, because something is unknown.
    fn margin_above(&self, margin: f64, saved: f64, less: f64) -> f64 {
        let certain = 1.0 - (less / saved.max(1.0)).min(1.0);
        let drift = interval::drift(self.constants.repeatability) * self.as_measured(self.replay.unrecorded);
        // If unknown waits cancel a part of the saving, that part has no margin of its own, only
        // the drift between runs.
        let above = less + margin * certain + drift * (1.0 - certain);
        // What the saving may be less because launches were slowed, the wall may be longer.
        let above = above + (saved - above).max(0.0) * (1.0 - 1.0 / self.constants.slowdown.max(1.0));
        // A change that saves time saves none in the worst case: it does not make the wall longer.
        if saved > 0.0 { above.min(saved + drift) } else { above }
    }

    /// Returns how much less and how much more is saved with another number of CPUs, if programs
    /// outside of the recording hold all CPUs that they can get, and if they hold none that the
    /// command needs.
    fn held_by_others(&self, adjustments: &Adjustments, predicted: f64) -> Option<[Nanos; 2]> {
        adjustments.cpus.filter(|_| adjustments.contention < 1.0)?;
        let [most, none] = [1.0, 0.0].map(|contention| {
            let mut adjustments = adjustments.clone();
            adjustments.contention = contention;
            self.replay_with(&adjustments).0
        });
        let shift = [most - predicted, predicted - none].map(|time| Nanos(time.max(0.0) as u64));
        (shift != [Nanos(0); 2]).then_some(shift)
    }

    /// Returns how much less and how much more the saving may be, because the causes of some waits
    /// are unknown. Waits that remain cannot reduce the saving below zero. Waits without an assumed
    /// cause count only if they are on the critical path.
    fn unknown_waits(
        &self,
        adjustments: &Adjustments,
        changed: &[Vec<u32>],
        saved: f64,
        predicted: f64,
    ) -> Option<[Nanos; 2]> {
        let unknown = self.timelines.unknown.as_ref()?;
        let changed: Vec<u32> = changed.iter().flatten().copied().collect();
        let shift = unknown.shift(self.forest, &changed);
        let mut unsupposed = shift.may_go_unsupposed;
        if unsupposed.0 > 0 {
            let on_path = self.path_with(adjustments).external_wait.get(&ExternalWait::Unknown).copied();
            unsupposed = unsupposed.min(on_path.unwrap_or_default());
        }
        let stage = Stage::new(Phase::Create, 0);
        let launches = 0..self.forest.launches.len() as u32;
        let cheaper = launches.filter(|launch| adjustments.factor(Activity { launch: *launch, stage }) < 1.0);
        let created = cheaper.map(|launch| unknown.creation(launch));
        let margins = created.map(|it| [it.supposed.since(it.least).0, it.longest.since(it.supposed).0]);
        let [shorter, longer] = margins.fold([0; 2], |sum, each| [sum[0] + each[0], sum[1] + each[1]]);
        let less = ((shift.may_stay.0 + shorter) as f64).min(saved);
        let more = ((shift.may_go.0 + unsupposed.0 + longer) as f64).min(predicted);
        Some([Nanos(less as u64), Nanos(more as u64)])
    }

    pub fn unrecorded(&self) -> Nanos {
        Nanos(self.as_measured(self.replay.unrecorded).round() as u64)
    }

    /// Scales a replayed wall by the ratio of the measured wall to the wall of the unchanged
    /// replay. All replayed walls have the same replay error, so most of it cancels. A replay
    /// without the overhead of recording may be longer than one with it, because threads run in
    /// another order; then the ratio to this longer wall is used.
    fn as_measured(&self, played: Nanos) -> f64 {
        let unchanged = self.replay.unchanged.max(self.replay.unrecorded);
        let measured = self.replay.measured.0 as f64 / unchanged.0.max(1) as f64;
        measured * played.0 as f64
    }

    pub fn critical_path(&self, changes: &[AppliedChange]) -> CriticalPath {
        self.path_with(&self.adjustments(changes).0)
    }

    fn path_with(&self, adjustments: &Adjustments) -> CriticalPath {
        let mut edited = EditedPrograms::new(&self.replay.programs, adjustments, true);
        critical_path_of(&mut edited, &self.machine(adjustments), self.forest.launches.len())
    }

    fn adjustments(&self, changes: &[AppliedChange]) -> (Adjustments, Vec<Vec<u32>>) {
        let mut adjustments = Adjustments::none(self.forest);
        adjustments.refill = self.constants.refill;
        let mut changed = Vec::with_capacity(changes.len());
        for applied in changes {
            let before = adjustments.removed.clone();
            let affected = applied.change.edit(*self, &applied.launches, &mut adjustments).into_iter();
            let is_removed = |launch: &u32| !before[*launch as usize] && adjustments.is_removed(*launch);
            changed.push(affected.partition::<Vec<u32>, _>(is_removed));
        }
        // Another change may have removed the launches that this one did not remove.
        let changed = changed.into_iter().map(|(mut affected, others)| {
            affected.extend(others.into_iter().filter(|launch| !adjustments.is_removed(*launch)));
            affected.sort_unstable();
            affected
        });
        let changed = changed.collect();
        (adjustments, changed)
    }
}
