//! What threads do to each other, at instants of the recording: `write` puts these actions between
//! the steps of the programs.

use std::cmp::Reverse;

use super::activity::Activity;
use super::reaps::{self, Reap};
use super::steps::{Step, Token};
use crate::model::timeline::{ThreadIndex, Timelines, woken_at};
use crate::model::tree::Forest;
use spawnscope_data::event::Nanos;

/// Maximum unused capacity of the list of actions, in entries: 4 MiB.
const MAX_SPARE: usize = 1 << 18;

/// An action of a thread that involves another thread, at an instant of the recording. It is packed
/// into one number that sorts by thread, by time, and by the order within one instant, because
/// there are several per launch and all of them must be sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Action(u128);

/// The kinds of actions, in the order of those at one instant. All but the last have a number: a
/// token or a thread.
#[derive(Clone, Copy)]
enum ActionKind {
    Wake,
    /// Continues only when the token has been signalled.
    Await,
    /// Goes on with `Await` of this token, if it has been signalled.
    Check,
    Spawn,
    Kill,
    Killed,
}

impl Action {
    const NUMBER_BITS: u32 = 32;
    /// Three bits above the number of the token or thread distinguish the kinds.
    const AT_BIT: u32 = Action::NUMBER_BITS + 3;
    /// Enough for instants of seventy years.
    const AT_BITS: u32 = 61;
    const THREAD_BIT: u32 = Action::AT_BIT + Action::AT_BITS;

    fn new(thread: ThreadIndex, at: Nanos, kind: ActionKind, number: u32) -> Action {
        let at = u128::from(at.0.min(u64::MAX >> (u64::BITS - Action::AT_BITS)));
        Action(
            u128::from(thread) << Action::THREAD_BIT
                | at << Action::AT_BIT
                | (kind as u128) << Action::NUMBER_BITS
                | u128::from(number),
        )
    }

    fn thread(self) -> ThreadIndex {
        (self.0 >> Action::THREAD_BIT) as ThreadIndex
    }

    pub(super) fn at(self) -> Nanos {
        Nanos((self.0 >> Action::AT_BIT) as u64 & (u64::MAX >> (u64::BITS - Action::AT_BITS)))
    }

    /// Returns the action as a step of its thread, which has this activity at that instant.
    pub(super) fn step(self, activity: impl FnOnce() -> Activity) -> Step {
        let number = self.0 as u32;
        match self.0 >> Action::NUMBER_BITS & 7 {
            0 => Step::Wake(number),
            1 => Step::Wait(number, activity(), Nanos(0)),
            2 => Step::Check(number),
            3 => Step::Spawn(number),
            4 => Step::Kill(number),
            _ => Step::Killed,
        }
    }
}

/// Returns the slice indices of the recorded waits, which have the first tokens, the number of all
/// tokens, and all actions in descending order.
pub(super) fn collect_actions(
    forest: &Forest<'_>,
    timelines: &Timelines,
    window: (Nanos, Nanos),
) -> (Vec<u32>, Token, Vec<Action>) {
    let (waits, mut actions) = collect_wakes(timelines, window);
    let mut count = waits.len() as Token;
    for dependency in reaps::without_wait(forest, timelines, window) {
        let Reap { parent, child, zombie, reaped } = dependency;
        actions.push(Action::new(child, zombie, ActionKind::Wake, count));
        actions.push(Action::new(parent, reaped, ActionKind::Await, count));
        count += 1;
    }
    count = collect_polls(timelines, window, count, &mut actions);
    collect_kills(timelines, window, &mut actions);
    collect_spawns(timelines, &mut actions);
    actions.sort_unstable_by_key(|action| Reverse(*action));
    (waits, count, actions)
}

/// Removes the actions of a thread, which are the last in `actions`. Frees their memory, since the
/// programs grow at the same time.
pub(super) fn take_actions_of(actions: &mut Vec<Action>, thread: ThreadIndex) -> Vec<Action> {
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
            let woken = slice.is_open_wait().then_some(end).or(woken_at(&slice));
            let Some(woken) = woken.filter(|woken| *woken > start) else { continue };
            let round = timelines.rounds.get(&(thread, slice.off));
            let cause = timelines.cause(thread, &slice).map(|cause| (cause, woken));
            let Some((waker, woken)) = round.map(|round| (round.worker, round.until)).or(cause) else {
                continue;
            };
            actions.push(Action::new(waker, woken, ActionKind::Wake, waits.len() as Token));
            waits.push(index);
        }
    }
    (waits, actions)
}

/// Adds the actions of loops that poll: each loop has a token, which the awaited thread signals.
/// Returns the number of tokens, which was `count` before.
fn collect_polls(
    timelines: &Timelines,
    (start, end): (Nanos, Nanos),
    count: Token,
    actions: &mut Vec<Action>,
) -> Token {
    let polls = timelines.polls.all().into_iter().filter(|each| start < each.at && each.end <= end);
    let tokens = polls.zip(count..).map(|(each, token)| {
        actions.push(Action::new(each.awaited, each.at, ActionKind::Wake, token));
        actions.push(Action::new(each.thread, each.end, ActionKind::Await, token));
        let checks = each.checks.iter().filter(|at| **at > start);
        actions.extend(checks.map(|at| Action::new(each.thread, *at, ActionKind::Check, token)));
    });
    count + tokens.count() as Token
}

fn collect_kills(timelines: &Timelines, (start, end): (Nanos, Nanos), actions: &mut Vec<Action>) {
    for kill in timelines.kills.iter().filter(|kill| start < kill.at && kill.at < end) {
        actions.push(Action::new(kill.by, kill.at, ActionKind::Kill, kill.killed));
        actions.push(Action::new(kill.killed, kill.at, ActionKind::Killed, 0));
    }
}

fn collect_spawns(timelines: &Timelines, actions: &mut Vec<Action>) {
    actions.extend((0..).zip(&timelines.threads).filter_map(|(child, each)| {
        Some(Action::new(each.creator.get()?, each.created.get()?, ActionKind::Spawn, child))
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::replay::activity::Stage;

    #[test]
    fn actions_are_sorted_by_thread_then_time_with_wakes_first() {
        let activity = Activity { launch: 0, stage: Stage::default() };
        let all = [
            (0, u64::MAX >> 3, ActionKind::Spawn, Step::Spawn(u32::MAX)),
            (1, 5, ActionKind::Wake, Step::Wake(7)),
            (1, 5, ActionKind::Wake, Step::Wake(u32::MAX)),
            (1, 5, ActionKind::Await, Step::Wait(0, activity, Nanos(0))),
            (1, 5, ActionKind::Check, Step::Check(0)),
            (1, 5, ActionKind::Spawn, Step::Spawn(0)),
            (1, 5, ActionKind::Kill, Step::Kill(0)),
            (1, 5, ActionKind::Killed, Step::Killed),
            (1, 6, ActionKind::Wake, Step::Wake(1)),
            (u32::MAX, 0, ActionKind::Wake, Step::Wake(0)),
        ];
        let actions = all.map(|(thread, at, kind, step)| {
            let number = match step {
                Step::Wake(number) | Step::Spawn(number) => number,
                _ => 0,
            };
            Action::new(thread, Nanos(at), kind, number)
        });
        assert!(actions.is_sorted());
        let parts = actions.map(|action| (action.thread(), action.at().0, action.step(|| activity)));
        assert_eq!(parts, all.map(|(thread, at, _, step)| (thread, at, step)));
    }
}
