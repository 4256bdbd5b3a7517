//! Writes programs: from slices, which say what each thread did when, to steps, which say only what it did.

use super::Setting;
use super::contention::{Contention, runnable};
use super::place::{Doing, Place, Places};
use super::program::{Programs, Step, Token};
use crate::analyze::outside::outside_of;
use crate::analyze::phases::Phase;
use crate::analyze::timeline::{ThreadIndex, Timelines, beginning, last_thread};
use crate::analyze::tree::Forest;
use crate::event::{LeftCpu, Nanos};
use crate::record::reader::SliceRow;

/// However many system calls, recording does not make up more of a stretch than this.
const MOST_COST: f64 = 0.9;

/// What a thread does to another one, at an instant of the recording.
#[derive(Clone, Copy)]
struct Action {
    at: Nanos,
    step: Step,
}

/// Takes the recording apart; what lies before `start` or after `end` is left out.
pub(super) fn write(
    forest: &Forest<'_>,
    timelines: &Timelines,
    setting: &Setting,
    root: u32,
    (start, end): (Nanos, Nanos),
) -> Programs {
    let contention = Contention::new(timelines, setting.cpus);
    let count = timelines.threads.len();
    let mut actions: Vec<Vec<Action>> = vec![Vec::new(); count];
    let tokens = collect_wakes(timelines, (start, end), &mut actions);
    collect_spawns(timelines, &mut actions);
    let mut programs = Programs {
        steps: Vec::with_capacity(count),
        launch_of: timelines.threads.iter().map(|thread| thread.launch).collect(),
        given: vec![false; tokens.count as usize],
        root,
        last: last_thread(timelines, root),
    };
    for (thread, mut actions) in (0..).zip(actions) {
        actions.sort_by_key(|action| action.at);
        let slices = timelines.slices(thread);
        let writer = Writer {
            actions: &actions,
            next: 0,
            steps: Vec::new(),
            window: (start, end),
            contention: &contention,
            call: setting.call,
            cost: 0.0,
            outlives: timelines.outlives(thread),
            places: Places::new(forest, timelines, thread, setting.fault),
        };
        programs.steps.push(writer.write(slices, &tokens, thread));
    }
    programs
}

/// Which slice waits for which token: those of a thread in a row, by the slice's place.
struct Tokens {
    count: Token,
    of_thread: Vec<Vec<(u32, Token)>>,
}

/// Gives a token to every wait that a recorded thread ended while it was on a CPU, and to that thread the wake. A wait to the end
/// is ended there.
fn collect_wakes(timelines: &Timelines, (start, end): (Nanos, Nanos), actions: &mut [Vec<Action>]) -> Tokens {
    let mut tokens = Tokens {
        count: 0,
        of_thread: vec![Vec::new(); actions.len()],
    };
    for thread in 0..actions.len() as ThreadIndex {
        for (place, slice) in (0..).zip(timelines.slices(thread)) {
            let Some(woken) = woken_at(slice, end).filter(|woken| *woken > start) else {
                continue;
            };
            let Some(waker) = timelines.cause(thread, slice) else {
                continue;
            };
            let step = Step::Wake(tokens.count);
            actions[waker as usize].push(Action { at: woken, step });
            tokens.of_thread[thread as usize].push((place, tokens.count));
            tokens.count += 1;
        }
    }
    tokens
}

/// What a parent does for a child is one call that takes long, and a few beside it.
fn makes_many_calls(place: Place) -> bool {
    !matches!(place.stage.doing(), Doing::Phase(Phase::Create) | Doing::Attend)
}

fn woken_at(slice: &SliceRow, end: Nanos) -> Option<Nanos> {
    if slice.is_open_wait() {
        return Some(end);
    }
    Some(Nanos(slice.off.0 + slice.wake_span?.0))
}

fn collect_spawns(timelines: &Timelines, actions: &mut [Vec<Action>]) {
    for (thread, each) in (0..).zip(&timelines.threads) {
        if let (Some(creator), Some(at)) = (each.creator, each.created) {
            let step = Step::Spawn(thread);
            actions[creator as usize].push(Action { at, step });
        }
    }
}

/// Writes one thread's program.
struct Writer<'w> {
    actions: &'w [Action],
    next: usize,
    steps: Vec<Step>,
    window: (Nanos, Nanos),
    contention: &'w Contention,
    /// Nanoseconds by which recording makes a system call longer.
    call: f64,
    /// The share of the present stretch on the CPU that recording made up.
    cost: f64,
    /// Whether its process was alive when the recording ended.
    outlives: bool,
    places: Places,
}

impl Writer<'_> {
    fn write(mut self, slices: &[SliceRow], tokens: &Tokens, thread: ThreadIndex) -> Vec<Step> {
        let own = &tokens.of_thread[thread as usize];
        let (start, end) = self.window;
        let mut back_on = None;
        for (place, slice) in (0..).zip(slices) {
            if slice.off <= start && slice.reason != LeftCpu::Created {
                back_on = slice.off_span.map(|span| Nanos(slice.off.0 + span.0));
                continue;
            }
            self.cost = self.cost_of_recording(slice);
            self.run(beginning(slice).max(start), slice.off.min(end));
            let token = own.binary_search_by_key(&place, |(place, _)| *place).ok();
            self.leave(slice, token.map(|found| own[found].1));
            back_on = slice.off_span.map(|span| Nanos(slice.off.0 + span.0));
        }
        self.cost = 0.0;
        // A last slice that was lost. Who lives on may have done anything since: then the wall comes out too short.
        if let Some(on) = back_on.filter(|on| *on < end && !self.outlives) {
            self.run(on.max(start), end);
        }
        self.act_until(Nanos(u64::MAX), None);
        self.steps
    }

    /// Uses the CPU from one instant to another, and does in between what it did there.
    fn run(&mut self, on: Nanos, off: Nanos) {
        let at = self.act_until(off, Some(on));
        self.push_run(at, off);
    }

    /// Does what comes before `until`; gives the instant that the CPU time has been told up to.
    fn act_until(&mut self, until: Nanos, on: Option<Nanos>) -> Nanos {
        let mut at = on.unwrap_or(until);
        while let Some(action) = self.actions.get(self.next).filter(|action| action.at <= until) {
            self.push_run(at, action.at);
            at = at.max(action.at);
            self.steps.push(action.step);
            self.next += 1;
        }
        at
    }

    fn push_run(&mut self, from: Nanos, to: Nanos) {
        if from >= to {
            return;
        }
        for (span, place) in self.places.between(from, to) {
            let cost = if makes_many_calls(place) { self.cost } else { 0.0 };
            let recording = Nanos((span.0 as f64 * cost) as u64);
            self.steps.push(Step::Run(span.since(recording), place));
            if recording.0 > 0 {
                self.steps.push(Step::Record(recording, place));
            }
        }
    }

    /// System calls are taken to be spread evenly over what of the stretch may hold many of them.
    fn cost_of_recording(&self, slice: &SliceRow) -> f64 {
        if slice.calls == 0 || self.call == 0.0 {
            return 0.0;
        }
        let pieces = self.places.between(beginning(slice), slice.off);
        let with_calls = pieces.filter(|(_, place)| makes_many_calls(*place));
        let span: u64 = with_calls.map(|(span, _)| span.0).sum();
        (f64::from(slice.calls) * self.call / span.max(1) as f64).min(MOST_COST)
    }

    fn leave(&mut self, slice: &SliceRow, token: Option<Token>) {
        let since = self.places.at(slice.off);
        match (slice.reason, token) {
            (LeftCpu::Created | LeftCpu::Preempted | LeftCpu::Ended, _) => {}
            (_, Some(token)) => self.steps.push(Step::Wait(token, since, self.span_of(slice))),
            (_, None) => self.sleep(slice),
        }
        if let Some((from, to)) = runnable(slice) {
            let lost = self.contention.lost(from, to);
            if lost.0 > 0 {
                self.steps.push(Step::Lose(lost, self.places.at(from)));
            }
        }
    }

    /// A sleep stands where it ends: in one that a child's end falls into, it is the reaping that is late.
    fn sleep(&mut self, slice: &SliceRow) {
        let span = self.span_of(slice);
        let place = self.places.at(Nanos((slice.off.0 + span.0).saturating_sub(1)));
        self.steps.push(Step::Sleep(span, place, outside_of(slice)));
    }

    /// How long a thread was unable to run after a slice.
    fn span_of(&self, slice: &SliceRow) -> Nanos {
        let (start, end) = self.window;
        let to_the_end = || end.since(slice.off.max(start));
        slice.wake_span.or(slice.off_span).unwrap_or_else(to_the_end)
    }
}
