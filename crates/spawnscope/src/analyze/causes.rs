//! What the slices of a recording say beyond its launches: the critical path, and whether the replay can be trusted.

use super::critical_path::{CriticalPath, critical_path};
use super::replay::Replay;
use super::timeline::Timelines;
use super::tree::Forest;
use crate::record::reader::Recording;

/// Why a command took as long as it did.
#[derive(Clone, Debug)]
pub struct Causes {
    /// What held up the end at every moment.
    pub path: CriticalPath,
    /// By how much the recording, played again unchanged, misses the measured wall, as a share of it.
    pub replay_error: f64,
}

impl Causes {
    /// Finds them; `None` for a recording without a command, or one that has not ended.
    #[must_use]
    pub fn find(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Option<Causes> {
        let wall = recording.info.wall?;
        let replay = Replay::new(forest, timelines, recording.info.cpus, wall)?;
        Some(Causes {
            path: critical_path(forest, timelines, wall)?,
            replay_error: replay.error(),
        })
    }
}
