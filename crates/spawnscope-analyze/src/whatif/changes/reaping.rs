//! A change for parents that poll for the end of a child and notice it late.

use super::Context;
use crate::external_wait::{ExternalWait, external_wait_of};
use crate::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::SliceRow;

/// Lets parents reap their children at once.
pub(super) fn without_late_reaping(
    context: Context<'_, '_>,
    launches: &[u32],
    adjustments: &mut Adjustments,
) -> Vec<u32> {
    let mut affected = launches.to_vec();
    affected.retain(|launch| slept_through_end(context, *launch));
    affected.iter().for_each(|launch| adjustments.reap_at_once(*launch));
    affected
}

/// Whether the parent slept when the launch ended.
fn slept_through_end(context: Context<'_, '_>, launch: u32) -> bool {
    let Context { forest, timelines, .. } = context;
    let at = &forest.launches[launch as usize].instants;
    let (Some(parent), Some(zombie), Some(reaped)) = (forest.parent(launch as usize), at.zombie.get(), at.reaped.get())
    else {
        return false;
    };
    let creator = timelines.threads[launch as usize].creator.get().unwrap_or(parent as u32);
    let slices = timelines.slices(creator);
    let first = slices.partition_point(|slice| woken_at(slice) <= zombie);
    let mut until_reaped = slices.split_at(first).1.iter().take_while(|slice| slice.off < reaped);
    until_reaped.any(|slice| external_wait_of(&slice) == ExternalWait::Timer)
}

/// Returns when a thread became runnable again after a slice.
fn woken_at(slice: &SliceRow) -> Nanos {
    Nanos(slice.off.0 + slice.wake_span.or(slice.off_span).unwrap_or_default().0)
}
