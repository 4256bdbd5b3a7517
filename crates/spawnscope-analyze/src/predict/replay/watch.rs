//! Who follows a replay, which itself keeps only the time of its end.

use super::activity::Activity;
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

/// Receives the changes of all threads, those of each thread in chronological order.
pub(super) trait Watch {
    /// Whether anything is received.
    const FOLLOWS: bool = true;

    fn state_begins(&mut self, thread: ThreadIndex, at: Nanos, state: ThreadState);
    fn thread_woken(&mut self, thread: ThreadIndex, by: ThreadIndex);
    fn thread_created(&mut self, thread: ThreadIndex, by: ThreadIndex);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadState {
    Running(Activity),
    /// Waits for a CPU to continue with this activity.
    Queued(Option<Activity>),
    Waiting,
    Sleeping(ExternalWait),
}

impl Watch for () {
    const FOLLOWS: bool = false;

    fn state_begins(&mut self, _: ThreadIndex, _: Nanos, _: ThreadState) {}
    fn thread_woken(&mut self, _: ThreadIndex, _: ThreadIndex) {}
    fn thread_created(&mut self, _: ThreadIndex, _: ThreadIndex) {}
}
