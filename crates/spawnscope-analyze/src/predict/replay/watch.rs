//! Who follows a replay, which itself keeps only the time of its end.

use super::activity::Activity;
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

/// Receives the changes of all threads, those of each thread in chronological order.
pub(super) trait Watch {
    /// Whether anything is received.
    const FOLLOWS: bool = true;

    /// A thread enters a state.
    fn state_begins(&mut self, thread: ThreadIndex, at: Nanos, state: ThreadState);
    /// The thread `by` ends the wait of `thread`.
    fn thread_woken(&mut self, thread: ThreadIndex, by: ThreadIndex);
    /// The thread `by` creates `thread`.
    fn thread_created(&mut self, thread: ThreadIndex, by: ThreadIndex);
}

/// The state of a thread in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    Running(Activity),
    /// Waits for a CPU to continue with this activity.
    Queued(Option<Activity>),
    /// Waits for another thread.
    Waiting,
    Sleeping(ExternalWait),
}

/// Ignores all changes.
impl Watch for () {
    const FOLLOWS: bool = false;

    fn state_begins(&mut self, _: ThreadIndex, _: Nanos, _: ThreadState) {}
    fn thread_woken(&mut self, _: ThreadIndex, _: ThreadIndex) {}
    fn thread_created(&mut self, _: ThreadIndex, _: ThreadIndex) {}
}
