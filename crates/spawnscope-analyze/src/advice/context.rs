//! The input of all rules: the recording with its launches and critical path, and queries that several rules share.

use std::collections::BTreeMap;

use crate::callers::Callers;
use crate::critical_path::CriticalPath;
use crate::drift::Drift;
use crate::launch::{Command, Launch};
use crate::phases::Phase;
use crate::tree::Forest;
use crate::whatif::WhatIf;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Recording;

/// The data that rules read.
#[derive(Clone, Copy)]
pub struct RuleContext<'g, 'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The chain of activity that determined the wall.
    pub path: &'g CriticalPath,
    /// Parents whose launches became slower over time, the worst first.
    pub drifts: &'g [Drift],
    /// The launches, the threads, and the replay of the recording.
    pub whatif: WhatIf<'g, 'a>,
    /// The call sites of launches.
    pub callers: &'g Callers,
}

/// Launches of one program by one program.
pub(super) struct Kind<'a> {
    pub(super) parent: &'a [u8],
    pub(super) command: Command<'a>,
    /// Launch indices, ascending.
    pub(super) launches: Vec<u32>,
}

impl<'a> RuleContext<'_, 'a> {
    pub(super) fn forest(&self) -> &Forest<'a> {
        self.whatif.forest
    }

    pub(super) fn launch(&self, index: u32) -> &Launch<'a> {
        &self.whatif.forest.launches[index as usize]
    }

    /// The measured wall.
    pub(super) fn wall(&self) -> Nanos {
        self.whatif.replay.measured
    }

    /// Groups launches by parent program and launched program. The recorded command itself is left out.
    pub(super) fn kinds(&self) -> Vec<Kind<'a>> {
        let mut kinds: BTreeMap<(&'a [u8], Command<'a>), Vec<u32>> = BTreeMap::new();
        for (index, launch) in (0..).zip(&self.forest().launches) {
            if launch.is_launch() && launch.parent.get().is_some() {
                kinds
                    .entry((launch.birth_command.name, *launch.command))
                    .or_default()
                    .push(index);
            }
        }
        let kind = |((parent, command), launches)| Kind {
            parent,
            command,
            launches,
        };
        kinds.into_iter().map(kind).collect()
    }

    /// Returns the summed wall time of launches.
    pub(super) fn spent_on(&self, launches: &[u32]) -> Nanos {
        let total = |index: &u32| self.launch(*index).total(self.forest().end).unwrap_or_default().0;
        Nanos(launches.iter().map(total).sum())
    }

    /// Returns the summed duration of one phase. Launches where it is unknown count as zero.
    pub(super) fn phase_of(&self, launches: &[u32], phase: Phase) -> Nanos {
        let time = |index: &u32| self.launch(*index).phases.get(phase).unwrap_or_default().0;
        Nanos(launches.iter().map(time).sum())
    }

    /// Returns the time that launches spend on the critical path.
    pub(super) fn critical(&self, launches: &[u32]) -> Nanos {
        Nanos(
            launches
                .iter()
                .map(|index| self.path.launches[*index as usize].total().0)
                .sum(),
        )
    }

    /// Returns an upper bound for the saving: all time of these launches.
    pub(super) fn most_saved(&self, launches: &[u32]) -> Nanos {
        self.spent_on(launches)
    }

    /// Returns the arguments of the first of these launches that has an exec.
    pub(super) fn example(&self, launches: &[u32]) -> Vec<Vec<u8>> {
        let exec = self
            .example_launch(launches)
            .and_then(|index| self.launch(index).execs.last());
        exec.map(|exec| exec.arguments().map(<[u8]>::to_vec).collect())
            .unwrap_or_default()
    }

    /// Returns the launch that [`RuleContext::example`] takes the arguments from.
    pub(super) fn example_launch(&self, launches: &[u32]) -> Option<u32> {
        let has_arguments = |index: &u32| !self.launch(*index).execs.is_empty();
        launches.iter().copied().find(has_arguments)
    }
}

/// Formats the bytes of a file name or argument. Invalid UTF-8 becomes U+FFFD.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Formats a duration with three digits and a unit.
pub(super) fn time(span: Nanos) -> String {
    spawnscope_data::units::time(span)
}
