//! The causes of a command's duration: the critical path, drift, dependence on commands, and
//! advice.

use std::slice;

use crate::explain::advice::{self, AdviceList, RuleContext, SmallWork, Substitutes};
use crate::explain::drift::{Drift, drifts};
use crate::explain::tool_calls::{ToolCalls, given_commands, tool_calls};
use crate::model::timeline::Timelines;
use crate::model::tree::Forest;
use crate::path::critical_path::{CriticalPath, critical_path};
use crate::predict::dependence::{Dependence, Work, dependence, most_work, removals_of_commands};
use crate::predict::replay::CpuWaits;
use crate::predict::replay::{Parameters, Replay, is_reliable};
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::constants::Constants;
use crate::sites::callers::{Callers, Detail};
use spawnscope_data::parallel;
use spawnscope_data::rows::Recording;

/// Why a command took as long as it did, and what would shorten it.
#[derive(Clone, Debug)]
pub struct Causes {
    pub path: CriticalPath,
    /// The replay error, as a share of the measured wall.
    pub replay_error: f64,
    /// Parents whose launches became slower over time, the worst first.
    pub drifts: Vec<Drift>,
    /// The advice. Empty when the replay is not reliable.
    pub advices: AdviceList,
    /// How much of the wall depends on each of the commands that run longest, the largest part
    /// first. Empty when the replay is not reliable.
    pub dependence: Vec<Dependence>,
    /// The command with the most work on the critical path.
    pub work: Option<Work>,
    /// The waits of all threads for a CPU.
    pub cpu_waits: CpuWaits,
    /// Commands that are started through a shell that first does other work.
    pub tool_calls: Vec<ToolCalls>,
}

/// Whether the waits of threads were recorded or reconstructed.
pub(crate) fn has_waits(recording: &Recording, timelines: &Timelines) -> bool {
    recording.info.sees_scheduler() || timelines.is_reconstructed()
}

impl Causes {
    /// Finds the causes. `None` if the recording has no command, its command has not ended, or its
    /// waits are unknown.
    #[must_use]
    pub fn find(recording: &Recording, forest: &Forest<'_>, timelines: &Timelines) -> Option<Causes> {
        Causes::find_with(recording, forest, timelines, |_, _| ()).map(|(causes, ())| causes)
    }

    /// Finds the causes, and answers another question with the same replay, which is expensive.
    /// `question` also gets the dependence on commands. It is not called if the replay is not
    /// reliable.
    #[must_use]
    pub fn find_with<T: Default>(
        recording: &Recording,
        forest: &Forest<'_>,
        timelines: &Timelines,
        question: impl FnOnce(&RuleContext<'_, '_>, &[Dependence]) -> T,
    ) -> Option<(Causes, T)> {
        let parameters = Parameters::of(recording).filter(|_| has_waits(recording, timelines))?;
        // The replay takes as long as all other preparations together.
        let (replay, (path, drifts, callers, sites, small_work, given, tool_calls)) = parallel::join(
            || Replay::new(forest, timelines, &parameters),
            || {
                let path = critical_path(forest, timelines, parameters.wall);
                let (callers, sites) = (Callers::find(forest, Detail::Line), Callers::behind_helpers(forest));
                let (small_work, given) = (SmallWork::of(recording, forest, timelines), given_commands(forest));
                (path, drifts(forest), callers, sites, small_work, given, tool_calls(forest))
            },
        );
        let (path, replay) = (path?, replay?);
        let context = RuleContext {
            recording,
            path: &path,
            drifts: &drifts,
            whatif: WhatIf { forest, timelines, replay: &replay, constants: &Constants::of(recording, forest) },
            callers: &callers,
            sites: &sites,
            small_work: &small_work,
            substitutes: &Substitutes::default(),
            given: &given,
            tool_calls: &tool_calls,
        };
        let (work, cpu_waits, replay_error) = (most_work(forest, &path), replay.programs.cpu_waits, replay.error());
        let predicted = is_reliable(replay_error).then(|| {
            let (advices, dependence) = predict(&context);
            let answer = question(&context, &dependence);
            (advices, dependence, answer)
        });
        let (advices, dependence, answer) = predicted.unwrap_or_default();
        let causes = Causes { advices, dependence, work, cpu_waits, replay_error, drifts, path, tool_calls };
        Some((causes, answer))
    }
}

/// Returns the results that need replays with changes. All these replays run in parallel, because
/// some take much longer than others.
fn predict(context: &RuleContext<'_, '_>) -> (AdviceList, Vec<Dependence>) {
    let whatif = &context.whatif;
    let found = advice::find(context);
    let removals = removals_of_commands(whatif);
    let mut sets = found.changes();
    let of_found = sets.len();
    sets.extend(removals.iter().map(|(_, fix)| slice::from_ref(fix)));
    let predictions = whatif.predict_each(&sets);
    let (of_found, of_removals) = predictions.split_at(of_found);
    let dependence = dependence(whatif, &removals, of_removals);
    (advice::advise(context, found, of_found), dependence)
}
