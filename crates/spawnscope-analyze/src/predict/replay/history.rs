//! Records the activities of threads in a replay, and computes the critical path of the replay.

use super::activity::{Activity, ActivityKind};
use super::watch::{ThreadState, Watch};
use crate::model::external_wait::{ExternalWait, ExternalWaitTimes};
use crate::model::phases::Phase;
use crate::model::timeline::ThreadIndex;
use crate::path::critical_path::{Charges, CriticalPath};
use spawnscope_data::event::Nanos;

/// Maximum number of jumps between threads without progress in time. After that, time is charged to
/// an external wait instead of following another thread.
const MAX_JUMPS: usize = 64;

/// The states of each thread in chronological order. Each state lasts until the next one starts.
pub(super) struct History {
    threads: Vec<ThreadHistory>,
}

#[derive(Clone, Default)]
struct ThreadHistory {
    creator: Option<ThreadIndex>,
    /// The start of each state, the state, and the thread that ended it if it was a wait.
    states: Vec<(Nanos, ThreadState, Option<ThreadIndex>)>,
}

impl Watch for History {
    fn state_begins(&mut self, thread: ThreadIndex, at: Nanos, state: ThreadState) {
        let states = &mut self.threads[thread as usize].states;
        match states.last_mut() {
            Some((_, last, None)) if *last == state => {}
            // A state without duration is dropped, unless it is a wait, whose waker is needed.
            Some(last) if last.0 == at && last.1 != ThreadState::Waiting => *last = (at, state, None),
            _ => states.push((at, state, None)),
        }
    }

    fn thread_woken(&mut self, thread: ThreadIndex, by: ThreadIndex) {
        if let Some(last) = self.threads[thread as usize].states.last_mut() {
            last.2 = Some(by);
        }
    }

    fn thread_created(&mut self, thread: ThreadIndex, by: ThreadIndex) {
        self.threads[thread as usize].creator = Some(by);
    }
}

impl History {
    pub(super) fn new(count: usize) -> History {
        History { threads: vec![ThreadHistory::default(); count] }
    }

    /// Walks the critical path back from the end of the thread `last`. `launch_of` maps threads to
    /// launches.
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
            let history = &self.threads[thread as usize];
            let begun = history.states.partition_point(|(since, ..)| *since < at);
            let found = history.states[..begun].last();
            let jump = match (found, history.creator) {
                (Some((_, ThreadState::Waiting | ThreadState::Sleeping(_), by)), _) => *by,
                (None, creator) => creator,
                _ => None,
            };
            if let Some(other) = jump.filter(|_| jumps < MAX_JUMPS) {
                (thread, jumps) = (other, jumps + 1);
                continue;
            }
            let since = found.map_or(Nanos(0), |(since, ..)| *since);
            let span = at.since(since);
            (at, jumps) = (since, 0);
            let state = found.map(|(_, state, _)| *state);
            charge(&mut path, launch_of[thread as usize], state, span);
        }
        path
    }
}

fn charge(path: &mut CriticalPath, launch: u32, state: Option<ThreadState>, span: Nanos) {
    let external_wait = match state {
        Some(ThreadState::Running(activity)) => {
            return path.launches[activity.launch as usize].add(phase_of(activity), span);
        }
        Some(ThreadState::Queued(activity)) => return charge_queue(path, launch, activity, span),
        Some(ThreadState::Sleeping(external_wait)) => external_wait,
        Some(ThreadState::Waiting) | None => ExternalWait::Unknown,
    };
    path.external_wait.entry(external_wait).or_default().0 += span.0;
}

/// Charges a wait for a CPU to the phase in progress. In `run` it is charged separately.
fn charge_queue(path: &mut CriticalPath, launch: u32, activity: Option<Activity>, span: Nanos) {
    let activity = activity.filter(|activity| phase_of(*activity) != Phase::Run);
    match activity {
        Some(activity) => path.launches[activity.launch as usize].add(phase_of(activity), span),
        None => path.launches[launch as usize].add_run_queue(span),
    }
}

fn phase_of(activity: Activity) -> Phase {
    match activity.stage.kind() {
        ActivityKind::Phase(phase) => phase,
        ActivityKind::Supervise | ActivityKind::Faults => Phase::Run,
    }
}
