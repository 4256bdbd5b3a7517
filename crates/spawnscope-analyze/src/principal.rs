//! The principal cause of the wall: the activity that most of the wall was spent on, whether or not
//! it can be avoided, and the command that most of the wall depends on.

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
    /// Time of its `run` phase on the critical path, excluding the processes it launched.
    pub time: Nanos,
}

/// A command is a culprit only if at least this share of the wall depends on it.
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
    let largest = commands.into_iter().max_by_key(|(command, (_, time))| (*time, command.name));
    largest.filter(|(_, (_, time))| *time > 0).map(|(command, (count, time))| Work {
        label: command.label(),
        count,
        time: Nanos(time),
    })
}

/// Returns the command that most of the wall depends on, except shells and other wrappers, which
/// only lead to other commands. `None` if its share of the wall is small or uncertain.
#[must_use]
pub fn culprit(dependence: &[Dependence], unrecorded: Nanos) -> Option<&Dependence> {
    dependence
        .iter()
        .find(|each| !each.is_wrapper)
        .filter(|each| each.saving[1] > Nanos(0) && each.saving[0].0 as f64 >= MIN_SHARE * unrecorded.0 as f64)
}
