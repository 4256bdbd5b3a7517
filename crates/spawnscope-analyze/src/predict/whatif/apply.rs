//! Applies adjustments to programs: removes steps, scales durations, and inserts waits.

use std::mem;

use super::adjustments::Adjustments;
use super::refill::{CacheState, UNCERTAINTY};
use crate::model::external_wait::ExternalWait;
use crate::model::phases::Phase;
use crate::model::timeline::ThreadIndex;
use crate::predict::replay::activity::{Activity, ActivityKind, Stage};
use crate::predict::replay::machine::TIME_SLICE;
use crate::predict::replay::program::{Programs, Script};
use crate::predict::replay::steps::{Step, Token};
use crate::predict::replay::supervision::Supervision;
use spawnscope_data::event::Nanos;

/// Number of steps that are rewritten at once.
const MAX_AT_ONCE: usize = 32;
/// The index of the program of a thread that has not started, or whose steps do not change.
const UNCHANGED: u32 = u32::MAX;
/// The index of the program of a thread that has ended.
const ENDED: u32 = u32::MAX - 1;

/// The programs with all adjustments. Each program is rewritten part by part while it is replayed.
/// Rewriting all programs in advance, for several changes in parallel, would need several times the
/// memory of the recording.
pub(super) struct EditedPrograms<'e> {
    rewriter: Rewriter<'e>,
    /// For each thread, the index of its rewritten program, or one of two numbers that no program
    /// has.
    running: Vec<u32>,
    rewritten: Vec<RewriteState<'e>>,
    /// The programs in `rewritten` of threads that have ended, for the next threads: their memory
    /// is used again.
    unused: Vec<u32>,
    /// By how many nanoseconds the work of a thread became shorter because pauses were removed.
    savings: Vec<(ThreadIndex, f64)>,
}

impl<'e> EditedPrograms<'e> {
    /// Edits the programs. If their replay is not followed, steps that only use a CPU become one,
    /// if a time slice suffices for them.
    pub(super) fn new(programs: &'e Programs, adjustments: &'e Adjustments, is_followed: bool) -> EditedPrograms<'e> {
        let mut signalled_at_start = programs.signalled_at_start.clone();
        signal_tokens_of_removed(programs, adjustments, &mut signalled_at_start);
        if adjustments.no_scan {
            programs.scanned.iter().for_each(|token| signalled_at_start[*token as usize] = true);
        }
        let first_new = signalled_at_start.len();
        if adjustments.adds_waits() {
            signalled_at_start.resize(first_new + NewToken::COUNT * adjustments.waits_for_exec.len(), false);
        }
        let threads = programs.launch_of.len();
        EditedPrograms {
            rewriter: Rewriter {
                programs,
                adjustments,
                is_followed,
                first_new: first_new as Token,
                signalled_at_start,
            },
            running: vec![UNCHANGED; threads],
            rewritten: Vec::new(),
            unused: Vec::new(),
            savings: Vec::new(),
        }
    }

    /// Rewrites the steps that have not been replayed. Returns the uncertainty of all programs
    /// together, in nanoseconds.
    pub(super) fn uncertainty(mut self) -> f64 {
        for thread in 0..self.running.len() as ThreadIndex {
            let launch = self.rewriter.programs.launch_of[thread as usize];
            if self.running[thread as usize] == ENDED || self.rewriter.adjustments.is_removed(launch) {
                continue;
            }
            if self.running[thread as usize] == UNCHANGED {
                self.start(thread);
            }
            let Some(rewriting) = self.rewritten.get_mut(self.running[thread as usize] as usize) else { continue };
            while self.rewriter.rewrite_more(rewriting) {}
            self.finish(thread);
        }
        // Threads end in any order, but the sum must not depend on it.
        self.savings.sort_by_key(|(thread, _)| *thread);
        let savings = self.savings.iter().map(|(_, saved)| saved);
        self.rewriter.adjustments.uncertainty_ns + UNCERTAINTY * savings.sum::<f64>()
    }

    fn start(&mut self, thread: ThreadIndex) {
        let Rewriter { programs, adjustments, .. } = self.rewriter;
        if programs.is_independent[thread as usize] && adjustments.keeps(programs.launch_of[thread as usize]) {
            return;
        }
        let begun = self.rewriter.begin(thread);
        self.running[thread as usize] = self.unused.pop().unwrap_or(self.rewritten.len() as u32);
        match self.rewritten.get_mut(self.running[thread as usize] as usize) {
            Some(unused) => *unused = RewriteState { written: mem::take(&mut unused.written), ..begun },
            None => self.rewritten.push(begun),
        }
    }

    fn finish(&mut self, thread: ThreadIndex) {
        let index = mem::replace(&mut self.running[thread as usize], ENDED);
        let Some(rewriting) = self.rewritten.get_mut(index as usize) else { return };
        if rewriting.cache.saved > 0.0 {
            self.savings.push((thread, rewriting.cache.saved));
        }
        rewriting.written.clear();
        self.unused.push(index);
    }
}

impl Script for &mut EditedPrograms<'_> {
    fn programs(&self) -> &Programs {
        self.rewriter.programs
    }

    fn signalled_at_start(&self) -> &[bool] {
        &self.rewriter.signalled_at_start
    }

    fn begin(&mut self, thread: ThreadIndex) {
        self.start(thread);
    }

    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step> {
        let running = self.running[thread as usize];
        let Some(rewriting) = self.rewritten.get_mut(running as usize) else {
            return self.rewriter.programs.step(thread, index).filter(|_| running != ENDED);
        };
        while rewriting.steps_passed + rewriting.written.len() <= index {
            if !self.rewriter.rewrite_more(rewriting) {
                return None;
            }
        }
        rewriting.written.get(index - rewriting.steps_passed).copied()
    }

    fn cpu_from(&mut self, thread: ThreadIndex, index: usize, limit: Nanos, recording: f64) -> (Nanos, usize) {
        // The steps of a rewritten program are joined when they are written.
        match self.running[thread as usize] {
            UNCHANGED | ENDED => self.rewriter.programs.cpu_from(thread, index, limit, recording),
            _ => (Nanos(0), 0),
        }
    }

    fn end(&mut self, thread: ThreadIndex) {
        self.finish(thread);
    }
}

/// Marks tokens as signalled if removed threads would signal them, so that no thread waits for
/// them.
fn signal_tokens_of_removed(programs: &Programs, adjustments: &Adjustments, signalled_at_start: &mut [bool]) {
    for (thread, launch) in (0..).zip(&programs.launch_of) {
        if !adjustments.is_removed(*launch) {
            continue;
        }
        for step in programs.steps_of(thread) {
            if let Step::Wake(token) = step {
                signalled_at_start[token as usize] = true;
            }
        }
    }
}

/// The event that a token signals, for tokens that are not in the recording. A launch may have one
/// token for each event.
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
    /// For each token, whether it is signalled from the start, because its signal came before the
    /// window or the signalling thread is removed.
    signalled_at_start: Vec<bool>,
    /// The first token that is not in the recording.
    first_new: Token,
    is_followed: bool,
}

struct RewriteState<'e> {
    launch: u32,
    thread: ThreadIndex,
    steps_done: usize,
    is_removed: bool,
    /// Work of the thread's own. `None` if it only supervises launches.
    supervision: Option<&'e Supervision>,
    /// Whether the thread must still signal that the launch is past its exec.
    awaits_exec: bool,
    /// Whether the thread must still signal the end of the launch.
    awaits_end: bool,
    /// The launch whose late reaping was rewritten last.
    last_late_reaping: Option<u32>,
    /// Whether the wait or sleep before the next step was removed.
    stays_awake: bool,
    /// How removed pauses shorten the work after them.
    cache: CacheState,
    /// Rewritten steps that may still be requested.
    written: Vec<Step>,
    /// Number of rewritten steps before those in `written`.
    steps_passed: usize,
    /// Number of steps in `written` that may have been requested already.
    unchanging: usize,
    /// Whether steps that only use a CPU may become one.
    joins_steps: bool,
}

impl RewriteState<'_> {
    /// Adds CPU time.
    fn push_run(&mut self, span: Nanos, activity: Activity) {
        if self.joins_steps
            && self.written.len() > self.unchanging
            && let Some(Step::Run(last, Nanos(0), _)) = self.written.last_mut()
            && last.0 + span.0 <= TIME_SLICE.0
        {
            last.0 += span.0;
        } else {
            self.written.push(Step::Run(span, Nanos(0), activity));
        }
    }
}

impl<'e> Rewriter<'e> {
    fn begin(&self, thread: ThreadIndex) -> RewriteState<'e> {
        let launch = self.programs.launch_of[thread as usize];
        let is_removed = self.adjustments.is_removed(launch);
        let is_first = thread == launch && !is_removed;
        RewriteState {
            launch,
            thread,
            steps_done: 0,
            is_removed,
            supervision: self.programs.supervisions.get(&thread),
            awaits_exec: is_first && self.adjustments.waits_for_exec[launch as usize],
            awaits_end: is_first && self.adjustments.reaped_at_once[launch as usize],
            last_late_reaping: None,
            stays_awake: false,
            cache: CacheState::new(self.adjustments.refill),
            written: Vec::new(),
            steps_passed: 0,
            unchanging: 0,
            joins_steps: !self.is_followed && !self.programs.is_mortal(thread),
        }
    }

    /// Rewrites the next part of a program. Keeps the last step of the part before, which may be
    /// requested again. Returns `false` if there is nothing left.
    fn rewrite_more(&self, rewriting: &mut RewriteState<'_>) -> bool {
        let passed = rewriting.written.len().saturating_sub(1);
        rewriting.written.drain(..passed);
        rewriting.steps_passed += passed;
        rewriting.unchanging = rewriting.written.len();
        let goes_on = (0..MAX_AT_ONCE).all(|_| self.rewrite_next(rewriting));
        goes_on || rewriting.written.len() > rewriting.unchanging
    }

    /// Rewrites one step into any number of steps. Returns `false` after the last step.
    fn rewrite_next(&self, rewriting: &mut RewriteState<'_>) -> bool {
        let step = self.programs.step(rewriting.thread, rewriting.steps_done).filter(|_| !rewriting.is_removed);
        rewriting.steps_done += 1;
        // A thread that did not block has no wake-up delay.
        if mem::take(&mut rewriting.stays_awake) && matches!(step, Some(Step::Lose(..))) {
            return true;
        }
        if rewriting.awaits_exec && step.is_none_or(|step| is_after_exec(&step, rewriting.launch)) {
            rewriting.awaits_exec = false;
            rewriting.written.push(Step::Wake(self.new_token(rewriting.launch, NewToken::Exec)));
        }
        let before = rewriting.written.len();
        match step {
            Some(step) => self.rewrite_step(step, rewriting),
            None if mem::take(&mut rewriting.awaits_end) => {
                rewriting.written.push(Step::Wake(self.new_token(rewriting.launch, NewToken::End)));
            }
            None => return false,
        }
        rewriting.stays_awake = matches!(step, Some(Step::Sleep(..) | Step::Wait(..) | Step::TimedWait(..)))
            && rewriting.written.len() == before;
        true
    }

    fn rewrite_step(&self, step: Step, rewriting: &mut RewriteState<'_>) {
        let is_own = rewriting.supervision.is_some_and(|supervision| supervision.is_own(step));
        let factor = if is_own { 1.0 } else { self.remaining_share(step) };
        let RewriteState { written, cache, .. } = rewriting;
        match step {
            Step::Run(span, overhead, activity) => {
                let span = scale(cache.shorten(span), factor);
                span.into_iter().for_each(|span| rewriting.push_run(span, activity));
                // Without a recorder, it takes no time.
                let overhead = scale(overhead, factor).filter(|_| self.is_followed);
                rewriting.written.extend(overhead.map(|overhead| Step::Run(Nanos(0), overhead, activity)));
            }
            Step::Lose(span, activity) => {
                written.extend(scale(span, factor).map(|span| Step::Lose(span, activity)));
            }
            Step::Sleep(_, activity, ExternalWait::Timer) if self.is_late_reaping(activity) => {
                // The first sleep becomes a wait for the end of the child; the others are dropped.
                if rewriting.last_late_reaping.replace(activity.launch) != Some(activity.launch) {
                    written.push(Step::Wait(self.new_token(activity.launch, NewToken::End), activity, Nanos(0)));
                }
            }
            Step::Sleep(span, _, ExternalWait::Scanner(_)) if self.adjustments.no_scan => cache.remove_pause(span),
            Step::Wait(token, _, span) | Step::TimedWait(token, _, span) if self.is_removed_wait(token, span) => {
                cache.remove_pause(span);
            }
            Step::Sleep(span, activity, external_wait) => match scale(span, factor) {
                Some(rest) => {
                    cache.keep_pause();
                    written.push(Step::Sleep(rest, activity, external_wait));
                }
                None => cache.remove_pause(span),
            },
            Step::Spawn(child) => self.spawn(child, written),
            Step::Wait(..) | Step::TimedWait(..) | Step::Round(..) => {
                cache.keep_pause();
                written.push(step);
            }
            Step::Check(_) | Step::Wake(_) | Step::Kill(_) | Step::Killed => written.push(step),
        }
    }

    fn remaining_share(&self, step: Step) -> f64 {
        match step {
            Step::Run(_, _, activity) => self.adjustments.factor(activity),
            Step::Lose(span, activity) => self.adjustments.factor_of_queue(span, activity),
            Step::Sleep(_, activity, _) => self.adjustments.factor_of_wait(activity, 1),
            _ => 1.0,
        }
    }

    /// Whether a wait is removed. A wait that was none remains, because a loop that polls goes on
    /// with it.
    fn is_removed_wait(&self, token: Token, span: Nanos) -> bool {
        span > Nanos(0) && self.signalled_at_start[token as usize]
    }

    fn spawn(&self, child: ThreadIndex, written: &mut Vec<Step>) {
        let launch = self.programs.launch_of[child as usize];
        if self.adjustments.is_removed(launch) {
            return;
        }
        written.push(Step::Spawn(child));
        if child == launch && self.adjustments.waits_for_exec[launch as usize] {
            let stage = Stage::new(Phase::Create, 0);
            written.push(Step::Wait(self.new_token(launch, NewToken::Exec), Activity { launch, stage }, Nanos(0)));
        }
    }

    fn is_late_reaping(&self, activity: Activity) -> bool {
        let is_reaped =
            self.adjustments.reaped_at_once[activity.launch as usize] && !self.adjustments.is_removed(activity.launch);
        activity.is(Phase::Reap) && is_reaped
    }

    fn new_token(&self, launch: u32, purpose: NewToken) -> Token {
        self.first_new + launch * NewToken::COUNT as Token + purpose as Token
    }
}

/// Scales a span. `None` if nothing remains.
fn scale(span: Nanos, factor: f64) -> Option<Nanos> {
    // Most steps do not change.
    let span = if factor == 1.0 { span } else { Nanos((span.0 as f64 * factor).round() as u64) };
    (span.0 > 0).then_some(span)
}

fn is_after_exec(step: &Step, launch: u32) -> bool {
    let Some(activity) = step.activity() else { return false };
    let is_after = matches!(activity.stage.kind(), ActivityKind::Phase(Phase::Load | Phase::Run | Phase::Teardown));
    activity.launch == launch && is_after && !activity.stage.is_before_execs()
}
