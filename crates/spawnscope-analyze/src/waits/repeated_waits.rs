//! Waits with a timeout that a thread repeats, such as those of a thread that draws progress while
//! it waits for messages. The timeouts do not matter for how long it waits.

use std::collections::BTreeSet;

use crate::model::external_wait::is_sleep;
use crate::model::timeline::{RepeatedWait, ThreadIndex, Timelines, woken_at};
use crate::waits::poll_loops::{Creations, RESTART_SYSCALL, is_nap, may_continue_after};
use foldhash::HashMap;
use spawnscope_data::event::LeftCpu;
use spawnscope_data::rows::SliceRow;

/// Finds waits with a timeout that a thread repeated in the same call until another thread ended
/// the last one. The thread waited for that all the time, unless it launched something in between.
/// Maps the slice of each wait that timed out. `threads` are those with waits
/// that timed out.
pub(super) fn find(timelines: &Timelines, threads: &BTreeSet<ThreadIndex>) -> HashMap<u32, RepeatedWait> {
    let mut repeated = HashMap::default();
    let creations = Creations::by(timelines, threads);
    for &thread in threads {
        let slices = timelines.slices(thread);
        let (mut naps, mut worked): (Vec<(u32, SliceRow)>, u64) = (Vec::new(), 0);
        for (index, slice) in slices.indices().zip(slices.iter()) {
            worked += slice.on_span.unwrap_or_default().0;
            let is_repeated = naps.last().is_some_and(|(_, last)| {
                let end = woken_at(last).unwrap_or(last.off);
                let has_created = creations.between(thread, (end, slice.off)).next().is_some();
                is_same_call(last, &slice) && worked <= last.wake_span.unwrap_or_default().0 && !has_created
            });
            let is_wait = slice.reason == LeftCpu::Interruptible && !is_sleep(&slice);
            match (is_nap(&slice) && is_wait, is_wait && timelines.cause(thread, &slice).is_some()) {
                (true, _) => {
                    if !is_repeated {
                        naps.clear();
                    }
                    naps.push((index, slice));
                    worked = 0;
                }
                (_, true) => {
                    let begun = naps.first().map_or(slice.off, |(_, first)| first.off);
                    let ended = naps.drain(..).filter(|_| is_repeated);
                    repeated.extend(ended.map(|(nap, _)| (nap, RepeatedWait { last: index, begun })));
                }
                _ if may_continue_after(timelines, thread, &slice) => {}
                _ => naps.clear(),
            }
        }
    }
    repeated
}

/// Whether two waits are in the same system call for the same object.
fn is_same_call(one: &SliceRow, other: &SliceRow) -> bool {
    let calls = [one.syscall, other.syscall];
    calls.contains(&Some(RESTART_SYSCALL)) || calls[0] == calls[1] && one.argument == other.argument
}
