//! Loops that poll, and what each of them waited for. `waits::poll_loops` finds them.

use crate::model::timeline::ThreadIndex;
use foldhash::HashMap;
use spawnscope_data::event::Nanos;

/// A loop of short sleeps in which a thread waited for another thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PollLoop {
    pub(crate) thread: ThreadIndex,
    /// When the thread began to check whether it must go on, before each sleep.
    pub(crate) checks: Box<[Nanos]>,
    /// When the last sleep ended.
    pub(crate) end: Nanos,
    pub(crate) awaited: ThreadIndex,
    /// When that thread did what ended the loop, before `end`.
    pub(crate) at: Nanos,
}

/// A wait for another thread whose result a polling thread passed on in its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Round {
    /// The thread whose work the wait was for.
    pub(crate) worker: ThreadIndex,
    /// When that thread had worked.
    pub(crate) until: Nanos,
    pub(crate) polling: ThreadIndex,
    /// Number of rounds that began since then. At least one.
    pub(crate) count: usize,
}

/// The waits that ended in a round of a polling thread, by the waiting thread and the start of the
/// wait.
pub(crate) type Rounds = HashMap<(ThreadIndex, Nanos), Round>;

#[derive(Clone, Debug, Default)]
pub(crate) struct PollLoops(HashMap<ThreadIndex, Vec<PollLoop>>);

impl PollLoops {
    pub(crate) fn new(loops: Vec<PollLoop>) -> PollLoops {
        let mut by_thread: HashMap<ThreadIndex, Vec<PollLoop>> = HashMap::default();
        for each in loops {
            by_thread.entry(each.thread).or_default().push(each);
        }
        by_thread.values_mut().for_each(|loops| loops.sort_unstable_by_key(|each| each.end));
        PollLoops(by_thread)
    }

    pub(crate) fn of_thread(&self, thread: ThreadIndex) -> &[PollLoop] {
        self.0.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Returns all loops in a fixed order.
    pub(crate) fn all(&self) -> Vec<&PollLoop> {
        let mut all: Vec<&PollLoop> = self.0.values().flatten().collect();
        all.sort_unstable_by_key(|each| (each.thread, each.end));
        all
    }
}
