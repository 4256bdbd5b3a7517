//! The principal cause of the wall: what most of it was spent on, whether or not anything can be done about it, and the command that most of
//! it depends on.

use std::collections::HashMap;

use crate::critical_path::CriticalPath;
use crate::dependence::Dependence;
use crate::launch::Command;
use crate::phases::Phase;
use crate::tree::Forest;
use spawnscope_data::event::Nanos;

/// Work of one command on the critical path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Display name of the command.
    pub label: Vec<u8>,
    /// Number of its launches, the recorded command included.
    pub count: u64,
    /// Time of its `run` on the critical path, without that of its launches.
    pub time: Nanos,
}

/// Minimum share of the wall that depends on a culprit.
const MIN_SHARE: f64 = 0.2;

/// Returns the command with the most work on the critical path.
pub(crate) fn most_work(forest: &Forest<'_>, path: &CriticalPath) -> Option<Work> {
    let mut commands: HashMap<Command<'_>, (u64, u64)> = HashMap::new();
    for (launch, charges) in forest.launches.iter().zip(&path.launches) {
        if launch.is_launch() {
            let (count, time) = commands.entry(*launch.command).or_default();
            *count += 1;
            *time += charges.get(Phase::Run).0;
        }
    }
    let most = commands
        .into_iter()
        .max_by_key(|(command, (_, time))| (*time, command.name));
    most.filter(|(_, (_, time))| *time > 0)
        .map(|(command, (count, time))| Work {
            label: command.label(),
            count,
            time: Nanos(time),
        })
}

/// Returns the command that most of the wall depends on, past the shells and wrappers that only lead to it. `None` when no such share is
/// large and certain.
#[must_use]
pub fn culprit(dependence: &[Dependence], unrecorded: Nanos) -> Option<&Dependence> {
    let mut own = dependence.iter().filter(|each| !each.is_wrapper);
    own.next()
        .filter(|each| each.saving[1] > Nanos(0) && each.saving[0].0 as f64 >= MIN_SHARE * unrecorded.0 as f64)
}
