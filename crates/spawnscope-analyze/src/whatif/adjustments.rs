//! The adjustments of a replay, by launch and phase: which launches are removed, how much of each phase remains, and which waits change.
//! `apply` rewrites the programs accordingly.

use std::collections::{BTreeMap, HashMap};

use super::refill::Refill;
use crate::launch::Launch;
use crate::phases::Phase;
use crate::pieces::Piece;
use crate::replay::activity::{Activity, ActivityKind, Stage};
use crate::tree::Forest;
use spawnscope_data::event::Nanos;

/// Changes to the launches of a recording.
#[derive(Clone, Debug)]
pub struct Adjustments {
    /// By launch: whether it is removed.
    removed: Vec<bool>,
    /// By launch: the remaining share of each phase.
    factors: Vec<[f32; Phase::ALL.len()]>,
    /// By launch: the remaining share of its supervision by the parent.
    supervision: Vec<f32>,
    /// Remaining share of single phases after one exec, for launches with several execs.
    pieces: HashMap<Activity, f32>,
    /// Remaining shares of the waits for a CPU and of the sleeps in runs that merging made longer.
    waits: HashMap<u32, [f32; 2]>,
    /// By launch: whether its parent waits until its exec, as after vfork.
    pub(super) waited_for: Vec<bool>,
    /// By launch: whether its parent reaps it at once, and does not sleep through its end.
    pub(super) reaped_at_once: Vec<bool>,
    /// Whether waits for a permission scanner are removed.
    pub no_scan: bool,
    /// Cache refill that work saves when the pause before it is removed.
    pub(super) refill: Refill,
    /// Uncertainty of the remaining time of all launches, in nanoseconds: costs that were measured separately or assumed.
    pub(super) uncertain: f64,
    /// Number of CPUs, if it changes.
    pub cpus: Option<u32>,
    /// By launch: whether anything changes.
    changed: Vec<bool>,
    /// Savings that no phase factor expresses, in nanoseconds.
    saved: HashMap<u32, f64>,
    /// By launch: the launch whose saving includes this one. When merging moves work from one launch to another, the two have one saving.
    counted_with: HashMap<u32, u32>,
}

impl Adjustments {
    /// Returns adjustments without any change.
    #[must_use]
    pub fn none(forest: &Forest<'_>) -> Adjustments {
        let count = forest.launches.len();
        Adjustments {
            removed: vec![false; count],
            factors: vec![[1.0; Phase::ALL.len()]; count],
            supervision: vec![1.0; count],
            pieces: HashMap::new(),
            waits: HashMap::new(),
            waited_for: vec![false; count],
            reaped_at_once: vec![false; count],
            no_scan: false,
            refill: Refill::default(),
            uncertain: 0.0,
            cpus: None,
            changed: vec![false; count],
            saved: HashMap::new(),
            counted_with: HashMap::new(),
        }
    }

    /// Removes a launch and its descendants.
    pub(super) fn remove(&mut self, forest: &Forest<'_>, launch: u32) {
        self.changed[launch as usize] = true;
        self.remove_within(forest, &[launch as usize]);
    }

    /// Removes launches and their descendants as part of a launch that changes anyway. The saving of that launch includes theirs.
    pub(super) fn remove_within(&mut self, forest: &Forest<'_>, launches: &[usize]) {
        for step in forest.walk(launches) {
            self.removed[step.index] = true;
        }
    }

    /// Scales a phase by `factor`.
    pub(super) fn scale(&mut self, launch: u32, phase: Phase, factor: f64) {
        self.changed[launch as usize] = true;
        self.factors[launch as usize][phase as usize] *= factor as f32;
    }

    /// Returns the remaining share of a phase so far.
    pub(super) fn remaining(&self, launch: u32, phase: Phase) -> f64 {
        f64::from(self.factors[launch as usize][phase as usize])
    }

    /// Scales a phase after one exec of a launch.
    pub(super) fn scale_piece(&mut self, launch: u32, phase: Phase, exec: usize, factor: f64) {
        self.changed[launch as usize] = true;
        let stage = Stage::new(phase, exec);
        *self.pieces.entry(Activity { launch, stage }).or_insert(1.0) *= factor as f32;
    }

    /// Scales the waits for a CPU, and the sleeps, in the run of a launch by other factors than its work.
    pub(super) fn scale_waits(&mut self, launch: u32, factors: [f64; 2]) {
        self.waits.insert(launch, factors.map(|factor| factor as f32));
    }

    /// Notes an approximate saving at a launch that comes from a change to all launches.
    pub(super) fn saves(&mut self, launch: u32, nanos: f64) {
        self.changed[launch as usize] = true;
        *self.saved.entry(launch).or_default() += nanos;
    }

    /// Notes that the work of a removed launch moves to another one, which saves less by it.
    pub(super) fn moves_work(&mut self, from: u32, to: u32, nanos: f64) {
        *self.saved.entry(from).or_default() -= nanos;
        *self.saved.entry(to).or_default() += nanos;
    }

    /// Counts the savings of launches as one, since the first of them does the work of all.
    pub(super) fn count_together(&mut self, launches: &[u32]) {
        if let Some((first, others)) = launches.split_first() {
            self.counted_with.extend(others.iter().map(|other| (*other, *first)));
        }
    }

    /// Removes the supervision of a launch by its parent.
    pub(super) fn drop_supervision(&mut self, launch: u32) {
        self.supervision[launch as usize] = 0.0;
    }

    /// Makes the parent wait for the exec of a launch, as after vfork.
    pub(super) fn wait_for(&mut self, launch: u32) {
        self.changed[launch as usize] = true;
        self.waited_for[launch as usize] = true;
    }

    /// Makes the parent reap a launch at once.
    pub(super) fn reap_at_once(&mut self, launch: u32) {
        self.changed[launch as usize] = true;
        self.reaped_at_once[launch as usize] = true;
    }

    /// Whether a parent waits for a launch where it did not in the recording.
    pub(super) fn adds_waits(&self) -> bool {
        self.waited_for.contains(&true) || self.reaped_at_once.contains(&true)
    }

    /// Whether a launch is removed.
    #[must_use]
    pub fn is_removed(&self, launch: u32) -> bool {
        self.removed[launch as usize]
    }

    /// Returns the remaining share of an activity.
    #[must_use]
    pub fn factor(&self, activity: Activity) -> f64 {
        if self.removed[activity.launch as usize] {
            return 0.0;
        }
        let of_piece = || self.pieces.get(&activity).copied().unwrap_or(1.0);
        let piece = if self.pieces.is_empty() { 1.0 } else { of_piece() };
        let phase = match activity.stage.kind() {
            ActivityKind::Phase(phase) => self.factors[activity.launch as usize][phase as usize],
            ActivityKind::Supervise => self.supervision[activity.launch as usize],
            // Without shared pages the parent has no page faults.
            ActivityKind::Faults if self.waited_for[activity.launch as usize] => 0.0,
            ActivityKind::Faults => 1.0,
        };
        f64::from(phase * piece)
    }

    /// Returns the remaining share of waits for a CPU during an activity.
    pub(super) fn factor_of_queue(&self, activity: Activity) -> f64 {
        self.factor_of_wait(activity, 0)
    }

    /// Returns the remaining share of sleeps during an activity.
    pub(super) fn factor_of_sleep(&self, activity: Activity) -> f64 {
        self.factor_of_wait(activity, 1)
    }

    fn factor_of_wait(&self, activity: Activity, kind: usize) -> f64 {
        let of_run = self.waits.get(&activity.launch).filter(|_| activity.is(Phase::Run));
        match of_run {
            Some(factors) if !self.is_removed(activity.launch) => f64::from(factors[kind]),
            _ => self.factor(activity),
        }
    }

    /// Returns the approximate saving of each changed launch, grouped by program. Merged launches have one saving together. Callers use
    /// only the spread of these values.
    #[must_use]
    pub fn savings(&self, forest: &Forest<'_>) -> Vec<Vec<f64>> {
        let changed = (0..forest.launches.len()).filter(|index| self.changed[*index]);
        let mut savings: Vec<(u32, f64)> = changed
            .map(|index| {
                let counted = self.counted_with.get(&(index as u32)).copied().unwrap_or(index as u32);
                (counted, self.saving(forest, index))
            })
            .collect();
        savings.sort_by_key(|(counted, _)| *counted);
        let mut by_program: BTreeMap<&[u8], Vec<f64>> = BTreeMap::new();
        for together in savings.chunk_by(|(one, _), (other, _)| one == other) {
            let program = forest.launches[together[0].0 as usize].command.name;
            let saving = together.iter().map(|(_, saving)| saving).sum();
            by_program.entry(program).or_default().push(saving);
        }
        by_program.into_values().collect()
    }

    fn saving(&self, forest: &Forest<'_>, index: usize) -> f64 {
        let launch = &forest.launches[index];
        let number = index as u32;
        let otherwise = self.saved.get(&number).copied().unwrap_or_default();
        if self.removed[index] {
            return launch.total(forest.end).unwrap_or_default().0 as f64 + otherwise;
        }
        if self.reaped_at_once[index] {
            return launch.phases.get(Phase::Reap).unwrap_or_default().0 as f64;
        }
        let has_pieces = launch.execs.len() > 1 && !self.pieces.is_empty();
        if has_pieces {
            return self.saving_of_pieces(launch, number) + otherwise;
        }
        let of_phase = |(phase, time): (Phase, Option<Nanos>)| {
            time.unwrap_or_default().0 as f64 * (1.0 - f64::from(self.factors[index][phase as usize]))
        };
        launch.phases.iter().map(of_phase).sum::<f64>() + otherwise
    }

    fn saving_of_pieces(&self, launch: &Launch<'_>, number: u32) -> f64 {
        let pieces = launch.pieces(None);
        let of_piece = |piece: &Piece| {
            let stage = Stage::of(launch, piece);
            let remains = self.factor(Activity { launch: number, stage });
            piece.end.since(piece.start).0 as f64 * (1.0 - remains)
        };
        pieces.iter().map(of_piece).sum()
    }
}
