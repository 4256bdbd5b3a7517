//! Turns slices into programs. Slices contain the time of every activity; programs contain only
//! steps and their durations.

use std::ops::Range;

use super::Parameters;
use super::actions::{Action, collect_actions, take_actions_of};
use super::activity::{Activities, Activity, ActivityKind, Stage};
use super::contention::Contention;
use super::launch_overhead::LaunchOverhead;
use super::program::Programs;
use super::steps::{Step, Steps, Token};
use crate::model::external_wait::{external_wait_of, is_by_collector};
use crate::model::phases::{MAX_OVERHEAD_SHARE, Phase};
use crate::model::slices::ThreadSlices;
use crate::model::timeline::{ThreadIndex, Timelines, beginning, last_launch, last_thread, runnable};
use crate::model::tree::Forest;
use spawnscope_data::event::{LeftCpu, Nanos, ObjectKind};
use spawnscope_data::parallel;
use spawnscope_data::rows::{ObjectRef, Origin, SliceRow};

/// More steps than there are for each slice and action, on average. Reserved memory costs nothing
/// until it is used, and growing would copy the steps.
const STEPS_OF_EACH: usize = 2;

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
    let mut programs = without_steps(forest, timelines, root, window, count);
    programs.reserve(STEPS_OF_EACH * (timelines.slice_count() + actions.len()));
    (programs.cpu_waits, programs.by_recorder) = (contention.waits, contention.by_recorder);
    let mut tokens = 0..0;
    for thread in 0..timelines.threads.len() as ThreadIndex {
        let slices = timelines.slices(thread);
        let thread_waits = waits[tokens.end..].iter().take_while(|index| slices.indices().contains(index));
        tokens = tokens.end..tokens.end + thread_waits.count();
        programs.scanned.extend(scans(slices, &waits, tokens.clone()));
        programs.add(|steps, is_mortal| {
            Writer {
                is_mortal,
                timelines,
                actions: take_actions_of(&mut actions, thread),
                steps,
                launch: timelines.launch_of(thread),
                waits: &waits[tokens.clone()],
                first_token: tokens.start as Token,
                thread,
                window,
                contention: &contention,
                call_overhead: CallOverhead::default(),
                launch_overhead: LaunchOverhead { forest, parameters },
                ended: end_of_process(forest, timelines, thread),
                activities: Activities::new(forest, timelines, thread, parameters.fault_ns),
            }
            .write(slices);
        });
    }
    programs
}

fn without_steps(
    forest: &Forest<'_>,
    timelines: &Timelines,
    root: u32,
    (start, end): (Nanos, Nanos),
    token_count: Token,
) -> Programs {
    let launch_of = timelines.threads.iter().map(|thread| thread.launch).collect();
    let last = last_thread(timelines, last_launch(forest, root, end));
    let mut programs = Programs::new(launch_of, token_count, roots(forest, timelines, root, start), last);
    programs.mortal = timelines.kills.iter().map(|kill| kill.killed).collect();
    programs
}

/// Returns the tokens of a thread's waits for a permission scanner.
fn scans(slices: ThreadSlices<'_>, waits: &[u32], tokens: Range<usize>) -> impl Iterator<Item = Token> {
    let is_scan = move |token: &usize| {
        let slice = slices.get((waits[*token] - slices.indices().start) as usize);
        slice.and_then(|slice| slice.object).map(ObjectRef::kind) == Some(ObjectKind::Permission)
    };
    tokens.filter(is_scan).map(|token| token as Token)
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

/// Overhead of recording system calls, as shares of the setup of a process and of its other
/// activities. The creation and the end of a process are one long call each, so they have none.
#[derive(Clone, Copy, Default)]
struct CallOverhead {
    setup: f64,
    rest: f64,
}

impl CallOverhead {
    fn share(&self, activity: Activity) -> f64 {
        match activity.stage.kind() {
            ActivityKind::Phase(Phase::Create | Phase::Teardown) => 0.0,
            ActivityKind::Phase(Phase::Setup) => self.setup,
            _ => self.rest,
        }
    }
}

/// Number of children before an instant that are checked for one that is alive then.
const MAX_BESIDE: usize = 8;

struct Writer<'w> {
    timelines: &'w Timelines,
    /// The remaining actions, in descending order.
    actions: Vec<Action>,
    steps: &'w mut Steps,
    /// The launch that the thread belongs to.
    launch: u32,
    /// The slice indices of this thread's recorded waits.
    waits: &'w [u32],
    /// The token of the first of them.
    first_token: Token,
    thread: ThreadIndex,
    window: (Nanos, Nanos),
    contention: &'w Contention,
    /// Overhead of recording system calls in the current stretch on the CPU.
    call_overhead: CallOverhead,
    launch_overhead: LaunchOverhead<'w>,
    /// When the process ended. `None` if it was alive at the end of the recording.
    ended: Option<Nanos>,
    activities: Activities,
    /// Whether the exit of its process kills the thread. If it sleeps again and again meanwhile,
    /// time ends its sleeps: the fewer, the sooner the process ends.
    is_mortal: bool,
}

impl Writer<'_> {
    fn write(mut self, slices: ThreadSlices<'_>) {
        let (start, end) = self.window;
        let mut returned = None;
        for (index, slice) in slices.indices().zip(slices.iter()) {
            returned = slice.off_span.map(|span| Nanos(slice.off.0 + span.0));
            let token = self.token_of(index);
            if slice.off <= start && slice.reason != LeftCpu::Created {
                // A daemon that sleeps when the window begins starts to work at its first request.
                if token.is_some() {
                    self.leave(index, &slice, Nanos(0));
                }
                continue;
            }
            self.call_overhead = self.call_overhead_of(&slice);
            self.run(beginning(&slice).max(start), slice.off.min(end));
            self.leave(index, &slice, self.contention.lost(index));
        }
        self.call_overhead = CallOverhead::default();
        // If the process has ended, a last slice was lost, and the thread was on a CPU until then.
        // If it is still alive, what it did is unknown: nothing is added, and the replayed wall is
        // too short.
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
            let step = action.step(|| self.activities.at(action.at()));
            self.push(step);
        }
        at
    }

    fn push(&mut self, step: Step) {
        self.steps.push(step, self.launch);
    }

    fn push_run(&mut self, from: Nanos, to: Nanos) {
        if from >= to {
            return;
        }
        for (span, activity) in self.activities.between(from, to) {
            let share =
                (self.call_overhead.share(activity) + self.launch_overhead.share(activity)).min(MAX_OVERHEAD_SHARE);
            let overhead = Nanos((span.0 as f64 * share) as u64);
            self.steps.push(Step::Run(span.since(overhead), overhead, activity), self.launch);
        }
    }

    /// Returns the overhead of recording the system calls of a slice. Assumes that they are spread
    /// evenly over the activities that make many calls, but that closes are part of the setup.
    fn call_overhead_of(&self, slice: &SliceRow) -> CallOverhead {
        let calls = f64::from(slice.calls.unwrap_or(0));
        let LaunchOverhead { forest, parameters } = self.launch_overhead;
        let (mut setup, mut rest) = (0.0, 0.0);
        for (span, activity) in self.activities.between(beginning(slice), slice.off) {
            match activity.stage.kind() {
                ActivityKind::Phase(Phase::Create | Phase::Teardown) => {}
                ActivityKind::Phase(Phase::Setup) => setup += span.0 as f64,
                _ => rest += span.0 as f64,
            }
        }
        let closes = forest.launches[self.launch as usize].counts.setup_closes.unwrap_or(0);
        let in_setup = (calls * setup / (setup + rest).max(1.0)).max(f64::from(closes).min(calls));
        let in_setup = if setup > 0.0 { in_setup } else { 0.0 };
        let share = |calls: f64, span: f64| (calls * parameters.call_ns / span.max(1.0)).min(MAX_OVERHEAD_SHARE);
        CallOverhead { setup: share(in_setup, setup), rest: share(calls - in_setup, rest) }
    }

    /// Adds the steps for the time off the CPU after a slice.
    fn leave(&mut self, index: u32, slice: &SliceRow, lost: Nanos) {
        let (activity, span) = (self.activities.at(slice.off), self.span_of(slice));
        if is_by_collector(slice) {
            // It keeps no CPU from other threads.
            return self.sleep(slice);
        }
        let repeated = self.timelines.repeated_waits.get(&index).and_then(|each| self.token_of(each.last));
        match (slice.reason, repeated, self.token_of(index)) {
            (LeftCpu::Created | LeftCpu::Preempted | LeftCpu::Ended, ..) => {}
            (_, Some(token), _) => self.push(Step::TimedWait(token, activity, span)),
            (_, None, Some(token)) => self.push(Step::Wait(token, activity, span)),
            (_, None, None) => self.sleep(slice),
        }
        if let Some(round) = self.timelines.rounds.get(&(self.thread, slice.off)) {
            (0..round.count).for_each(|_| self.push(Step::Round(round.polling, activity)));
        }
        if let Some((from, _)) = runnable(slice).filter(|_| lost.0 > 0) {
            // As long as there are children, they are the most likely cause: they wake the thread,
            // often on the CPU that they use themselves.
            self.push(Step::Lose(lost, self.beside(from).unwrap_or_else(|| self.activities.at(from))));
        }
    }

    fn token_of(&self, slice: u32) -> Option<Token> {
        let wait = self.waits.binary_search(&slice).ok();
        wait.map(|wait| self.first_token + wait as Token)
    }

    /// Adds a sleep with the activity at its end, so that a sleep through the end of a child counts
    /// as late reaping.
    fn sleep(&mut self, slice: &SliceRow) {
        let span = self.span_of(slice);
        let end = Nanos((slice.off.0 + span.0).saturating_sub(1));
        let beside = self.beside(end).filter(|_| self.is_mortal);
        let activity = beside.unwrap_or_else(|| self.activities.at(end));
        self.push(Step::Sleep(span, activity, external_wait_of(slice)));
    }

    /// Returns the supervision of a child of the process that is alive at an instant, for what the
    /// thread does only as long as there are children. Where several are, one of them stands for
    /// all.
    fn beside(&self, at: Nanos) -> Option<Activity> {
        let forest = self.launch_overhead.forest;
        let children = forest.children(self.launch as usize);
        let born = children.partition_point(|child| forest.launches[*child].birth().is_some_and(|birth| birth <= at));
        let is_alive = |child: &&usize| forest.launches[**child].end().is_none_or(|end| at < end);
        let child = children[born.saturating_sub(MAX_BESIDE)..born].iter().rev().find(is_alive)?;
        Some(Activity { launch: *child as u32, stage: Stage::SUPERVISION })
    }

    /// Returns how long a thread was blocked after a slice.
    fn span_of(&self, slice: &SliceRow) -> Nanos {
        let (start, end) = self.window;
        slice.wake_span.or(slice.off_span).unwrap_or_else(|| end.since(slice.off.max(start)))
    }
}
