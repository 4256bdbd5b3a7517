//! Rewrites programs by edits: what is gone is left out, what gets shorter is scaled, and new waits come in.

use super::attending::Attending;
use super::edits::Edits;
use super::refill::Cold;
use crate::analyze::phases::Phase;
use crate::analyze::replay::place::{Doing, Place};
use crate::analyze::replay::program::{Away, Programs, Step, Token};
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// The programs as they are with all edits, and the nanoseconds by which all that they do may be off together.
#[must_use]
pub(super) fn apply(programs: &Programs, edits: &Edits) -> (Programs, f64) {
    let mut edited = Programs {
        steps: Vec::with_capacity(programs.steps.len()),
        launch_of: programs.launch_of.clone(),
        given: programs.given.clone(),
        root: programs.root,
        last: programs.last,
    };
    give_what_the_removed_signalled(programs, edits, &mut edited.given);
    let mut rewriter = Rewriter {
        given: edited.given.clone(),
        edits,
        first_new: edited.given.len() as Token,
        news: vec![None; 2 * edits.waited_for.len()],
        count: 0,
        launch_of: &programs.launch_of,
        attending: Attending::default(),
        cold: Cold::new(edits.refill),
    };
    for (thread, steps) in (0..).zip(&programs.steps) {
        edited.steps.push(rewriter.rewrite(thread, steps));
    }
    edited.given.resize(edited.given.len() + rewriter.count as usize, false);
    (edited, edits.uncertain + rewriter.cold.uncertain())
}

/// Nobody has to wait for what is gone.
fn give_what_the_removed_signalled(programs: &Programs, edits: &Edits, given: &mut [bool]) {
    for (launch, steps) in programs.launch_of.iter().zip(&programs.steps) {
        if !edits.is_removed(*launch) {
            continue;
        }
        for step in steps {
            if let Step::Wake(token) = step {
                given[*token as usize] = true;
            }
        }
    }
}

struct Rewriter<'e> {
    edits: &'e Edits,
    /// By token: nobody has to wait for it, since what signalled it was there before or is gone.
    given: Vec<bool>,
    attending: Attending,
    first_new: Token,
    /// Tokens of each launch that are not in the recording: for its exec, and for its end.
    news: Vec<Option<Token>>,
    count: Token,
    launch_of: &'e [u32],
    /// The thread's work behind pauses that are left out.
    cold: Cold,
}

impl Rewriter<'_> {
    fn rewrite(&mut self, thread: ThreadIndex, steps: &[Step]) -> Vec<Step> {
        let launch = self.launch_of[thread as usize];
        if self.edits.is_removed(launch) {
            return Vec::new();
        }
        self.attending = Attending::of(steps, launch);
        let is_first = thread == launch;
        let mut awaited = is_first && self.edits.waited_for[launch as usize];
        let mut written = Vec::with_capacity(steps.len());
        let mut late = None;
        let mut stays_awake = false;
        self.cold.end();
        for step in steps {
            // Who did not sleep loses nothing on waking up.
            if std::mem::take(&mut stays_awake) && matches!(step, Step::Lose(..)) {
                continue;
            }
            if awaited && is_behind_exec(step, launch) {
                awaited = false;
                written.push(Step::Wake(self.exec_token(launch)));
            }
            let before = written.len();
            self.rewrite_step(*step, &mut late, &mut written);
            stays_awake = matches!(step, Step::Sleep(..) | Step::Wait(..)) && written.len() == before;
        }
        if awaited {
            written.push(Step::Wake(self.exec_token(launch)));
        }
        if is_first && self.edits.reaped_at_once[launch as usize] {
            written.push(Step::Wake(self.end_token(launch)));
        }
        written
    }

    fn rewrite_step(&mut self, step: Step, late: &mut Option<u32>, written: &mut Vec<Step>) {
        let is_own = self.attending.is_own(step);
        let scaled = |span: Nanos, place: Place| {
            let factor = if is_own { 1.0 } else { self.edits.factor(place) };
            let span = Nanos((span.0 as f64 * factor).round() as u64);
            (span.0 > 0).then_some(span)
        };
        match step {
            Step::Run(span, place) => {
                let span = self.cold.warm(span);
                written.extend(scaled(span, place).map(|span| Step::Run(span, place)));
            }
            Step::Record(span, place) => written.extend(scaled(span, place).map(|span| Step::Record(span, place))),
            Step::Lose(span, place) => written.extend(scaled(span, place).map(|span| Step::Lose(span, place))),
            Step::Sleep(_, place, Away::Timer) if self.is_late_reaping(place) => {
                // The first one ends with the child, the others are not needed.
                if late.replace(place.launch) != Some(place.launch) {
                    written.push(Step::Wait(self.end_token(place.launch), place, Nanos(0)));
                }
            }
            Step::Sleep(span, _, Away::Scanner) if self.edits.no_scan => self.cold.pause(span),
            Step::Wait(token, _, span) if self.given[token as usize] => self.cold.pause(span),
            Step::Sleep(span, place, away) => match scaled(span, place) {
                Some(rest) => {
                    self.cold.end();
                    written.push(Step::Sleep(rest, place, away));
                }
                None => self.cold.pause(span),
            },
            Step::Spawn(child) => self.spawn(child, written),
            Step::Wait(..) => {
                self.cold.end();
                written.push(step);
            }
            Step::Wake(_) => written.push(step),
        }
    }

    fn spawn(&mut self, child: ThreadIndex, written: &mut Vec<Step>) {
        let launch = self.launch_of[child as usize];
        if self.edits.is_removed(launch) {
            return;
        }
        written.push(Step::Spawn(child));
        if child == launch && self.edits.waited_for[launch as usize] {
            let stage = crate::analyze::replay::place::Stage::new(Phase::Create, 0);
            written.push(Step::Wait(self.exec_token(launch), Place { launch, stage }, Nanos(0)));
        }
    }

    fn is_late_reaping(&self, place: Place) -> bool {
        let is_reaped = self.edits.reaped_at_once[place.launch as usize] && !self.edits.is_removed(place.launch);
        place.is(Phase::Reap) && is_reaped
    }

    fn exec_token(&mut self, launch: u32) -> Token {
        self.new_token(2 * launch as usize)
    }

    fn end_token(&mut self, launch: u32) -> Token {
        self.new_token(2 * launch as usize + 1)
    }

    fn new_token(&mut self, which: usize) -> Token {
        *self.news[which].get_or_insert_with(|| {
            self.count += 1;
            self.first_new + self.count - 1
        })
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
