//! The adjustments for a replay, by launch and phase: which launches are removed, how much of each
//! phase remains, and which waits change. `apply` rewrites the programs accordingly.

use std::collections::BTreeMap;

use super::refill::Refill;
use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use crate::predict::replay::activity::{Activity, ActivityKind, Stage};
use crate::predict::replay::machine::MAX_WAKE_UP;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::Nanos;

#[derive(Clone, Debug, Default)]
pub struct Adjustments {
    pub(super) removed: Vec<bool>,
    /// For each launch, which phases are removed: a bit for each.
    removed_phases: Vec<u8>,
    /// For each phase, the remaining share of it in each launch. Empty if all of it remains.
    factors: [Vec<f32>; Phase::ALL.len()],
    /// For each launch, whether its supervision by the parent is removed.
    unsupervised: Vec<bool>,
    /// Remaining share of a phase after one exec, for launches with several execs.
    pieces: HashMap<Activity, f32>,
    /// Remaining shares of waits for a CPU and of sleeps in `run`, for launches whose run is longer
    /// because others were merged into it. Empty if there are none.
    waits: Vec<Option<[f32; 2]>>,
    /// For each launch, whether its parent waits until its exec, as after vfork.
    pub(super) waits_for_exec: Vec<bool>,
    /// For each launch, whether its parent reaps it at once instead of sleeping through its end.
    pub(super) reaped_at_once: Vec<bool>,
    pub no_scan: bool,
    /// The cache refill that work saves if the pause before it is removed.
    pub(super) refill: Refill,
    /// Uncertainty of the remaining time of all launches, in nanoseconds. It comes from costs that
    /// were measured separately or assumed.
    pub(super) uncertainty_ns: f64,
    /// How much less and how much more is saved if what was taken for start-up is work, and if what
    /// was taken for work is start-up, in nanoseconds.
    pub(super) guessed_ns: [f64; 2],
    pub cpus: Option<u32>,
    /// Remaining share of the time for which programs outside of the recording held the CPUs.
    pub(super) contention: f64,
    changed: Vec<bool>,
    /// For each launch, the saving that no phase factor expresses, in nanoseconds. Empty if there
    /// are none.
    saved: Vec<f64>,
    /// The launches that do the work of others, which were merged into them. They save nothing
    /// themselves.
    merged: HashSet<u32>,
}

impl Adjustments {
    pub fn none(forest: &Forest<'_>) -> Adjustments {
        let count = forest.launches.len();
        Adjustments {
            removed: vec![false; count],
            removed_phases: vec![0; count],
            unsupervised: vec![false; count],
            waits_for_exec: vec![false; count],
            reaped_at_once: vec![false; count],
            changed: vec![false; count],
            contention: 1.0,
            ..Adjustments::default()
        }
    }

    pub(super) fn remove(&mut self, forest: &Forest<'_>, launch: u32) {
        self.changed[launch as usize] = true;
        self.remove_within(forest, &[launch as usize]);
    }

    /// Removes launches and their descendants as part of another launch that changes, whose saving
    /// includes theirs.
    pub(super) fn remove_within(&mut self, forest: &Forest<'_>, launches: &[usize]) {
        for step in forest.walk(launches) {
            self.removed[step.index] = true;
        }
    }

    pub(super) fn scale(&mut self, launch: u32, phase: Phase, factor: f64) {
        self.changed[launch as usize] = true;
        if factor == 0.0 {
            self.removed_phases[launch as usize] |= 1 << phase as u8;
        } else {
            let factors = &mut self.factors[phase as usize];
            factors.resize(self.removed.len(), 1.0);
            factors[launch as usize] *= factor as f32;
        }
    }

    /// Returns the share of a phase that remains after the adjustments so far.
    pub(super) fn remaining_share(&self, launch: u32, phase: Phase) -> f64 {
        f64::from(self.phase_factor(launch, phase))
    }

    fn phase_factor(&self, launch: u32, phase: Phase) -> f32 {
        let is_removed = self.removed_phases[launch as usize] & 1 << phase as u8 != 0;
        let factors = &self.factors[phase as usize];
        if is_removed { 0.0 } else { factors.get(launch as usize).copied().unwrap_or(1.0) }
    }

    pub(super) fn scale_piece(&mut self, launch: u32, phase: Phase, exec: usize, factor: f64) {
        self.changed[launch as usize] = true;
        let stage = Stage::new(phase, exec);
        *self.pieces.entry(Activity { launch, stage }).or_insert(1.0) *= factor as f32;
    }

    /// Scales the waits for a CPU and the sleeps in the run of a launch by factors of their own,
    /// instead of that of its work.
    pub(super) fn scale_waits(&mut self, launch: u32, factors: [f64; 2]) {
        self.waits.resize(self.removed.len(), None);
        self.waits[launch as usize] = Some(factors.map(|factor| factor as f32));
    }

    /// Adds an approximate saving at a launch that no phase factor expresses, in nanoseconds.
    pub(super) fn add_saving(&mut self, launch: u32, nanos: f64) {
        self.changed[launch as usize] = true;
        *self.saved_of(launch) += nanos;
    }

    fn saved_of(&mut self, launch: u32) -> &mut f64 {
        self.saved.resize(self.removed.len(), 0.0);
        &mut self.saved[launch as usize]
    }

    /// Moves work of a removed launch to another launch: the first saves less.
    pub(super) fn move_work(&mut self, from: u32, to: u32, nanos: f64) {
        *self.saved_of(from) -= nanos;
        self.merged.insert(to);
    }

    /// Returns how much of the work of a removed launch another launch does, in nanoseconds.
    pub(super) fn moved_work(&self, launch: u32) -> Nanos {
        Nanos(-self.saved.get(launch as usize).copied().unwrap_or_default().min(0.0) as u64)
    }

    pub(super) fn drop_supervision(&mut self, launch: u32) {
        self.unsupervised[launch as usize] = true;
    }

    /// Makes the parent wait for the exec of a launch, as after vfork.
    pub(super) fn wait_for_exec(&mut self, launch: u32) {
        self.changed[launch as usize] = true;
        self.waits_for_exec[launch as usize] = true;
    }

    pub(super) fn reap_at_once(&mut self, launch: u32) {
        self.changed[launch as usize] = true;
        self.reaped_at_once[launch as usize] = true;
    }

    /// Whether any parent waits for a launch for which it did not wait in the recording.
    pub(super) fn adds_waits(&self) -> bool {
        self.waits_for_exec.contains(&true) || self.reaped_at_once.contains(&true)
    }

    pub fn is_removed(&self, launch: u32) -> bool {
        self.removed[launch as usize]
    }

    /// Whether nothing changes for a launch itself.
    pub(super) fn keeps(&self, launch: u32) -> bool {
        self.contention == 1.0 && !self.removed[launch as usize] && !self.changed[launch as usize]
    }

    /// Returns the remaining share of an activity.
    pub fn factor(&self, activity: Activity) -> f64 {
        if self.removed[activity.launch as usize] {
            return 0.0;
        }
        let has_pieces = self.changed[activity.launch as usize] && !self.pieces.is_empty();
        let piece = if has_pieces { self.pieces.get(&activity).copied().unwrap_or(1.0) } else { 1.0 };
        let phase = match activity.stage.kind() {
            ActivityKind::Phase(phase) => self.phase_factor(activity.launch, phase),
            ActivityKind::Supervise if self.unsupervised[activity.launch as usize] => 0.0,
            // After vfork, no pages are shared that the parent could have faults on.
            ActivityKind::Faults if self.waits_for_exec[activity.launch as usize] => 0.0,
            ActivityKind::Supervise | ActivityKind::Faults => 1.0,
        };
        f64::from(phase * piece)
    }

    /// Returns the remaining share of a wait for a CPU during an activity.
    pub(super) fn factor_of_queue(&self, wait: Nanos, activity: Activity) -> f64 {
        let contention = if wait > MAX_WAKE_UP { self.contention } else { 1.0 };
        contention * self.factor_of_wait(activity, 0)
    }

    /// `kind` is 0 for waits for a CPU, 1 for sleeps.
    pub(super) fn factor_of_wait(&self, activity: Activity, kind: usize) -> f64 {
        let wait_factors = self.waits.get(activity.launch as usize).copied().flatten();
        match wait_factors.filter(|_| activity.is(Phase::Run)) {
            Some(factors) if !self.is_removed(activity.launch) => f64::from(factors[kind]),
            _ => self.factor(activity),
        }
    }

    /// Returns the approximate savings of changed launches, grouped by program.
    pub(super) fn savings(&self, forest: &Forest<'_>) -> Vec<Vec<f64>> {
        let mut by_program: BTreeMap<&[u8], Vec<f64>> = BTreeMap::new();
        for (index, launch) in forest.launches.iter().enumerate() {
            if self.changed[index] && !self.merged.contains(&(index as u32)) {
                by_program.entry(launch.command.name).or_default().push(self.saving(forest, index));
            }
        }
        by_program.into_values().collect()
    }

    fn saving(&self, forest: &Forest<'_>, index: usize) -> f64 {
        let launch = &forest.launches[index];
        let number = index as u32;
        let other_saving = self.saved.get(index).copied().unwrap_or_default();
        if self.removed[index] {
            return launch.total(forest.end).unwrap_or_default().0 as f64 + other_saving;
        }
        if self.reaped_at_once[index] {
            return launch.phases.get(Phase::Reap).unwrap_or_default().0 as f64;
        }
        let has_pieces = launch.execs.len() > 1 && !self.pieces.is_empty();
        if has_pieces {
            return self.saving_of_pieces(launch, number) + other_saving;
        }
        // A factor that is not that of the waits is one of the CPU time. The whole run of a
        // program that waits for its children is many times as long.
        let has_waits = self.waits.get(index).is_some_and(Option::is_some);
        let of_work = launch.cpu_phases.get(Phase::Run).filter(|_| has_waits);
        let saved = launch.phases.iter().map(|(phase, time)| {
            let time = of_work.filter(|_| phase == Phase::Run).or(time);
            time.unwrap_or_default().0 as f64 * (1.0 - self.remaining_share(number, phase))
        });
        saved.sum::<f64>() + other_saving
    }

    fn saving_of_pieces(&self, launch: &Launch<'_>, number: u32) -> f64 {
        let pieces = launch.pieces(None);
        let savings = pieces.iter().map(|piece| {
            let stage = Stage::of_piece(launch, piece);
            let remains = self.factor(Activity { launch: number, stage });
            piece.end.since(piece.start).0 as f64 * (1.0 - remains)
        });
        savings.sum()
    }
}
