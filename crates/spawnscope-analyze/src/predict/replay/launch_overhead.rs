//! The overhead of recording launches and execs, as a share of the phases in which the collector
//! works. It was measured per launch and per exec.

use super::Parameters;
use super::activity::{Activity, ActivityKind};
use crate::model::phases::Phase;
use crate::model::tree::Forest;

#[derive(Clone, Copy)]
pub(super) struct LaunchOverhead<'f> {
    pub(super) forest: &'f Forest<'f>,
    pub(super) parameters: &'f Parameters,
}

impl LaunchOverhead<'_> {
    /// Returns the overhead as a share of the time in an activity. Half of the overhead of a launch
    /// is in its creation, which runs in the parent; the other half is in its teardown.
    pub(super) fn share(&self, activity: Activity) -> f64 {
        let phase = match activity.stage.kind() {
            ActivityKind::Phase(phase) => phase,
            ActivityKind::Supervise | ActivityKind::Faults => return 0.0,
        };
        let launch = &self.forest.launches[activity.launch as usize];
        let overhead = match phase {
            Phase::Create | Phase::Teardown => self.parameters.launch_ns / 2.0,
            Phase::Exec => self.parameters.exec_ns * launch.execs.len() as f64,
            _ => return 0.0,
        };
        overhead / launch.phases.ns(phase).max(1.0)
    }
}
