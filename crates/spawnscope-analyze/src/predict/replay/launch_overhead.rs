//! The overhead of recording launches and execs. It was measured per launch and per exec, and is
//! converted here into a share of the phases in which the collector works.

use super::Parameters;
use super::activity::{Activity, ActivityKind};
use crate::model::phases::Phase;
use crate::model::tree::Forest;

/// The overhead by activity.
#[derive(Clone, Copy)]
pub(super) struct LaunchOverhead<'f> {
    forest: &'f Forest<'f>,
    /// Nanoseconds per launch.
    launch: f64,
    /// Nanoseconds per exec.
    exec: f64,
}

impl<'f> LaunchOverhead<'f> {
    pub(super) fn new(forest: &'f Forest<'f>, parameters: &Parameters) -> LaunchOverhead<'f> {
        LaunchOverhead { forest, launch: parameters.launch_ns, exec: parameters.exec_ns }
    }

    /// Returns the overhead as a share of the time in an activity. Half of the overhead of a launch
    /// is in its creation, which runs in the parent, or in its setup if a collector cannot see the
    /// creation; the other half is in its teardown.
    pub(super) fn share(&self, activity: Activity) -> f64 {
        let ActivityKind::Phase(phase) = activity.stage.kind() else {
            return 0.0;
        };
        let launch = &self.forest.launches[activity.launch as usize];
        let overhead = match phase {
            Phase::Create | Phase::Teardown => self.launch / 2.0,
            Phase::Setup if launch.phases.get(Phase::Create).is_none() => self.launch / 2.0,
            Phase::Exec => self.exec * launch.execs.len() as f64,
            _ => return 0.0,
        };
        let taken_off = self.forest.added_by_stops(activity.launch as usize, phase);
        let span = launch.phases.get(phase).unwrap_or_default().0 as f64 + taken_off;
        overhead / span.max(1.0)
    }
}
