//! Launches that wait for each other's lock on a file.

use super::{Cure, LOCK, finding, removing};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::phrases::time;
use crate::explain::advice::sites::Site;
use spawnscope_data::event::Nanos;
use spawnscope_data::event::syscalls::numbers;

/// System calls in which a thread waits for a lock on a file.
const LOCKS: [u16; 2] = numbers(["flock", "fcntl"]);
/// Launches are about a lock if they wait for it during at least this share of their time.
const MIN_SHARE: f64 = 0.3;

/// Returns the cure of launches that mostly wait for a lock.
pub(super) fn cure(context: &RuleContext<'_, '_>, site: &Site<'_>) -> Option<Cure> {
    let waited = waited_for_locks(context, &site.launches);
    if (waited.0 as f64) < MIN_SHARE * context.spent_on(&site.launches).0 as f64 || waited < context.min_saving() {
        return None;
    }
    let finding = finding(context, site, LOCK, ", and they wait for a lock", site.launches.clone())
        .evidence(format!(
            "they wait for a lock on a file for {} in all: more jobs would only wait longer",
            time(waited)
        ))
        .fix("hold the lock only around what needs it, such as the write, and do the work before")
        .fix("or let each job write a file of its own, and join the files at the end")
        .limits("the saving is what the command would save without these launches and their waits");
    Some(removing(context, finding, site.launches.clone()))
}

/// Returns how long launches and their descendants waited for locks on files.
pub(super) fn waited_for_locks(context: &RuleContext<'_, '_>, all: &[u32]) -> Nanos {
    let tops: Vec<usize> = all.iter().map(|index| *index as usize).collect();
    let slices = context.forest().walk(&tops).flat_map(|step| {
        let slices = context.timelines().slices(step.index as u32).iter();
        slices.filter(|slice| slice.syscall.is_some_and(|call| LOCKS.contains(&call)))
    });
    Nanos(slices.map(|slice| slice.off_span.unwrap_or_default().0).sum())
}
