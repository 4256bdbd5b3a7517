//! What takes over when a change saves far less than its launches took on the critical path. Then
//! either other work ran at the same time and took as long, or the replay is wrong. Whoever reads
//! both figures must learn which activity it is.

use crate::model::external_wait::{ExternalWait, ExternalWaitTimes};
use crate::model::phases::Phase;
use crate::path::critical_path::{Charges, CriticalPath};
use crate::path::spent::{Spent, where_the_wall_went};
use crate::predict::whatif::adjustments::Adjustments;
use crate::predict::whatif::{AppliedChange, WhatIf};
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
    pub removed: Nanos,
    pub by: Spent,
    pub grows: Nanos,
}

impl Takeover {
    /// Returns a sentence without a full stop, for a change that saves `saved`.
    pub fn sentence(&self, saved: Nanos) -> String {
        let [removed, grows, saved] = [self.removed, self.grows, saved].map(time);
        let by = self.by.description();
        format!(
            "{removed} of the critical path would go, but only {saved} of the wall time: {grows} more would go into {by}"
        )
    }
}

impl WhatIf<'_, '_> {
    /// Returns what takes over if changes save far less than they remove from the recorded critical
    /// path: compares that path without what they remove with the path of the replay with them.
    pub fn takeover(
        &self,
        changes: &[AppliedChange],
        saved: Nanos,
        path: &CriticalPath,
        recording: &Recording,
    ) -> Option<Takeover> {
        // The overhead of recording is on the path, and in no saving.
        let wall = path.wall.since(self.replay.measured.since(self.unrecorded()));
        let is_far_less = |removed: Nanos| (saved.0 as f64) < MIN_SAVED * removed.0 as f64;
        if !is_far_less(wall) {
            return None;
        }
        let (adjustments, _) = self.adjustments(changes);
        let remaining = without_removed(path, &adjustments);
        let removed = wall.since(remaining.wall);
        if (removed.0 as f64) < MIN_REMOVED * wall.0 as f64 || !is_far_less(removed) {
            return None;
        }
        let remaining = where_the_wall_went(&remaining, recording);
        let was = |what: &Spent| remaining.iter().find(|(other, _)| other == what).map_or(Nanos(0), |(_, time)| *time);
        let after = where_the_wall_went(&self.path_with(&adjustments), recording);
        let grown: Vec<(Nanos, Spent)> = after.into_iter().map(|(what, time)| (time.since(was(&what)), what)).collect();
        // If no activity took over, the path and the replay would contradict each other.
        debug_assert!(
            grown.iter().map(|(grows, _)| grows.0).sum::<u64>() * 2 >= removed.since(saved).0,
            "{removed:?} of the path would go, {saved:?} would be saved, and nothing takes over: {grown:?}"
        );
        let (grows, by) = grown.into_iter().max_by_key(|(grows, _)| *grows)?;
        Some(Takeover { removed, by, grows })
    }
}

/// Returns the recorded critical path without what the adjustments remove from it.
fn without_removed(path: &CriticalPath, adjustments: &Adjustments) -> CriticalPath {
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
