//! Records the activity of a replay, and computes its critical path.

use super::activity::{Activity, Doing};
use super::simulate::{Watch, What};
use crate::critical_path::{Charges, CriticalPath};
use crate::external_wait::{ExternalWait, ExternalWaitTimes};
use crate::phases::Phase;
use crate::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

/// Maximum number of jumps between threads without progress in time, after which the path gives up on a wait.
const MOST_JUMPS: usize = 64;

/// The activities of each thread in order of time. Each lasts until the next one starts.
pub(super) struct History {
    threads: Vec<Doings>,
}

#[derive(Clone, Default)]
struct Doings {
    maker: Option<ThreadIndex>,
    begun: Vec<(Nanos, What, Option<ThreadIndex>)>,
}

impl Watch for History {
    fn begins(&mut self, thread: ThreadIndex, at: Nanos, what: What) {
        let begun = &mut self.threads[thread as usize].begun;
        match begun.last_mut() {
            Some((_, last, None)) if *last == what => {}
            // An activity without duration is dropped, but the waker of a wait is kept.
            Some(last) if last.0 == at && last.1 != What::Waits => *last = (at, what, None),
            _ => begun.push((at, what, None)),
        }
    }

    fn woken(&mut self, thread: ThreadIndex, by: ThreadIndex) {
        if let Some(last) = self.threads[thread as usize].begun.last_mut() {
            last.2 = Some(by);
        }
    }

    fn born(&mut self, thread: ThreadIndex, by: ThreadIndex) {
        self.threads[thread as usize].maker = Some(by);
    }
}

impl History {
    pub(super) fn of_threads(count: usize) -> History {
        History {
            threads: vec![Doings::default(); count],
        }
    }

    /// Walks the path back from the end of one thread. `launch_of` maps threads to launches.
    pub(super) fn critical_path(
        &self,
        launches: usize,
        launch_of: &[u32],
        last: ThreadIndex,
        end: Nanos,
    ) -> CriticalPath {
        let mut path = CriticalPath {
            launches: vec![Charges::default(); launches],
            external_wait: ExternalWaitTimes::new(),
            wall: end,
        };
        let (mut thread, mut at, mut jumps) = (last, end, 0);
        while at > Nanos(0) {
            let doings = &self.threads[thread as usize];
            let begun = doings.begun.partition_point(|(since, ..)| *since < at);
            let found = doings.begun[..begun].last();
            let jump = match (found, doings.maker) {
                (Some((_, What::Waits, by)), _) => *by,
                (None, maker) => maker,
                _ => None,
            };
            if let Some(other) = jump.filter(|_| jumps < MOST_JUMPS) {
                (thread, jumps) = (other, jumps + 1);
                continue;
            }
            let since = found.map_or(Nanos(0), |(since, ..)| *since);
            let span = at.since(since);
            (at, jumps) = (since, 0);
            let what = found.map(|(_, what, _)| *what);
            charge(&mut path, launch_of[thread as usize], what, span);
        }
        path
    }
}

fn charge(path: &mut CriticalPath, launch: u32, what: Option<What>, span: Nanos) {
    let external_wait = match what {
        Some(What::Runs(activity)) => return path.launches[activity.launch as usize].add(phase_of(activity), span),
        Some(What::Queues(activity)) => return charge_queue(path, launch, activity, span),
        Some(What::Sleeps(external_wait)) => external_wait,
        Some(What::Waits) | None => ExternalWait::Unknown,
    };
    path.external_wait.entry(external_wait).or_default().0 += span.0;
}

/// Waiting for a CPU belongs to the phase in progress. In `run` it counts separately.
fn charge_queue(path: &mut CriticalPath, launch: u32, activity: Option<Activity>, span: Nanos) {
    let activity = activity.filter(|activity| phase_of(*activity) != Phase::Run);
    match activity {
        Some(activity) => path.launches[activity.launch as usize].add(phase_of(activity), span),
        None => path.launches[launch as usize].add_run_queue(span),
    }
}

fn phase_of(activity: Activity) -> Phase {
    match activity.stage.doing() {
        Doing::Phase(phase) => phase,
        Doing::Supervise | Doing::Faults => Phase::Run,
    }
}
