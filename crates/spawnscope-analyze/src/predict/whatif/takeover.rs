//! What takes over when a change saves far less than its launches took on the critical path. Then
//! either other work ran at the same time and took as long, or the replay is wrong. Whoever reads
//! both figures must learn which activity it is.

use crate::model::external_wait::{ExternalWait, ExternalWaitTimes};
use crate::model::phases::Phase;
use crate::path::critical_path::{Charges, CriticalPath};
use crate::path::spent::{Spent, where_the_wall_went};
use crate::predict::whatif::adjustments::Adjustments;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Recording;
use spawnscope_data::units::time;

/// A change contradicts the path if it removes at least this share of the path,
const MIN_REMOVED: f64 = 0.1;
/// and saves less than this share of what it removes.
const MIN_SAVED: f64 = 0.5;

/// Activity that determines the wall after a change, and did not before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The part of the recorded critical path that the change removes.
    pub removed: Nanos,
    /// The activity that grows most on the path.
    pub by: Spent,
    /// By how much it grows.
    pub grows: Nanos,
}

impl Takeover {
    /// Returns a sentence without a full stop, for a change that saves `saved`.
    #[must_use]
    pub fn sentence(&self, saved: Nanos) -> String {
        let [removed, grows, saved] = [self.removed, self.grows, saved].map(time);
        let by = self.by.description();
        format!(
            "{removed} of the critical path would go, but only {saved} of the wall time: {grows} more would go into {by}"
        )
    }
}

/// Whether a change that saves this much of the wall may save far less than it removes.
pub(super) fn is_possible(wall: Nanos, saved: Nanos) -> bool {
    (saved.0 as f64) < MIN_SAVED * wall.0 as f64
}

/// Returns the recorded critical path without what the adjustments remove from it.
pub(super) fn without_removed(path: &CriticalPath, adjustments: &Adjustments) -> CriticalPath {
    let launches = (0..).zip(&path.launches).map(|(launch, charges)| {
        let mut remains = Charges::default();
        if adjustments.is_removed(launch) {
            remains.add(Phase::Run, charges.get(Phase::Run).min(adjustments.moved_work(launch)));
            return remains;
        }
        for phase in Phase::ALL {
            let share = adjustments.remaining_share(launch, phase).min(1.0);
            remains.add(phase, Nanos((charges.get(phase).0 as f64 * share) as u64));
        }
        remains.add_run_queue(charges.run_queue());
        remains
    });
    let waits = path.external_wait.iter();
    let waits = waits.filter(|(wait, _)| !(adjustments.no_scan && matches!(wait, ExternalWait::Scanner(_))));
    let mut path = CriticalPath {
        launches: launches.collect(),
        external_wait: waits.map(|(wait, time)| (*wait, *time)).collect::<ExternalWaitTimes>(),
        wall: path.wall,
    };
    path.wall = path.sum();
    path
}

/// Compares the recorded path without what a change removes (`remaining`) with the path of the
/// replay with the change (`after`). `None` if the saving is in proportion to what is removed.
pub(super) fn takeover(
    wall: Nanos,
    remaining: &CriticalPath,
    after: impl FnOnce() -> CriticalPath,
    saved: Nanos,
    recording: &Recording,
) -> Option<Takeover> {
    let removed = wall.since(remaining.wall);
    let is_large = removed.0 as f64 >= MIN_REMOVED * wall.0 as f64;
    if !is_large || saved.0 as f64 >= MIN_SAVED * removed.0 as f64 {
        return None;
    }
    let remaining = where_the_wall_went(remaining, recording);
    let was = |what: &Spent| remaining.iter().find(|(other, _)| other == what).map_or(Nanos(0), |(_, time)| *time);
    let grown = where_the_wall_went(&after(), recording).into_iter().map(|(what, time)| (time.since(was(&what)), what));
    let grown: Vec<(Nanos, Spent)> = grown.collect();
    // If no activity took over, the path and the replay would contradict each other.
    debug_assert!(
        grown.iter().map(|(grows, _)| grows.0).sum::<u64>() * 2 >= removed.since(saved).0,
        "{removed:?} of the path would go, {saved:?} would be saved, and nothing takes over: {grown:?}"
    );
    let (grows, by) = grown.into_iter().max_by_key(|(grows, _)| *grows)?;
    Some(Takeover { removed, by, grows })
}
