//! What the slices of a recording say beyond its launches: the critical path, and whether the replay can be trusted.

use std::thread;

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
        // Neither needs the other, and for 100,000 launches each takes a good part of a second.
        let (path, replay_error) = thread::scope(|scope| {
            let replay = || Replay::new(forest, timelines, recording.info.cpus, wall).map(|replay| replay.error());
            let replay = scope.spawn(replay);
            let path = critical_path(forest, timelines, wall);
            (path, replay.join().ok().flatten())
        });
        Some(Causes {
            path: path?,
            replay_error: replay_error?,
        })
    }
}
