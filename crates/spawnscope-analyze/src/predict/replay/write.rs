//! Turns slices into programs. Slices contain the time of every activity; programs contain only
//! steps and their durations.

use std::cmp::Reverse;

use super::Parameters;
use super::activity::{Activities, Activity, ActivityKind};
use super::contention::{Contention, runnable};
use super::launch_overhead::LaunchOverhead;
use super::program::Programs;
use super::reaps::{self, Reap};
use super::steps::{Step, Steps, Token};
use crate::model::external_wait::external_wait_of;
use crate::model::phases::Phase;
use crate::model::slices::ThreadSlices;
use crate::model::timeline::{ThreadIndex, Timelines, beginning, last_launch, last_thread};
use crate::model::tree::Forest;
use spawnscope_data::event::{LeftCpu, Nanos};
use spawnscope_data::parallel;
use spawnscope_data::rows::{Origin, SliceRow};

/// Maximum overhead of recording, as a share of a stretch on the CPU.
const MAX_OVERHEAD_SHARE: f64 = 0.9;
/// Maximum unused capacity of the list of actions, in entries: 4 MiB.
const MAX_SPARE: usize = 1 << 18;

/// An action of a thread that involves another thread, at an instant of the recording. It is packed
/// into one number that sorts by thread, by time, and by the order within one instant, because
/// there are several per launch and all of them must be sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Action(u128);

#[derive(Clone, Copy, Debug, PartialEq)]
enum ActionKind {
    Wake(Token),
    /// Continues only when the token has been signalled.
    Await(Token),
    Spawn(ThreadIndex),
}

impl Action {
    const NUMBER_BITS: u32 = 32;
    /// Two bits above the number of the token or created thread distinguish the kinds.
    const AT_BIT: u32 = Action::NUMBER_BITS + 2;
    /// Enough for instants of more than a century.
    const AT_BITS: u32 = 62;
    const THREAD_BIT: u32 = Action::AT_BIT + Action::AT_BITS;

    fn new(thread: ThreadIndex, at: Nanos, kind: ActionKind) -> Action {
        let (order, number) = match kind {
            ActionKind::Wake(token) => (0u8, token),
            ActionKind::Await(token) => (1, token),
            ActionKind::Spawn(child) => (2, child),
        };
        let at = u128::from(at.0.min(u64::MAX >> (u64::BITS - Action::AT_BITS)));
        Action(
            u128::from(thread) << Action::THREAD_BIT
                | at << Action::AT_BIT
                | u128::from(order) << Action::NUMBER_BITS
                | u128::from(number),
        )
    }

    fn thread(self) -> ThreadIndex {
        (self.0 >> Action::THREAD_BIT) as ThreadIndex
    }

    fn at(self) -> Nanos {
        Nanos((self.0 >> Action::AT_BIT) as u64 & (u64::MAX >> (u64::BITS - Action::AT_BITS)))
    }

    fn kind(self) -> ActionKind {
        let number = self.0 as u32;
        match self.0 >> Action::NUMBER_BITS & 3 {
            0 => ActionKind::Wake(number),
            1 => ActionKind::Await(number),
            _ => ActionKind::Spawn(number),
        }
    }
}

/// Turns a recording into programs. Slices outside the window are left out.
pub(super) fn write(
    forest: &Forest<'_>,
    timelines: &Timelines,
    parameters: &Parameters,
    root: u32,
    window: (Nanos, Nanos),
) -> Programs {
    let ((waits, count, mut actions), contention) =
        parallel::join(|| collect_actions(forest, timelines, window), || Contention::new(timelines, parameters.cpus));
    let launch_of = timelines.threads.iter().map(|thread| thread.launch).collect();
    let mut programs = Programs::new(
        launch_of,
        count,
        roots(forest, timelines, root, window.0),
        last_thread(timelines, last_launch(forest, root, window.1)),
    );
    let mut tokens = 0..0;
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let slices = timelines.slices(thread);
        let indices = slices.indices();
        let thread_waits = waits[tokens.end..].iter().take_while(|index| indices.contains(index));
        tokens = tokens.end..tokens.end + thread_waits.count();
        let thread_actions = take_actions_of(&mut actions, thread);
        programs.add(|steps| {
            let writer = Writer {
                actions: thread_actions,
                steps,
                waits: &waits[tokens.clone()],
                first_token: tokens.start as Token,
                window,
                contention: &contention,
                call_ns: parameters.call_ns,
                call_overhead_share: 0.0,
                launch_overhead: LaunchOverhead::new(forest, parameters),
                ended: end_of_process(forest, timelines, thread),
                activities: Activities::new(forest, timelines, thread, parameters.fault_ns),
            };
            writer.write(slices);
        });
    }
    programs
}

/// Returns when the process of a thread ended. `None` if it was alive at the end of the recording.
fn end_of_process(forest: &Forest<'_>, timelines: &Timelines, thread: ThreadIndex) -> Option<Nanos> {
    let instants = &forest.launches[timelines.launch_of(thread) as usize].instants;
    let ended = instants.zombie.get().or(instants.exit.get());
    (!timelines.outlives(thread)).then(|| ended.unwrap_or(forest.end))
}

/// Returns the threads that exist at the start of the window: the first thread of the root, and
/// threads of processes that existed before. All other threads are created by a recorded thread.
fn roots(forest: &Forest<'_>, timelines: &Timelines, root: u32, start: Nanos) -> Vec<ThreadIndex> {
    let others = (0..).zip(&timelines.threads).filter(|(index, thread)| {
        let is_early = thread.created.get().is_none_or(|created| created <= start);
        let existed = is_early && forest.launches[thread.launch as usize].origin == Origin::Existed;
        *index != root && thread.creator.get().is_none() && existed
    });
    std::iter::once(root).chain(others.map(|(index, _)| index)).collect()
}

/// Returns the slice indices of the recorded waits, which have the first tokens, the number of all
/// tokens, and all actions in descending order.
fn collect_actions(
    forest: &Forest<'_>,
    timelines: &Timelines,
    window: (Nanos, Nanos),
) -> (Vec<u32>, Token, Vec<Action>) {
    let (waits, mut actions) = collect_wakes(timelines, window);
    let mut count = waits.len() as Token;
    for dependency in reaps::without_wait(forest, timelines, window) {
        let Reap { parent, child, zombie, reaped } = dependency;
        actions.push(Action::new(child, zombie, ActionKind::Wake(count)));
        actions.push(Action::new(parent, reaped, ActionKind::Await(count)));
        count += 1;
    }
    collect_spawns(timelines, &mut actions);
    actions.sort_unstable_by_key(|action| Reverse(*action));
    (waits, count, actions)
}

/// Removes the actions of a thread, which are the last in `actions`. Frees their memory, since the
/// programs grow at the same time.
fn take_actions_of(actions: &mut Vec<Action>, thread: ThreadIndex) -> Vec<Action> {
    let own = actions.iter().rev().take_while(|action| action.thread() == thread);
    let own = actions.split_off(actions.len() - own.count());
    if actions.capacity() - actions.len() > MAX_SPARE {
        actions.shrink_to_fit();
    }
    own
}

/// Assigns a token to every wait that a recorded thread ended, and a wake action to that thread. A
/// wait that was open at the end of the recording is ended then. Returns the slice index of each
/// token, by thread, and the actions.
fn collect_wakes(timelines: &Timelines, (start, end): (Nanos, Nanos)) -> (Vec<u32>, Vec<Action>) {
    let (mut waits, mut actions) = (Vec::new(), Vec::new());
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let slices = timelines.slices(thread);
        for (index, slice) in slices.indices().zip(slices.iter()) {
            let Some(woken) = woken_at(&slice, end).filter(|woken| *woken > start) else {
                continue;
            };
            let Some(waker) = timelines.cause(thread, &slice) else {
                continue;
            };
            actions.push(Action::new(waker, woken, ActionKind::Wake(waits.len() as Token)));
            waits.push(index);
        }
    }
    (waits, actions)
}

/// Whether an activity makes many system calls. The work of a parent for a child consists of one
/// long call and few others.
fn makes_many_calls(activity: Activity) -> bool {
    !matches!(activity.stage.kind(), ActivityKind::Phase(Phase::Create) | ActivityKind::Supervise)
}

fn woken_at(slice: &SliceRow, end: Nanos) -> Option<Nanos> {
    if slice.is_open_wait() {
        return Some(end);
    }
    Some(Nanos(slice.off.0 + slice.wake_span?.0))
}

fn collect_spawns(timelines: &Timelines, actions: &mut Vec<Action>) {
    actions.extend((0..).zip(&timelines.threads).filter_map(|(child, each)| {
        Some(Action::new(each.creator.get()?, each.created.get()?, ActionKind::Spawn(child)))
    }));
}

/// Writes the program of one thread.
struct Writer<'w> {
    /// The remaining actions, in descending order.
    actions: Vec<Action>,
    steps: &'w mut Steps,
    /// The slice indices of this thread's recorded waits.
    waits: &'w [u32],
    /// The token of the first of them.
    first_token: Token,
    window: (Nanos, Nanos),
    contention: &'w Contention,
    /// Overhead of recording per system call, in nanoseconds.
    call_ns: f64,
    /// Overhead of recording system calls, as a share of the current stretch on the CPU.
    call_overhead_share: f64,
    launch_overhead: LaunchOverhead<'w>,
    /// When the process ended. `None` if it was alive at the end of the recording.
    ended: Option<Nanos>,
    activities: Activities,
}

impl Writer<'_> {
    fn write(mut self, slices: ThreadSlices<'_>) {
        let (start, end) = self.window;
        let mut returned = None;
        for (index, slice) in slices.indices().zip(slices.iter()) {
            returned = slice.off_span.map(|span| Nanos(slice.off.0 + span.0));
            let wait = self.waits.binary_search(&index).ok();
            let token = wait.map(|wait| self.first_token + wait as Token);
            if slice.off <= start && slice.reason != LeftCpu::Created {
                // A daemon that sleeps when the window begins starts to work at its first request.
                if token.is_some() {
                    self.leave(&slice, token, Nanos(0));
                }
                continue;
            }
            self.call_overhead_share = self.call_overhead_share_of(&slice);
            self.run(beginning(&slice).max(start), slice.off.min(end));
            self.leave(&slice, token, self.contention.lost(index));
        }
        self.call_overhead_share = 0.0;
        // If the process has ended, a last slice was lost, and the thread was on a CPU until then. If it is still alive, what it did is unknown:
        // nothing is added, and the replayed wall is too short.
        if let (Some(on), Some(ended)) = (returned.map(|on| on.max(start)), self.ended)
            && on < end
        {
            // In a recording that contradicts itself, it may have ended before.
            let ended = if ended < on { end } else { ended.min(end) };
            self.run(on, ended);
        }
        self.act_until(Nanos(u64::MAX), None);
    }

    /// Adds CPU time between two instants, with the actions in between.
    fn run(&mut self, on: Nanos, off: Nanos) {
        let at = self.act_until(off, Some(on));
        self.push_run(at, off);
    }

    /// Adds the actions up to `until`, with the CPU time between them from `on`. Returns the
    /// instant up to which CPU time has been added.
    fn act_until(&mut self, until: Nanos, on: Option<Nanos>) -> Nanos {
        let mut at = on.unwrap_or(until);
        while let Some(action) = self.actions.pop_if(|action| action.at() <= until) {
            self.push_run(at, action.at());
            at = at.max(action.at());
            self.steps.push(match action.kind() {
                ActionKind::Wake(token) => Step::Wake(token),
                ActionKind::Await(token) => Step::Wait(token, self.activities.at(action.at()), Nanos(0)),
                ActionKind::Spawn(child) => Step::Spawn(child),
            });
        }
        at
    }

    fn push_run(&mut self, from: Nanos, to: Nanos) {
        if from >= to {
            return;
        }
        for (span, activity) in self.activities.between(from, to) {
            let calls = if makes_many_calls(activity) { self.call_overhead_share } else { 0.0 };
            let share = (calls + self.launch_overhead.share(activity)).min(MAX_OVERHEAD_SHARE);
            let overhead = Nanos((span.0 as f64 * share) as u64);
            self.steps.push(Step::Run(span.since(overhead), activity));
            if overhead.0 > 0 {
                self.steps.push(Step::Record(overhead, activity));
            }
        }
    }

    /// Returns the overhead of recording the system calls of a slice, as a share of the activities
    /// that make many calls. Assumes that the calls are spread evenly over these.
    fn call_overhead_share_of(&self, slice: &SliceRow) -> f64 {
        let calls = slice.calls.unwrap_or(0);
        if calls == 0 || self.call_ns == 0.0 {
            return 0.0;
        }
        let pieces = self.activities.between(beginning(slice), slice.off);
        let with_calls = pieces.filter(|(_, activity)| makes_many_calls(*activity));
        let span: u64 = with_calls.map(|(span, _)| span.0).sum();
        (f64::from(calls) * self.call_ns / span.max(1) as f64).min(MAX_OVERHEAD_SHARE)
    }

    /// Adds the steps for the time off the CPU after a slice.
    fn leave(&mut self, slice: &SliceRow, token: Option<Token>, lost: Nanos) {
        let activity = self.activities.at(slice.off);
        match (slice.reason, token) {
            (LeftCpu::Created | LeftCpu::Preempted | LeftCpu::Ended, _) => {}
            (_, Some(token)) => self.steps.push(Step::Wait(token, activity, self.span_of(slice))),
            (_, None) => self.sleep(slice),
        }
        if let Some((from, _)) = runnable(slice).filter(|_| lost.0 > 0) {
            self.steps.push(Step::Lose(lost, self.activities.at(from)));
        }
    }

    /// Adds a sleep with the activity at its end, so that a sleep through the end of a child counts
    /// as late reaping.
    fn sleep(&mut self, slice: &SliceRow) {
        let span = self.span_of(slice);
        let activity = self.activities.at(Nanos((slice.off.0 + span.0).saturating_sub(1)));
        self.steps.push(Step::Sleep(span, activity, external_wait_of(slice)));
    }

    /// Returns how long a thread was blocked after a slice.
    fn span_of(&self, slice: &SliceRow) -> Nanos {
        let (start, end) = self.window;
        slice.wake_span.or(slice.off_span).unwrap_or_else(|| end.since(slice.off.max(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_are_sorted_by_thread_then_time_with_wakes_first() {
        let all = [
            (0, u64::MAX >> 2, ActionKind::Spawn(u32::MAX)),
            (1, 5, ActionKind::Wake(7)),
            (1, 5, ActionKind::Wake(u32::MAX)),
            (1, 5, ActionKind::Await(0)),
            (1, 5, ActionKind::Spawn(0)),
            (1, 6, ActionKind::Wake(1)),
            (u32::MAX, 0, ActionKind::Wake(0)),
        ];
        let actions = all.map(|(thread, at, kind)| Action::new(thread, Nanos(at), kind));
        assert!(actions.is_sorted());
        assert_eq!(actions.map(|action| (action.thread(), action.at().0, action.kind())), all);
    }
}
