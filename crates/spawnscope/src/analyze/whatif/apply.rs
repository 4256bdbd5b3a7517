//! Rewrites programs by edits: what is gone is left out, what gets shorter is scaled, and new waits come in.

use std::collections::{HashMap, VecDeque};
use std::mem;

use super::attending::Attending;
use super::edits::Edits;
use super::refill::Cold;
use crate::analyze::outside::Outside;
use crate::analyze::phases::Phase;
use crate::analyze::replay::place::{Doing, Place};
use crate::analyze::replay::program::{Programs, Script, Step, Token};
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// The programs as they are with all edits, each rewritten step by step while it is played: all of them at once, for several changes that
/// are tried at the same time, would take several times the memory of the recording.
pub(super) struct Edited<'e> {
    rewriter: Rewriter<'e>,
    given: Vec<bool>,
    /// The nanoseconds by which all that they do may be off together.
    pub(super) uncertain: f64,
    /// Threads that have begun and not ended.
    live: HashMap<ThreadIndex, Rewriting>,
}

impl<'e> Edited<'e> {
    pub(super) fn new(programs: &'e Programs, edits: &'e Edits) -> Edited<'e> {
        let mut given = programs.given.clone();
        give_what_the_removed_signalled(programs, edits, &mut given);
        let mut rewriter = Rewriter {
            programs,
            edits,
            first_new: given.len() as Token,
            given: given.clone(),
            news: HashMap::new(),
        };
        // Once through all of them for the tokens that are new, and for what is uncertain.
        let mut cold = Cold::new(edits.refill);
        for thread in 0..programs.launch_of.len() as ThreadIndex {
            let mut rewriting = rewriter.begin(thread, cold);
            while rewriter.go_on(&mut rewriting) {
                rewriting.written.clear();
            }
            cold = rewriting.cold;
        }
        given.resize(given.len() + rewriter.news.len(), false);
        Edited {
            uncertain: edits.uncertain + cold.uncertain(),
            rewriter,
            given,
            live: HashMap::new(),
        }
    }
}

impl Script for Edited<'_> {
    fn launch_of(&self) -> &[u32] {
        &self.rewriter.programs.launch_of
    }

    fn given(&self) -> &[bool] {
        &self.given
    }

    fn root(&self) -> ThreadIndex {
        self.rewriter.programs.root
    }

    fn last(&self) -> ThreadIndex {
        self.rewriter.programs.last
    }

    fn begin(&mut self, thread: ThreadIndex) {
        let cold = Cold::new(self.rewriter.edits.refill);
        self.live.insert(thread, self.rewriter.begin(thread, cold));
    }

    fn step(&mut self, thread: ThreadIndex, place: usize) -> Option<Step> {
        let rewriting = self.live.get_mut(&thread)?;
        while rewriting.passed < place && rewriting.written.pop_front().is_some() {
            rewriting.passed += 1;
        }
        while rewriting.passed + rewriting.written.len() <= place {
            if !self.rewriter.go_on(rewriting) {
                return None;
            }
        }
        rewriting.written.get(place - rewriting.passed).copied()
    }

    fn end(&mut self, thread: ThreadIndex) {
        self.live.remove(&thread);
    }
}

/// Nobody has to wait for what is gone.
fn give_what_the_removed_signalled(programs: &Programs, edits: &Edits, given: &mut [bool]) {
    for (thread, launch) in (0..).zip(&programs.launch_of) {
        if !edits.is_removed(*launch) {
            continue;
        }
        for step in programs.of(thread) {
            if let Step::Wake(token) = step {
                given[token as usize] = true;
            }
        }
    }
}

/// What a token that is not in the recording is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum New {
    ExecOf(u32),
    EndOf(u32),
}

struct Rewriter<'e> {
    programs: &'e Programs,
    edits: &'e Edits,
    /// By token: nobody has to wait for it, since what signalled it was there before or is gone.
    given: Vec<bool>,
    first_new: Token,
    /// Tokens that are not in the recording.
    news: HashMap<New, Token>,
}

/// A thread whose program is being rewritten.
struct Rewriting {
    launch: u32,
    thread: ThreadIndex,
    /// How many steps have been rewritten.
    done: usize,
    is_removed: bool,
    attending: Attending,
    /// It has to be signalled still that the thread's launch has left its exec behind.
    awaits_exec: bool,
    /// The same of its end.
    awaits_end: bool,
    /// Whose late reaping was met last.
    late: Option<u32>,
    stays_awake: bool,
    /// The thread's work behind pauses that are left out.
    cold: Cold,
    /// What has been rewritten and is still to be done, and how much was before that.
    written: VecDeque<Step>,
    passed: usize,
}

impl<'e> Rewriter<'e> {
    fn begin(&self, thread: ThreadIndex, mut cold: Cold) -> Rewriting {
        let launch = self.programs.launch_of[thread as usize];
        let is_removed = self.edits.is_removed(launch);
        let is_first = thread == launch && !is_removed;
        cold.end();
        Rewriting {
            launch,
            thread,
            done: 0,
            is_removed,
            attending: Attending::of(self.programs.of(thread), launch),
            awaits_exec: is_first && self.edits.waited_for[launch as usize],
            awaits_end: is_first && self.edits.reaped_at_once[launch as usize],
            late: None,
            stays_awake: false,
            cold,
            written: VecDeque::new(),
            passed: 0,
        }
    }

    /// Rewrites one step, to any number of steps; says whether there was anything to do.
    fn go_on(&mut self, of: &mut Rewriting) -> bool {
        let step = self.programs.step(of.thread, of.done).filter(|_| !of.is_removed);
        of.done += 1;
        // Who did not sleep loses nothing on waking up.
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

    fn rewrite_step(&mut self, step: Step, of: &mut Rewriting) {
        let is_own = of.attending.is_own(step);
        let (written, cold) = (&mut of.written, &mut of.cold);
        let scaled = |span: Nanos, place: Place| {
            let factor = if is_own { 1.0 } else { self.edits.factor(place) };
            let span = Nanos((span.0 as f64 * factor).round() as u64);
            (span.0 > 0).then_some(span)
        };
        match step {
            Step::Run(span, place) => {
                let span = cold.warm(span);
                written.extend(scaled(span, place).map(|span| Step::Run(span, place)));
            }
            Step::Record(span, place) => written.extend(scaled(span, place).map(|span| Step::Record(span, place))),
            Step::Lose(span, place) => written.extend(scaled(span, place).map(|span| Step::Lose(span, place))),
            Step::Sleep(_, place, Outside::Timer) if self.is_late_reaping(place) => {
                // The first one ends with the child, the others are not needed.
                if of.late.replace(place.launch) != Some(place.launch) {
                    written.push_back(Step::Wait(self.end_token(place.launch), place, Nanos(0)));
                }
            }
            Step::Sleep(span, _, Outside::Scanner(_)) if self.edits.no_scan => cold.pause(span),
            Step::Wait(token, _, span) if self.given[token as usize] => cold.pause(span),
            Step::Sleep(span, place, away) => match scaled(span, place) {
                Some(rest) => {
                    cold.end();
                    written.push_back(Step::Sleep(rest, place, away));
                }
                None => cold.pause(span),
            },
            Step::Spawn(child) => self.spawn(child, written),
            Step::Wait(..) => {
                cold.end();
                written.push_back(step);
            }
            Step::Wake(_) => written.push_back(step),
        }
    }

    fn spawn(&mut self, child: ThreadIndex, written: &mut VecDeque<Step>) {
        let launch = self.programs.launch_of[child as usize];
        if self.edits.is_removed(launch) {
            return;
        }
        written.push_back(Step::Spawn(child));
        if child == launch && self.edits.waited_for[launch as usize] {
            let stage = crate::analyze::replay::place::Stage::new(Phase::Create, 0);
            written.push_back(Step::Wait(self.exec_token(launch), Place { launch, stage }, Nanos(0)));
        }
    }

    fn is_late_reaping(&self, place: Place) -> bool {
        let is_reaped = self.edits.reaped_at_once[place.launch as usize] && !self.edits.is_removed(place.launch);
        place.is(Phase::Reap) && is_reaped
    }

    fn exec_token(&mut self, launch: u32) -> Token {
        self.new_token(New::ExecOf(launch))
    }

    fn end_token(&mut self, launch: u32) -> Token {
        self.new_token(New::EndOf(launch))
    }

    fn new_token(&mut self, what: New) -> Token {
        let next = self.first_new + self.news.len() as Token;
        *self.news.entry(what).or_insert(next)
    }
}

/// Whether a launch has left its first exec behind when it does this.
fn is_behind_exec(step: &Step, launch: u32) -> bool {
    let place = match step {
        Step::Run(_, place)
        | Step::Record(_, place)
        | Step::Lose(_, place)
        | Step::Wait(_, place, _)
        | Step::Sleep(_, place, _) => *place,
        Step::Wake(_) | Step::Spawn(_) => return false,
    };
    let is_behind = matches!(
        place.stage.doing(),
        Doing::Phase(Phase::Load | Phase::Run | Phase::Teardown)
    );
    place.launch == launch && is_behind
}
