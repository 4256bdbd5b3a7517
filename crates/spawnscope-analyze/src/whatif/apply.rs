//! Rewrites programs by adjustments: removes steps, scales durations, and inserts waits.

use std::collections::VecDeque;
use std::mem;

use super::adjustments::Adjustments;
use super::refill::{CacheState, uncertainty_of};
use super::supervision::Supervision;
use crate::external_wait::ExternalWait;
use crate::phases::Phase;
use crate::replay::activity::{Activity, ActivityKind, Stage};
use crate::replay::program::{Programs, Script};
use crate::replay::steps::{Step, Token};
use crate::timeline::ThreadIndex;
use spawnscope_data::event::Nanos;

/// The programs with all adjustments. Each is rewritten step by step while it is replayed: rewriting them all in advance, for several
/// changes in parallel, would take several times the memory of the recording.
pub(super) struct Edited<'e> {
    rewriter: Rewriter<'e>,
    /// By thread: its program, if it has started and not ended.
    live: Vec<Option<Box<Rewriting>>>,
    /// By thread: whether it has ended.
    has_ended: Vec<bool>,
    /// By how much work of a thread became shorter, if at all.
    savings: Vec<(ThreadIndex, Vec<f64>)>,
}

impl<'e> Edited<'e> {
    pub(super) fn new(programs: &'e Programs, adjustments: &'e Adjustments) -> Edited<'e> {
        let mut given = programs.given.clone();
        signal_tokens_of_removed(programs, adjustments, &mut given);
        let first_new = given.len();
        if adjustments.adds_waits() {
            given.resize(first_new + NewToken::COUNT * adjustments.waited_for.len(), false);
        }
        let threads = programs.launch_of.len();
        Edited {
            rewriter: Rewriter {
                programs,
                adjustments,
                first_new: first_new as Token,
                given,
            },
            live: (0..threads).map(|_| None).collect(),
            has_ended: vec![false; threads],
            savings: Vec::new(),
        }
    }

    /// Rewrites what has not been replayed. Returns the uncertainty of all programs together, in nanoseconds.
    pub(super) fn uncertainty(mut self) -> f64 {
        for thread in 0..self.live.len() as ThreadIndex {
            let launch = self.rewriter.programs.launch_of[thread as usize];
            if self.has_ended[thread as usize] || self.rewriter.adjustments.is_removed(launch) {
                continue;
            }
            let begun = self.live[thread as usize].take();
            let mut rewriting = begun.unwrap_or_else(|| self.rewriter.begin(thread));
            while self.rewriter.rewrite_next(&mut rewriting) {
                rewriting.written.clear();
            }
            self.note_savings(&mut rewriting);
        }
        // Threads end in any order, but the sum must not depend on it.
        self.savings.sort_by_key(|(thread, _)| *thread);
        let savings = self.savings.iter().flat_map(|(_, savings)| savings);
        self.rewriter.adjustments.uncertain + uncertainty_of(savings.sum())
    }

    fn note_savings(&mut self, of: &mut Rewriting) {
        let savings = of.cache.take_savings();
        if !savings.is_empty() {
            self.savings.push((of.thread, savings));
        }
    }
}

impl Script for &mut Edited<'_> {
    fn launch_of(&self) -> &[u32] {
        &self.rewriter.programs.launch_of
    }

    fn given(&self) -> &[bool] {
        &self.rewriter.given
    }

    fn roots(&self) -> &[ThreadIndex] {
        &self.rewriter.programs.roots
    }

    fn last(&self) -> ThreadIndex {
        self.rewriter.programs.last
    }

    fn begin(&mut self, thread: ThreadIndex) {
        self.live[thread as usize] = Some(self.rewriter.begin(thread));
    }

    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step> {
        let rewriting = self.live[thread as usize].as_mut()?;
        while rewriting.passed < index && rewriting.written.pop_front().is_some() {
            rewriting.passed += 1;
        }
        while rewriting.passed + rewriting.written.len() <= index {
            if !self.rewriter.rewrite_next(rewriting) {
                return None;
            }
        }
        rewriting.written.get(index - rewriting.passed).copied()
    }

    fn end(&mut self, thread: ThreadIndex) {
        self.has_ended[thread as usize] = true;
        if let Some(mut rewriting) = self.live[thread as usize].take() {
            self.note_savings(&mut rewriting);
        }
    }
}

/// Marks tokens of removed threads as signalled, so that no thread waits for them.
fn signal_tokens_of_removed(programs: &Programs, adjustments: &Adjustments, given: &mut [bool]) {
    for (thread, launch) in (0..).zip(&programs.launch_of) {
        if !adjustments.is_removed(*launch) {
            continue;
        }
        for step in programs.of(thread) {
            if let Step::Wake(token) = step {
                given[token as usize] = true;
            }
        }
    }
}

/// The purpose of a token that is not in the recording. Each launch may have one of each.
#[derive(Clone, Copy)]
enum NewToken {
    Exec,
    End,
}

impl NewToken {
    const COUNT: usize = 2;
}

struct Rewriter<'e> {
    programs: &'e Programs,
    adjustments: &'e Adjustments,
    /// By token: whether it is signalled from the start, because its signal came before the window or its thread is removed.
    given: Vec<bool>,
    /// The first token that is not in the recording.
    first_new: Token,
}

/// A thread whose program is being rewritten.
struct Rewriting {
    launch: u32,
    thread: ThreadIndex,
    /// How many steps have been rewritten.
    done: usize,
    is_removed: bool,
    supervision: Supervision,
    /// Whether the signal that the launch is past its exec is still due.
    awaits_exec: bool,
    /// Whether the signal of its end is still due.
    awaits_end: bool,
    /// The launch whose late reaping was rewritten last.
    late: Option<u32>,
    stays_awake: bool,
    /// The thread's work after removed pauses.
    cache: CacheState,
    /// Rewritten steps that are not yet replayed, and the number of those before them.
    written: VecDeque<Step>,
    passed: usize,
}

impl<'e> Rewriter<'e> {
    fn begin(&self, thread: ThreadIndex) -> Box<Rewriting> {
        let launch = self.programs.launch_of[thread as usize];
        let is_removed = self.adjustments.is_removed(launch);
        let is_first = thread == launch && !is_removed;
        Box::new(Rewriting {
            launch,
            thread,
            done: 0,
            is_removed,
            supervision: Supervision::of(self.programs.of(thread), launch),
            awaits_exec: is_first && self.adjustments.waited_for[launch as usize],
            awaits_end: is_first && self.adjustments.reaped_at_once[launch as usize],
            late: None,
            stays_awake: false,
            cache: CacheState::new(self.adjustments.refill),
            written: VecDeque::new(),
            passed: 0,
        })
    }

    /// Rewrites one step into any number of steps. Returns false after the last step.
    fn rewrite_next(&self, of: &mut Rewriting) -> bool {
        let step = self.programs.step(of.thread, of.done).filter(|_| !of.is_removed);
        of.done += 1;
        // A thread that did not sleep has no wake-up delay.
        if mem::take(&mut of.stays_awake) && matches!(step, Some(Step::Lose(..))) {
            return true;
        }
        if of.awaits_exec && step.is_none_or(|step| is_behind_exec(&step, of.launch)) {
            of.awaits_exec = false;
            of.written.push_back(Step::Wake(self.exec_token(of.launch)));
        }
        let before = of.written.len();
        match step {
            Some(step) => self.rewrite_step(step, of),
            None if mem::take(&mut of.awaits_end) => of.written.push_back(Step::Wake(self.end_token(of.launch))),
            None => return false,
        }
        of.stays_awake = matches!(step, Some(Step::Sleep(..) | Step::Wait(..))) && of.written.len() == before;
        true
    }

    fn rewrite_step(&self, step: Step, of: &mut Rewriting) {
        let is_own = of.supervision.is_own(step);
        let (written, cache) = (&mut of.written, &mut of.cache);
        let by = |span: Nanos, factor: f64| {
            // Most steps stay as they are.
            let stays = is_own || factor == 1.0;
            let span = if stays {
                span
            } else {
                Nanos((span.0 as f64 * factor).round() as u64)
            };
            (span.0 > 0).then_some(span)
        };
        let scaled = |span: Nanos, activity: Activity| by(span, self.adjustments.factor(activity));
        match step {
            Step::Run(span, activity) => {
                let span = cache.shorten(span);
                written.extend(scaled(span, activity).map(|span| Step::Run(span, activity)));
            }
            Step::Record(span, activity) => {
                written.extend(scaled(span, activity).map(|span| Step::Record(span, activity)));
            }
            Step::Lose(span, activity) => {
                let span = by(span, self.adjustments.factor_of_queue(activity));
                written.extend(span.map(|span| Step::Lose(span, activity)));
            }
            Step::Sleep(_, activity, ExternalWait::Timer) if self.is_late_reaping(activity) => {
                // The first sleep becomes a wait for the end of the child; the others are dropped.
                if of.late.replace(activity.launch) != Some(activity.launch) {
                    written.push_back(Step::Wait(self.end_token(activity.launch), activity, Nanos(0)));
                }
            }
            Step::Sleep(span, _, ExternalWait::Scanner(_)) if self.adjustments.no_scan => cache.remove_pause(span),
            Step::Wait(token, _, span) if self.given[token as usize] => cache.remove_pause(span),
            Step::Sleep(span, activity, external_wait) => match by(span, self.adjustments.factor_of_sleep(activity)) {
                Some(rest) => {
                    cache.keep_pause();
                    written.push_back(Step::Sleep(rest, activity, external_wait));
                }
                None => cache.remove_pause(span),
            },
            Step::Spawn(child) => self.spawn(child, written),
            Step::Wait(..) => {
                cache.keep_pause();
                written.push_back(step);
            }
            Step::Wake(_) => written.push_back(step),
        }
    }

    fn spawn(&self, child: ThreadIndex, written: &mut VecDeque<Step>) {
        let launch = self.programs.launch_of[child as usize];
        if self.adjustments.is_removed(launch) {
            return;
        }
        written.push_back(Step::Spawn(child));
        if child == launch && self.adjustments.waited_for[launch as usize] {
            let stage = Stage::new(Phase::Create, 0);
            written.push_back(Step::Wait(
                self.exec_token(launch),
                Activity { launch, stage },
                Nanos(0),
            ));
        }
    }

    fn is_late_reaping(&self, activity: Activity) -> bool {
        let is_reaped =
            self.adjustments.reaped_at_once[activity.launch as usize] && !self.adjustments.is_removed(activity.launch);
        activity.is(Phase::Reap) && is_reaped
    }

    fn exec_token(&self, launch: u32) -> Token {
        self.new_token(launch, NewToken::Exec)
    }

    fn end_token(&self, launch: u32) -> Token {
        self.new_token(launch, NewToken::End)
    }

    fn new_token(&self, launch: u32, purpose: NewToken) -> Token {
        self.first_new + launch * NewToken::COUNT as Token + purpose as Token
    }
}

/// Whether a step shows that the launch is past its first exec.
fn is_behind_exec(step: &Step, launch: u32) -> bool {
    let activity = match step {
        Step::Run(_, activity)
        | Step::Record(_, activity)
        | Step::Lose(_, activity)
        | Step::Wait(_, activity, _)
        | Step::Sleep(_, activity, _) => *activity,
        Step::Wake(_) | Step::Spawn(_) => return false,
    };
    let is_behind = matches!(
        activity.stage.kind(),
        ActivityKind::Phase(Phase::Load | Phase::Run | Phase::Teardown)
    );
    activity.launch == launch && is_behind && !activity.stage.is_before_execs()
}
