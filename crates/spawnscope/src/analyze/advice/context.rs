//! What rules stand on: the recording, joined, with its critical path, and questions that several of them ask.

use std::collections::BTreeMap;

use crate::analyze::callers::Callers;
use crate::analyze::critical_path::CriticalPath;
use crate::analyze::drift::Drift;
use crate::analyze::launch::{Command, Launch};
use crate::analyze::phases::Phase;
use crate::analyze::tree::Forest;
use crate::analyze::whatif::WhatIf;
use crate::event::Nanos;
use crate::record::reader::Recording;

/// A recording as rules see it.
#[derive(Clone, Copy)]
pub struct RuleContext<'g, 'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// What held up the end.
    pub path: &'g CriticalPath,
    /// Parents whose launches became slower, the worst first.
    pub drifts: &'g [Drift],
    /// Its launches, threads, and the replay.
    pub whatif: WhatIf<'g, 'a>,
    /// The lines that asked for launches.
    pub callers: &'g Callers,
}

/// Launches of one program by one program.
pub(super) struct Kind<'a> {
    /// The program that launched.
    pub(super) parent: &'a [u8],
    /// The program that was launched.
    pub(super) command: Command<'a>,
    /// By index, in the order of their numbers.
    pub(super) launches: Vec<u32>,
}

impl<'a> RuleContext<'_, 'a> {
    pub(super) fn forest(&self) -> &Forest<'a> {
        self.whatif.forest
    }

    pub(super) fn launch(&self, index: u32) -> &Launch<'a> {
        &self.whatif.forest.launches[index as usize]
    }

    /// The wall as it was measured.
    pub(super) fn wall(&self) -> Nanos {
        self.whatif.replay.measured
    }

    /// Launches by the program that made them and the program they became, the command itself left out.
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

    /// Wall time of launches, summed.
    pub(super) fn spent_on(&self, launches: &[u32]) -> Nanos {
        let total = |index: &u32| self.launch(*index).total(self.forest().end).unwrap_or_default().0;
        Nanos(launches.iter().map(total).sum())
    }

    /// One phase of launches, summed where it is known.
    pub(super) fn phase_of(&self, launches: &[u32], phase: Phase) -> Nanos {
        let time = |index: &u32| self.launch(*index).phases.get(phase).unwrap_or_default().0;
        Nanos(launches.iter().map(time).sum())
    }

    /// Time of launches on the critical path.
    pub(super) fn critical(&self, launches: &[u32]) -> Nanos {
        Nanos(
            launches
                .iter()
                .map(|index| self.path.launches[*index as usize].total().0)
                .sum(),
        )
    }

    /// More than this cannot be saved at launches: all their time.
    pub(super) fn most_saved(&self, launches: &[u32]) -> Nanos {
        self.spent_on(launches)
    }

    /// Arguments of the first of these launches that has any.
    pub(super) fn example(&self, launches: &[u32]) -> Vec<Vec<u8>> {
        let exec = self
            .example_launch(launches)
            .and_then(|index| self.launch(index).execs.last());
        exec.map(|exec| exec.arguments().map(<[u8]>::to_vec).collect())
            .unwrap_or_default()
    }

    /// The launch whose arguments these are.
    pub(super) fn example_launch(&self, launches: &[u32]) -> Option<u32> {
        let has_arguments = |index: &u32| !self.launch(*index).execs.is_empty();
        launches.iter().copied().find(has_arguments)
    }
}

/// Bytes of a file name or argument for a sentence; what is not UTF-8 becomes U+FFFD.
pub(super) fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A span for a sentence: three digits and a unit.
pub(super) fn time(span: Nanos) -> String {
    crate::units::time(span)
}
