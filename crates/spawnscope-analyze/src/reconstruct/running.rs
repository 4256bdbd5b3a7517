//! Finds which threads were on a CPU when a wait ended. One of them ended the wait, unless an
//! interrupt did.

use spawnscope_data::event::Nanos;

use crate::timeline::{ThreadIndex, Timelines, beginning};
use crate::tree::Forest;

/// Maximum time by which a waker leaves its CPU before the wait ends.
const MAX_LEAD: Nanos = Nanos(100_000);
/// Maximum number of stretches that are searched for one wait.
const MAX_SEARCHED: usize = 64;

/// The stretches of all threads on a CPU (end, start, thread), sorted by their end.
pub(super) struct RunningThreads(Vec<(Nanos, Nanos, ThreadIndex)>);

impl RunningThreads {
    pub(super) fn new(timelines: &Timelines) -> RunningThreads {
        let threads = 0..timelines.threads.len() as ThreadIndex;
        let mut all: Vec<(Nanos, Nanos, ThreadIndex)> = Vec::new();
        for thread in threads {
            let slices = timelines.slices(thread).iter();
            let ran = slices.filter(|slice| slice.on_span.is_some_and(|span| span.0 > 0));
            all.extend(ran.map(|slice| (slice.off, beginning(&slice), thread)));
        }
        all.sort_unstable();
        RunningThreads(all)
    }

    /// Returns the thread that probably ended a wait of `waiter`, and when. Prefers threads of
    /// descendants to threads of siblings and their descendants.
    pub(super) fn probable_waker(
        &self,
        forest: &Forest<'_>,
        timelines: &Timelines,
        waiter: ThreadIndex,
        (from, to): (Nanos, Nanos),
    ) -> Option<(ThreadIndex, Nanos)> {
        let earliest = Nanos(to.0.saturating_sub(MAX_LEAD.0)).max(from);
        let first = self.0.partition_point(|(off, ..)| *off < earliest);
        let near = self.0[first..].iter().take(MAX_SEARCHED);
        let candidates = near.filter(|(_, on, thread)| *on <= to && *thread != waiter);
        let own = timelines.launch_of(waiter) as usize;
        let with_distance = candidates.filter_map(|(off, _, thread)| {
            let distance = distance(forest, own, timelines.launch_of(*thread) as usize)?;
            Some((distance, *thread, (*off).min(to)))
        });
        let nearest = with_distance.min_by_key(|(distance, thread, _)| (*distance, *thread));
        nearest.map(|(_, thread, at)| (thread, at))
    }
}

/// Maximum number of generations between a waiting process and the process that it waits for.
const MAX_GENERATIONS: usize = 8;

/// Returns the distance of a launch from a launch that waits. Descendants are nearest; siblings and
/// their descendants are farther. `None` for all other launches.
fn distance(forest: &Forest<'_>, waiter: usize, other: usize) -> Option<usize> {
    let parent = forest.parent(waiter);
    let mut at = other;
    for generation in 0..MAX_GENERATIONS {
        if at == waiter {
            return Some(generation);
        }
        let above = forest.parent(at);
        if above.is_some() && above == parent {
            return Some(MAX_GENERATIONS + generation);
        }
        at = above?;
    }
    None
}
