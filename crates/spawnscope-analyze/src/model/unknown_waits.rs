//! Waits whose cause was not recorded. If a collector cannot see wakers, the cause of a wait is
//! reconstructed with certainty from other events, is assumed, or remains unknown. Waits with an
//! assumed or unknown cause widen the confidence interval of a prediction.

use spawnscope_data::event::Nanos;

use crate::model::tree::Forest;

/// Maximum time from the end of a launch to the end of a wait for it. The two are recorded in
/// different processes, at slightly different times.
const MAX_GAP: Nanos = Nanos(100_000);
/// Like `MAX_GAP`, if only the beginning of the launch's exit is known.
const MAX_GAP_OF_EXIT: Nanos = Nanos(1_000_000);

/// A wait without a certain cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnknownWait {
    pub(crate) launch: u32,
    pub(crate) span: Nanos,
    /// The earliest and the latest possible end of the wait. They differ if only the CPU time of a
    /// longer stretch is known.
    pub(crate) end: [Nanos; 2],
    /// The launch that is assumed to be the cause of the wait.
    pub(crate) supposed: Option<u32>,
}

/// A child that ended while its parent waited for another child. The parent is assumed to have
/// waited for this child, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SupposedReap {
    pub(crate) parent: u32,
    pub(crate) thread: u32,
    pub(crate) child: u32,
    pub(crate) start: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) wait_end: Nanos,
}

/// All waits without a certain cause.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnknownWaits {
    pub(crate) waits: Vec<UnknownWait>,
    pub(crate) reaps: Vec<SupposedReap>,
    /// For each launch, what its creation took. Zero if the creation is known.
    pub(crate) creations: Vec<Creation>,
    /// For each launch whose end ended a wait of its creator, when this wait was over. The creator
    /// reaped it then, which was not recorded.
    pub(crate) reaped: Vec<Option<Nanos>>,
}

/// The time that a parent needed to create a launch, if the collector saw only its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Creation {
    /// What it is assumed to have taken: what a creation costs on this machine.
    pub(crate) supposed: Nanos,
    /// What it may have taken at least: the same without the reaping of the child before.
    pub(crate) least: Nanos,
    /// What it may have taken at most: the time since the last known event of the parent.
    pub(crate) longest: Nanos,
    /// How long the collector stopped the parent during the time that is assumed.
    pub(crate) stopped: Nanos,
}

/// How much the unknown waits can change a saving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shift {
    /// Waits that are assumed to be for a changed launch. They remain after the change if they were
    /// for something else.
    pub(crate) may_stay: Nanos,
    /// Waits that are assumed to be for an unchanged launch, but may have been for a changed
    /// launch.
    pub(crate) may_go: Nanos,
    /// Waits without an assumed cause that may have been for a changed launch.
    pub(crate) may_go_unsupposed: Nanos,
}

impl UnknownWaits {
    /// Returns how much of the parent's time was the creation of a launch.
    pub(crate) fn creation(&self, launch: u32) -> Creation {
        self.creations.get(launch as usize).copied().unwrap_or_default()
    }

    /// Returns how much the unknown waits can change the saving of a what-if that changes these
    /// launches.
    pub(crate) fn shift(&self, forest: &Forest<'_>, changed: &[u32]) -> Shift {
        let changed = ChangedLaunches::new(forest, changed);
        let mut shift = Shift::default();
        for wait in self.waits.iter().filter(|wait| !changed.contains(wait.launch)) {
            let [first_end, last_end] = wait.end;
            let start = Nanos(first_end.0.saturating_sub(wait.span.0));
            if wait.supposed.is_some_and(|launch| changed.leads_to(launch)) && changed.overlaps(start, last_end) {
                shift.may_stay.0 += wait.span.0;
            }
            // A changed launch can have ended the wait only if it was alive when the wait ended.
            let is_for_another = wait.supposed.is_none_or(|launch| !changed.contains(launch));
            if is_for_another && changed.overlaps(first_end, last_end) {
                let sum = match wait.supposed {
                    Some(_) => &mut shift.may_go,
                    None => &mut shift.may_go_unsupposed,
                };
                sum.0 += wait.span.0;
            }
        }
        // The parent may not have waited for these children. Then removing a later child, for which
        // it did wait, saves the whole wait.
        let maybe_not_awaited =
            self.reaps.iter().filter(|reap| !changed.contains(reap.parent) && !changed.contains(reap.child));
        let maybe_not_awaited = maybe_not_awaited.filter(|reap| changed.overlaps(reap.ended, reap.wait_end));
        shift.may_go.0 += maybe_not_awaited.map(|reap| reap.ended.since(reap.start).0).sum::<u64>();
        shift
    }
}

struct ChangedLaunches {
    /// For each launch, whether it is changed or a descendant of a changed launch.
    is_changed: Vec<bool>,
    /// For each launch, whether it is changed or an ancestor of a changed launch.
    leads_to_changed: Vec<bool>,
    /// When at least one of the launches in `is_changed` was alive: disjoint intervals, by time.
    lifetimes: Vec<(Nanos, Nanos)>,
}

impl ChangedLaunches {
    fn new(forest: &Forest<'_>, changed: &[u32]) -> ChangedLaunches {
        let count = forest.launches.len();
        let (mut is_changed, mut leads_to_changed) = (vec![false; count], vec![false; count]);
        let tops: Vec<usize> = changed.iter().map(|launch| *launch as usize).collect();
        for top in &tops {
            let mut at = Some(*top);
            while let Some(launch) = at.filter(|launch| !leads_to_changed[*launch]) {
                leads_to_changed[launch] = true;
                at = forest.parent(launch);
            }
        }
        // If a launch is already marked, so are all its descendants. So each launch is visited
        // once.
        let mut pending = tops;
        while let Some(launch) = pending.pop() {
            if !std::mem::replace(&mut is_changed[launch], true) {
                pending.extend(forest.children(launch));
            }
        }
        let mut lifetimes = Vec::new();
        for (launch, _) in forest.launches.iter().zip(&is_changed).filter(|(_, is_changed)| **is_changed) {
            let is_exact = launch.instants.zombie.get().is_some();
            let near = if is_exact { MAX_GAP } else { MAX_GAP_OF_EXIT };
            let end = Nanos(launch.end().unwrap_or(forest.end).0 + near.0);
            lifetimes.extend(launch.start().map(|start| (start, end)));
        }
        ChangedLaunches { is_changed, leads_to_changed, lifetimes: merge_overlapping(lifetimes) }
    }

    fn contains(&self, launch: u32) -> bool {
        self.is_changed[launch as usize]
    }

    /// Whether the end of a launch may depend on a changed launch.
    fn leads_to(&self, launch: u32) -> bool {
        self.contains(launch) || self.leads_to_changed[launch as usize]
    }

    /// Whether a changed launch or a descendant of one was alive between two instants.
    fn overlaps(&self, start: Nanos, end: Nanos) -> bool {
        let index = self.lifetimes.partition_point(|(_, ended)| *ended < start);
        self.lifetimes.get(index).is_some_and(|(begun, _)| *begun < end)
    }
}

pub(crate) fn merge_overlapping(mut intervals: Vec<(Nanos, Nanos)>) -> Vec<(Nanos, Nanos)> {
    intervals.sort_unstable();
    let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
    for (start, end) in intervals {
        match joined.last_mut() {
            Some((_, last)) if start <= *last => *last = end.max(*last),
            _ => joined.push((start, end)),
        }
    }
    joined
}
