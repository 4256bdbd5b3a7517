//! Parents that find out late that a child has ended, since they sleep between their looks.

use super::Context;
use crate::analyze::external_wait::{ExternalWait, external_wait_of};
use crate::analyze::whatif::adjustments::Adjustments;
use crate::event::Nanos;
use crate::record::reader::SliceRow;

/// The parent does not sleep through the end.
pub(super) fn without_late_reaping(
    context: Context<'_, '_>,
    launches: &[u32],
    adjustments: &mut Adjustments,
) -> Vec<u32> {
    let mut held = launches.to_vec();
    held.retain(|launch| is_slept_through(context, *launch));
    held.iter().for_each(|launch| adjustments.reap_at_once(*launch));
    held
}

/// Whether the parent's sleep went on after a launch's end.
fn is_slept_through(context: Context<'_, '_>, launch: u32) -> bool {
    let Context { forest, timelines, .. } = context;
    let at = &forest.launches[launch as usize].instants;
    let (Some(parent), Some(zombie), Some(reaped)) = (forest.parent(launch as usize), at.zombie.get(), at.reaped.get())
    else {
        return false;
    };
    let creator = timelines.threads[launch as usize]
        .creator
        .get()
        .unwrap_or(parent as u32);
    let slices = timelines.slices(creator);
    let first = slices.partition_point(|slice| end_of_absence(slice) <= zombie);
    let mut until_reaped = slices.split_at(first).1.iter().take_while(|slice| slice.off < reaped);
    until_reaped.any(|slice| external_wait_of(&slice) == ExternalWait::Timer)
}

/// When the thread that left its CPU after a slice could run again.
fn end_of_absence(slice: &SliceRow) -> Nanos {
    Nanos(slice.off.0 + slice.wake_span.or(slice.off_span).unwrap_or_default().0)
}
