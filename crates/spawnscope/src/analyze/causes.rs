//! What the slices of a recording say beyond its launches: the critical path, and whether the replay can be trusted.

use super::advice::{Advices, RuleContext, advise};
use super::callers::{Callers, Detail};
use super::critical_path::{CriticalPath, critical_path};
use super::drift::{Drift, drifts};
use super::replay::{Replay, Setting, is_believable};
use super::timeline::Timelines;
use super::tree::Forest;
use super::whatif::WhatIf;
use super::whatif::constants::Constants;
use crate::parallel;
use crate::record::reader::Recording;

/// Why a command took as long as it did, and what would make it shorter.
#[derive(Clone, Debug)]
pub struct Causes {
    /// What held up the end at every moment.
    pub path: CriticalPath,
    /// By how much the recording, played again unchanged, misses the measured wall, as a share of it.
    pub replay_error: f64,
    /// Parents whose launches became slower, the worst first.
    pub drifts: Vec<Drift>,
    /// What is worth changing; nothing where the replay cannot be believed.
    pub advices: Advices,
}

impl Causes {
    /// Finds them; `None` for a recording without a command, or one that has not ended.
    #[must_use]
    pub fn find(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Option<Causes> {
        let setting = Setting::of(recording)?;
        // They do not need each other, and for 100,000 launches each takes a good part of a second. The replay takes longest.
        let (replay, (path, drifts)) = parallel::both(
            || Replay::new(forest, timelines, &setting),
            || (critical_path(forest, timelines, setting.wall), drifts(forest)),
        );
        let (path, replay) = (path?, replay?);
        let context = RuleContext {
            recording,
            path: &path,
            drifts: &drifts,
            whatif: WhatIf {
                forest,
                timelines,
                replay: &replay,
                constants: &Constants::of(recording, forest),
            },
            callers: &Callers::find(forest, Detail::Line),
        };
        let is_believable = is_believable(replay.error());
        Some(Causes {
            advices: if is_believable {
                advise(&context)
            } else {
                Advices::default()
            },
            replay_error: replay.error(),
            drifts,
            path,
        })
    }
}
