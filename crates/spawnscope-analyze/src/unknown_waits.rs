//! Waits whose cause was not recorded. Where a collector does not see wakers, the cause of a wait is proved by what happened around it,
//! assumed, or unknown. These times widen the interval of a prediction; they are never counted as known.

use spawnscope_data::event::Nanos;

use crate::tree::Forest;

/// A waker may have ended this long before the end of the wait, since two processes do not see one instant.
const MAX_GAP: Nanos = Nanos(100_000);
/// The same where only the beginning of its exit is known.
const MAX_GAP_OF_EXIT: Nanos = Nanos(1_000_000);

/// A wait without a certain cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownWait {
    /// Index of the launch that waited.
    pub(crate) launch: u32,
    /// Its duration.
    pub(crate) span: Nanos,
    /// When it ended at the earliest and at the latest: only the CPU time of a longer stretch may be known.
    pub(crate) end: [Nanos; 2],
    /// The launch that it is assumed to have waited for.
    pub(crate) supposed: Option<u32>,
}

/// A child that ended while its parent waited for another one. The parent is assumed to have needed its end as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SupposedReap {
    /// Index of the parent.
    pub(crate) parent: u32,
    /// The thread that waited.
    pub(crate) thread: u32,
    /// Index of the child.
    pub(crate) child: u32,
    /// When the wait began.
    pub(crate) start: Nanos,
    /// When the child ended.
    pub(crate) ended: Nanos,
    /// When the wait was over.
    pub(crate) over: Nanos,
}

/// All waits without a certain cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownWaits {
    waits: Vec<UnknownWait>,
    reaps: Vec<SupposedReap>,
    /// By launch: the time of its parent that may have been its creation. Zero where that is known.
    creations: Vec<Nanos>,
}

/// How far the unknown waits can shift a saving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shift {
    /// Waits that are assumed to end with a changed launch. If they were for something else, they stay.
    pub(crate) may_stay: Nanos,
    /// Waits that are assumed to be for another launch, and that may have been for a changed one.
    pub(crate) may_go: Nanos,
    /// Waits without an assumed cause that may have been for a changed launch.
    pub(crate) may_go_unsupposed: Nanos,
}

impl UnknownWaits {
    pub(crate) fn new(waits: Vec<UnknownWait>, reaps: Vec<SupposedReap>, creations: Vec<Nanos>) -> UnknownWaits {
        UnknownWaits {
            waits,
            reaps,
            creations,
        }
    }

    /// Returns the children that ended during a wait for another one.
    pub(crate) fn reaps(&self) -> &[SupposedReap] {
        &self.reaps
    }

    /// Returns the time that may have been the creation of a launch.
    pub(crate) fn creation(&self, launch: u32) -> Nanos {
        self.creations.get(launch as usize).copied().unwrap_or_default()
    }

    /// Returns how far the unknown waits can shift the saving of a change to these launches.
    pub(crate) fn shift(&self, forest: &Forest<'_>, changed: &[u32]) -> Shift {
        let changed = Changed::new(forest, changed);
        let mut shift = Shift::default();
        for wait in self.waits.iter().filter(|wait| !changed.holds(wait.launch)) {
            let [first_end, last_end] = wait.end;
            let start = Nanos(first_end.0.saturating_sub(wait.span.0));
            if wait.supposed.is_some_and(|launch| changed.leads_to(launch)) && changed.overlaps(start, last_end) {
                shift.may_stay.0 += wait.span.0;
            }
            // Only what is alive can end a wait.
            let is_for_another = wait.supposed.is_none_or(|launch| !changed.holds(launch));
            if is_for_another && changed.overlaps(first_end, last_end) {
                let sum = match wait.supposed {
                    Some(_) => &mut shift.may_go,
                    None => &mut shift.may_go_unsupposed,
                };
                sum.0 += wait.span.0;
            }
        }
        // The parent may not have needed them: then a wait that a changed launch ended saves all of its time.
        let needless = self
            .reaps
            .iter()
            .filter(|reap| !changed.holds(reap.parent) && !changed.holds(reap.child));
        let needless = needless.filter(|reap| changed.overlaps(reap.ended, reap.over));
        shift.may_go.0 += needless.map(|reap| reap.ended.since(reap.start).0).sum::<u64>();
        shift
    }
}

/// Changed launches with their descendants.
struct Changed {
    /// By launch: whether it is changed, or below a changed one.
    held: Vec<bool>,
    /// By launch: whether it is changed, or above a changed one.
    above: Vec<bool>,
    /// When at least one of them was alive: intervals by time, without overlap.
    lives: Vec<(Nanos, Nanos)>,
}

impl Changed {
    fn new(forest: &Forest<'_>, changed: &[u32]) -> Changed {
        let count = forest.launches.len();
        let (mut held, mut above) = (vec![false; count], vec![false; count]);
        let tops: Vec<usize> = changed.iter().map(|launch| *launch as usize).collect();
        for top in &tops {
            let mut at = Some(*top);
            while let Some(launch) = at.filter(|launch| !above[*launch]) {
                above[launch] = true;
                at = forest.parent(launch);
            }
        }
        // A launch that was reached already has all its descendants marked, so that each launch is visited once.
        let mut pending = tops;
        while let Some(launch) = pending.pop() {
            if !std::mem::replace(&mut held[launch], true) {
                pending.extend(forest.children(launch));
            }
        }
        let life = |index: usize| {
            let launch = &forest.launches[index];
            let start = launch.start()?;
            let is_exact = launch.instants.zombie.get().is_some();
            let near = if is_exact { MAX_GAP } else { MAX_GAP_OF_EXIT };
            Some((start, Nanos(launch.end().unwrap_or(forest.end).0 + near.0)))
        };
        let lives = (0..count).filter(|index| held[*index]).filter_map(life).collect();
        Changed {
            held,
            above,
            lives: merged(lives),
        }
    }

    fn holds(&self, launch: u32) -> bool {
        self.held[launch as usize]
    }

    /// Whether the end of a launch may depend on a changed one.
    fn leads_to(&self, launch: u32) -> bool {
        self.holds(launch) || self.above[launch as usize]
    }

    /// Whether one of them was alive between two instants.
    fn overlaps(&self, start: Nanos, end: Nanos) -> bool {
        let ended = self.lives.partition_point(|(_, ended)| *ended < start);
        self.lives.get(ended).is_some_and(|(begun, _)| *begun < end)
    }
}

/// Joins intervals that overlap.
fn merged(mut lives: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    lives.sort_unstable();
    let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
    for (start, end) in lives {
        match joined.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => joined.push((start, end)),
        }
    }
    joined
}
