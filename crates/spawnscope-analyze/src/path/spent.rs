//! How the wall was spent along the critical path: launch tax, work, the run queue, and external
//! waits.

use std::cmp::Reverse;

use crate::model::external_wait::ExternalWait;
use crate::model::phases::Phase;
use crate::path::critical_path::CriticalPath;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Recording;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spent {
    /// Launch tax: all phases of a launch except `run`.
    Tax,
    Run,
    /// Runnable programs that waited for a CPU.
    RunQueue,
    /// An external wait, with the name of the process if known.
    ExternalWait(ExternalWait, Option<Vec<u8>>),
}

impl Spent {
    pub fn description(&self) -> String {
        use ExternalWait::{Disk, Network, Process, Recorder, Scanner, Stopped, Timer, Unknown};
        let named = |what: &str, name: &[u8]| format!("{what}: {}", String::from_utf8_lossy(name));
        let description = match self {
            Spent::Tax => "start-up (all phases but run)",
            Spent::Run => "running programs",
            Spent::RunQueue => "runnable programs waiting for a CPU",
            Spent::ExternalWait(Timer, _) => "waiting for a timer",
            Spent::ExternalWait(Disk, _) => "reading and writing files",
            Spent::ExternalWait(Network, _) => "waiting for the network",
            Spent::ExternalWait(Process(_), Some(name)) => {
                return named("waiting for a process that is not recorded", name);
            }
            Spent::ExternalWait(Process(_), None) => "waiting for processes that are not recorded",
            Spent::ExternalWait(Scanner(_), Some(name)) => return named("waiting for a permission scanner", name),
            Spent::ExternalWait(Scanner(_), None) => "waiting for a permission scanner",
            Spent::ExternalWait(Stopped, _) => "stopped by a signal",
            Spent::ExternalWait(Recorder, _) => {
                "the recorder: before the command, when it stopped programs, and after the end"
            }
            Spent::ExternalWait(Unknown, _) => "unknown",
        };
        description.to_owned()
    }
}

/// Returns how the wall was spent, the longest part first.
pub(crate) fn where_the_wall_went(path: &CriticalPath, recording: &Recording) -> Vec<(Spent, Nanos)> {
    let queue = Nanos(path.launches.iter().map(|charges| charges.run_queue().0).sum());
    let run = Nanos(path.launches.iter().map(|charges| charges.get(Phase::Run).0).sum());

    let mut external_wait: Vec<(Spent, Nanos)> = Vec::new();
    for (what, time) in &path.external_wait {
        // Times of processes with the same name are added. One name may have several text ids.
        let name = what.process().map(|name| recording.texts.get(name).to_vec());
        let spent = Spent::ExternalWait(*what, name);
        match external_wait.iter_mut().find(|(other, _)| is_same_process(other, &spent)) {
            Some((_, sum)) => sum.0 += time.0,
            None => external_wait.push((spent, *time)),
        }
    }
    let mut all = vec![(Spent::Tax, path.tax()), (Spent::Run, run), (Spent::RunQueue, queue)];
    all.extend(external_wait);
    all.retain(|(_, time)| time.0 > 0);
    all.sort_by_key(|(_, time)| Reverse(*time));
    all
}

fn is_same_process(one: &Spent, other: &Spent) -> bool {
    use ExternalWait::{Process, Scanner};
    let (Spent::ExternalWait(one, one_name), Spent::ExternalWait(other, other_name)) = (one, other) else {
        return false;
    };
    matches!((one, other), (Process(_), Process(_)) | (Scanner(_), Scanner(_))) && one_name == other_name
}
