//! Waits for the next round of a polling thread: the next end of one of its sleeps. The times of
//! rounds do not depend on the threads that wait for them.

use super::{Simulation, ThreadState, Watch};
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use crate::predict::replay::program::Script;
use crate::predict::replay::steps::Step;

impl<S: Script, W: Watch> Simulation<'_, S, W> {
    /// Lets a thread wait for the next round of another one. Returns whether it continues at once.
    pub(super) fn wait_for_round(&mut self, thread: ThreadIndex, polling: ThreadIndex) -> bool {
        if self.has_no_next_round(polling) {
            return true;
        }
        self.rounds.entry(polling).or_default().push(thread);
        self.block(thread, ThreadState::Sleeping(ExternalWait::Timer))
    }

    /// Ends the wait of a thread for a round. Returns whether the thread was waiting for one.
    pub(super) fn leave_round(&mut self, thread: ThreadIndex, polling: ThreadIndex) -> bool {
        let waiting = self.rounds.get_mut(&polling);
        waiting.is_some_and(|all| all.iter().position(|each| *each == thread).map(|at| all.remove(at)).is_some())
    }

    pub(super) fn wake_up(&mut self, thread: ThreadIndex) {
        self.become_ready(thread);
        self.begin_round(thread);
    }

    pub(super) fn begin_round(&mut self, thread: ThreadIndex) {
        if !self.rounds.is_empty() {
            self.rounds.remove(&thread).into_iter().flatten().for_each(|waiting| self.become_ready(waiting));
        }
    }

    /// Whether a thread has ended, or is blocked until another thread wakes it. A thread must not
    /// wait for its next round then: it could be the one that must wake it.
    fn has_no_next_round(&mut self, thread: ThreadIndex) -> bool {
        let position = self.position(thread);
        let last = position.checked_sub(1).and_then(|last| self.script.step(thread, last));
        match last {
            Some(Step::Wait(token, ..)) => self.signals[token as usize].sleeper() == Some(thread),
            Some(Step::Round(..) | Step::Killed) => true,
            _ => self.script.step(thread, position).is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::simulate;
    use super::*;
    use crate::model::phases::Phase;
    use crate::predict::replay::activity::{Activity, Stage};
    use crate::predict::replay::machine::Machine;
    use crate::predict::replay::program::Programs;
    use spawnscope_data::event::Nanos;

    /// Simulates a first thread that works for `work` nanoseconds, waits for the next round of a
    /// second thread, works for 1 ns and wakes the second thread, which sleeps for 10 ns and then
    /// waits for that. Returns when the first thread ends.
    fn end_after(work: u64) -> u64 {
        let activity = Activity { launch: 0, stage: Stage::new(Phase::Run, 0) };
        let mut programs = Programs::new(vec![0, 0], 1, vec![0], 0);
        let first = [
            Step::Spawn(1),
            Step::Run(Nanos(work), Nanos(0), activity),
            Step::Round(1, activity),
            Step::Run(Nanos(1), Nanos(0), activity),
            Step::Wake(0),
        ];
        let second = [Step::Sleep(Nanos(10), activity, ExternalWait::Timer), Step::Wait(0, activity, Nanos(0))];
        programs.add(|steps, _| first.into_iter().for_each(|step| steps.push(step, 0)));
        programs.add(|steps, _| second.into_iter().for_each(|step| steps.push(step, 0)));
        simulate(&programs, &Machine::with_cpus(2)).0
    }

    #[test]
    fn a_thread_waits_for_the_next_round_but_not_for_one_that_cannot_come() {
        assert_eq!(end_after(3), 10 + 1, "the second thread still sleeps");
        assert_eq!(end_after(20), 20 + 1, "the second thread waits for the first");
    }
}
