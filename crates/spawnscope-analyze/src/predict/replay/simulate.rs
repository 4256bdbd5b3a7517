//! Simulates programs on N CPUs with a queue of events, ordered by time, and a run queue. Threads
//! that wake up go to the front of the run queue, threads at the end of their time slice to the
//! back. While threads only take turns, many turns are simulated at once (`turns`), so that the
//! work depends on the number of steps, not on their durations. A `Watch` receives every change.

mod rounds;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;

use super::activity::Activity;
use super::delayed::{DelayedThreads, Forecast};
use super::machine::{Machine, TIME_SLICE};
use super::program::Script;
use super::steps::{Step, Token};
use super::turns::Turns;
use super::watch::{ThreadState, Watch};
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::Nanos;

/// Simulates the programs. Returns the time at which the last thread of the command ends.
pub fn simulate(script: impl Script, machine: &Machine) -> Nanos {
    simulate_and_watch(script, machine, &mut ())
}

/// Simulates the programs and reports every change to `watch`. Returns the same time as
/// [`simulate`].
pub(super) fn simulate_and_watch(script: impl Script, machine: &Machine, watch: &mut impl Watch) -> Nanos {
    let mut simulation = Simulation::new(script, machine, watch);
    for root in simulation.script.programs().roots.clone() {
        simulation.script.begin(root);
        simulation.ready.push_back(root);
    }
    simulation.fill_cpus();
    while !simulation.ended
        && let Some((at, event)) = simulation.next_event()
    {
        if matches!(event, Event::DelayEnds(forecast) if forecast != simulation.delayed.forecast) {
            continue;
        }
        simulation.now = at;
        simulation.delayed.advance(at);
        let mut is_turn = false;
        match event {
            Event::Ready(thread) => simulation.wake_up(thread),
            Event::TimesOut(thread, token) => simulation.time_out(thread, token),
            Event::StretchEnds(thread, turn) => is_turn = simulation.end_stretch(thread, turn),
            Event::DelayEnds(_) => {
                while let Some(thread) = simulation.delayed.pop() {
                    simulation.ready.push_front(thread);
                }
            }
        }
        simulation.fill_cpus();
        simulation.count_turn(is_turn && !simulation.ended);
    }
    simulation.now
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Ready(ThreadIndex),
    /// The wait of a thread for a token times out, if the thread still waits for it.
    TimesOut(ThreadIndex, Token),
    /// The time slice of a thread on a CPU, or its CPU time for a step, ends.
    StretchEnds(ThreadIndex, Turn),
    /// The first delayed thread has lost all its time, if this forecast is still valid.
    DelayEnds(Forecast),
}

/// An event and its order: the time in the upper half, the order of creation in the lower half.
type Ordered<T> = Reverse<(u128, T)>;

/// The order of creation of a thread's stretches since it got its CPU or its time slice. All have
/// the same, so that the order of threads does not depend on how many steps a stretch has.
type Turn = u64;

fn order(at: Nanos, created: u64) -> u128 {
    u128::from(at.0) << u64::BITS | u128::from(created)
}

fn time_of(order: u128) -> Nanos {
    Nanos((order >> u64::BITS) as u64)
}

/// The state of a token: the waiting thread, or one of two numbers that no thread has. It is small
/// because there may be millions of tokens.
#[derive(Clone, Copy, PartialEq)]
struct Signal(ThreadIndex);

impl Signal {
    /// No thread waits for the token, and it has not been signalled.
    const NONE: Signal = Signal(ThreadIndex::MAX);
    /// The token was signalled before a thread waited for it.
    const SIGNALLED: Signal = Signal(ThreadIndex::MAX - 1);

    fn sleeper(self) -> Option<ThreadIndex> {
        (self != Signal::NONE && self != Signal::SIGNALLED).then_some(self.0)
    }
}

#[derive(Clone, Copy, Default)]
#[repr(C, packed(4))]
struct ProgramPosition {
    /// Index of the next step, or of the step that the thread runs.
    position: u32,
    /// For a step that has begun to use CPU time: what it needs after the current stretch.
    left: Nanos,
}

impl ProgramPosition {
    fn after(position: u32) -> ProgramPosition {
        ProgramPosition { position: position + 1, left: Nanos(0) }
    }
}

struct Simulation<'p, S, W> {
    script: S,
    machine: &'p Machine,
    watch: &'p mut W,
    now: Nanos,
    /// The ends of stretches of the threads on CPUs.
    stretch_ends: BinaryHeap<Ordered<ThreadIndex>>,
    events: BinaryHeap<Ordered<Event>>,
    created: u64,
    next: Vec<ProgramPosition>,
    signals: Vec<Signal>,
    ready: VecDeque<ThreadIndex>,
    delayed: DelayedThreads,
    free_cpus: u32,
    /// The threads that wait for the next round of a polling thread, by that thread.
    rounds: HashMap<ThreadIndex, Vec<ThreadIndex>>,
    /// The threads that were killed and have not gone on since.
    killed: HashSet<ThreadIndex>,
    /// Number of turns since the last change of another kind.
    turns: usize,
    ended: bool,
}

impl<'p, S: Script, W: Watch> Simulation<'p, S, W> {
    fn new(script: S, machine: &'p Machine, watch: &'p mut W) -> Simulation<'p, S, W> {
        Simulation {
            machine,
            watch,
            now: Nanos(0),
            stretch_ends: BinaryHeap::new(),
            events: BinaryHeap::new(),
            created: 0,
            next: vec![ProgramPosition::default(); script.programs().launch_of.len()],
            signals: script
                .signalled_at_start()
                .iter()
                .map(|is_signalled| if *is_signalled { Signal::SIGNALLED } else { Signal::NONE })
                .collect(),
            ready: VecDeque::new(),
            delayed: DelayedThreads::default(),
            free_cpus: machine.cpus,
            rounds: HashMap::default(),
            killed: HashSet::default(),
            turns: 0,
            ended: false,
            script,
        }
    }

    fn next_event(&mut self) -> Option<(Nanos, Event)> {
        let [stretch_end, other] = [
            self.stretch_ends.peek().map(|Reverse((order, _))| order),
            self.events.peek().map(|Reverse((order, _))| order),
        ];
        if stretch_end.is_some_and(|order| other.is_none_or(|other| order < other)) {
            let Reverse((order, thread)) = self.stretch_ends.pop()?;
            return Some((time_of(order), Event::StretchEnds(thread, order as Turn)));
        }
        let Reverse((order, event)) = self.events.pop()?;
        Some((time_of(order), event))
    }

    /// Returns the number for the order of a new event at `at`.
    fn order(&mut self, at: Nanos) -> u128 {
        self.created += 1;
        order(at, self.created)
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        let order = self.order(at);
        self.events.push(Reverse((order, event)));
    }

    fn after(&self, span: Nanos) -> Nanos {
        Nanos(self.now.0.saturating_add(span.0))
    }

    /// Counts a turn. If every thread had one since the last other change, threads take turns until
    /// the next other change, and most of these turns are simulated at once.
    fn count_turn(&mut self, is_turn: bool) {
        self.turns = if is_turn { self.turns + 1 } else { 0 };
        if self.turns > self.stretch_ends.len() + self.ready.len() {
            self.turns = 0;
            self.skip_turns();
        }
    }

    /// Skips as many turns as possible: up to the next event of another kind, or the end of a step.
    fn skip_turns(&mut self) {
        let running = self.stretch_ends.iter().map(|Reverse((_, thread))| thread);
        let threads: Vec<ThreadIndex> = running.chain(&self.ready).copied().collect();
        let horizon = self.events.peek().map_or(Nanos(u64::MAX), |Reverse((order, _))| time_of(*order));
        let cpus = self.stretch_ends.len();
        let mut turns = Turns::new(TIME_SLICE, cpus, threads.len() - cpus, horizon.since(self.now));
        let left: Vec<Nanos> =
            threads.iter().enumerate().map(|(index, thread)| self.left_of_step(*thread, index < cpus)).collect();
        left.iter().for_each(|left| turns.limit(*left));
        let Some((passed, used)) = turns.skipped() else { return };
        for (index, thread) in threads.into_iter().enumerate() {
            let activity = self.next_activity(thread);
            let running = activity.map_or(ThreadState::Queued(None), ThreadState::Running);
            self.next[thread as usize].left = left[index].since(used);
            if index >= cpus && left[index] == used {
                self.advance(thread);
            }
            if used < passed {
                self.watch.state_begins(thread, self.now, running);
                self.watch.state_begins(thread, self.after(used), ThreadState::Queued(activity));
                if index < cpus {
                    self.watch.state_begins(thread, self.after(passed), running);
                }
            }
        }
        self.now = self.after(passed);
        self.delayed.advance(self.now);
        // The ends keep their order, also among those at the same time.
        for Reverse((order, thread)) in mem::take(&mut self.stretch_ends).into_sorted_vec().into_iter().rev() {
            let order = self.order(Nanos(time_of(order).0.saturating_add(passed.0)));
            self.stretch_ends.push(Reverse((order, thread)));
        }
    }

    /// Returns the CPU time that a thread needs for its step after the current stretch.
    fn left_of_step(&mut self, thread: ThreadIndex, is_running: bool) -> Nanos {
        let ProgramPosition { position, left } = self.next[thread as usize];
        let has_begun = is_running || left > Nanos(0);
        let step = if has_begun { None } else { self.script.step(thread, position as usize) };
        step.and_then(|step| self.machine.cpu_time(step)).map_or(left, |(span, _)| span)
    }

    /// Assigns free CPUs to ready threads. The remaining CPUs count as unused for delayed threads.
    fn fill_cpus(&mut self) {
        while self.free_cpus > 0
            && let Some(thread) = self.ready.pop_front()
        {
            self.free_cpus -= 1;
            self.continue_thread(thread, None);
        }
        if let Some((at, forecast)) = self.delayed.set_free_cpus(self.now, u64::from(self.free_cpus)) {
            self.schedule(at, Event::DelayEnds(forecast));
        }
    }

    fn become_ready(&mut self, thread: ThreadIndex) {
        self.queue(thread);
        if !self.delay_if_loss(thread) {
            self.ready.push_front(thread);
        }
    }

    fn queue(&mut self, thread: ThreadIndex) {
        if W::FOLLOWS {
            let activity = self.next_activity(thread);
            self.watch.state_begins(thread, self.now, ThreadState::Queued(activity));
        }
    }

    fn position(&self, thread: ThreadIndex) -> usize {
        self.next[thread as usize].position as usize
    }

    fn advance(&mut self, thread: ThreadIndex) {
        self.next[thread as usize] = ProgramPosition::after(self.next[thread as usize].position);
    }

    /// Returns the activity with which a thread will continue on a CPU.
    fn next_activity(&mut self, thread: ThreadIndex) -> Option<Activity> {
        self.script.step(thread, self.position(thread))?.activity()
    }

    /// Delays a thread if its next step is a loss. Returns whether it does.
    fn delay_if_loss(&mut self, thread: ThreadIndex) -> bool {
        let Some(Step::Lose(span, _)) = self.script.step(thread, self.position(thread)) else { return false };
        self.advance(thread);
        self.delayed.push(thread, self.machine.lost(span, self.script.programs().by_recorder));
        true
    }

    /// Handles the end of a time slice or of the CPU time of a step. At the end of a time slice, a
    /// waiting thread gets the CPU. Returns whether it is the end of a time slice only.
    fn end_stretch(&mut self, thread: ThreadIndex, turn: Turn) -> bool {
        let has_more = { self.next[thread as usize].left } > Nanos(0);
        if has_more && !self.ready.is_empty() {
            self.free_cpus += 1;
            self.queue(thread);
            self.ready.push_back(thread);
        } else {
            if !has_more {
                self.advance(thread);
            }
            self.continue_thread(thread, (!has_more).then_some(turn));
        }
        has_more
    }

    /// Lets a thread continue on a CPU, in a turn that it already has there, or in a new one.
    fn continue_thread(&mut self, thread: ThreadIndex, turn: Option<Turn>) {
        if !self.killed.is_empty() && self.killed.remove(&thread) {
            self.skip_to(thread, |step| step == Step::Killed);
            self.advance(thread);
        }
        loop {
            let ProgramPosition { position, left } = self.next[thread as usize];
            let Some(step) = self.script.step(thread, position as usize) else {
                self.free_cpus += 1;
                self.ended |= thread == self.script.programs().last;
                self.begin_round(thread);
                return self.script.end(thread);
            };
            if let Step::Check(token) = step
                && self.signals[token as usize] == Signal::SIGNALLED
            {
                self.skip_to(thread, |step| matches!(step, Step::Wait(other, ..) if other == token));
                continue;
            }
            if let Some((span, activity)) = self.machine.cpu_time(step) {
                let left = if left > Nanos(0) { left } else { span };
                if left > Nanos(0) {
                    self.watch.state_begins(thread, self.now, ThreadState::Running(activity));
                    return self.run(thread, left, turn);
                }
            } else if !self.execute(thread, step) {
                return;
            }
            self.next[thread as usize] = ProgramPosition::after(position);
        }
    }

    /// Lets a thread run until its time slice ends, or its work. The steps that follow are a part
    /// of this stretch if the time slice suffices for them, and if their activities are not
    /// followed.
    fn run(&mut self, thread: ThreadIndex, left: Nanos, turn: Option<Turn>) {
        let mut span = left.min(TIME_SLICE);
        self.next[thread as usize].left = left.since(span);
        if !W::FOLLOWS && left <= TIME_SLICE {
            let (next, limit) = (self.position(thread) + 1, TIME_SLICE.since(span));
            let (more, steps) = self.script.cpu_from(thread, next, limit, self.machine.recording);
            span.0 += more.0;
            self.next[thread as usize].position += steps as u32;
        }
        let end = self.after(span);
        let order = turn.map_or_else(|| self.order(end), |turn| order(end, turn));
        self.stretch_ends.push(Reverse((order, thread)));
    }

    /// Executes a step that uses no CPU time. Returns whether the thread continues at once.
    fn execute(&mut self, thread: ThreadIndex, step: Step) -> bool {
        match step {
            Step::Wake(token) => self.signal(token, thread),
            Step::Kill(killed) => self.kill(killed, thread),
            Step::Killed => return self.block(thread, ThreadState::Waiting),
            Step::Wait(token, ..) => return self.wait_for(token, thread, ThreadState::Waiting),
            Step::TimedWait(token, _, span) => {
                let continues = self.wait_for(token, thread, ThreadState::Sleeping(ExternalWait::Timer));
                if !continues {
                    self.schedule(self.after(span), Event::TimesOut(thread, token));
                }
                return continues;
            }
            Step::Spawn(child) => {
                self.script.begin(child);
                self.watch.thread_created(child, thread);
                self.queue(child);
                if !self.delay_if_loss(child) {
                    self.ready.push_back(child);
                }
            }
            Step::Round(polling, _) => return self.wait_for_round(thread, polling),
            Step::Sleep(_, _, ExternalWait::Recorder) if !self.machine.is_recorded() => {}
            Step::Sleep(span, _, external_wait) => {
                self.schedule(self.after(span), Event::Ready(thread));
                return self.block(thread, ThreadState::Sleeping(external_wait));
            }
            Step::Lose(_, activity) => {
                self.watch.state_begins(thread, self.now, ThreadState::Queued(Some(activity)));
                self.free_cpus += 1;
                return !self.delay_if_loss(thread);
            }
            Step::Run(..) | Step::Check(_) => {}
        }
        true
    }

    /// Lets a thread wait for a signal. Returns whether it continues at once, because the signal
    /// was sent before.
    fn wait_for(&mut self, token: Token, thread: ThreadIndex, state: ThreadState) -> bool {
        let signal = &mut self.signals[token as usize];
        if *signal == Signal::SIGNALLED {
            return true;
        }
        *signal = Signal(thread);
        self.block(thread, state)
    }

    fn signal(&mut self, token: Token, by: ThreadIndex) {
        let before = mem::replace(&mut self.signals[token as usize], Signal::SIGNALLED);
        if let Some(sleeper) = before.sleeper() {
            self.watch.thread_woken(sleeper, by);
            self.become_ready(sleeper);
        }
    }

    fn time_out(&mut self, thread: ThreadIndex, token: Token) {
        if self.signals[token as usize].sleeper() == Some(thread) {
            self.signals[token as usize] = Signal::NONE;
            self.wake_up(thread);
        }
    }

    /// Kills a thread: ends its wait or sleep, and skips the rest of its program up to that moment.
    fn kill(&mut self, thread: ThreadIndex, by: ThreadIndex) {
        self.killed.insert(thread);
        let last = self.position(thread).checked_sub(1).and_then(|last| self.script.step(thread, last));
        let is_blocked = match last {
            Some(Step::Killed) => true,
            Some(Step::Wait(token, ..) | Step::TimedWait(token, ..)) => {
                let signal = &mut self.signals[token as usize];
                signal.sleeper() == Some(thread) && mem::replace(signal, Signal::NONE) != Signal::NONE
            }
            Some(Step::Round(polling, _)) => self.leave_round(thread, polling),
            Some(Step::Sleep(..)) => {
                let scheduled = self.events.len();
                self.events.retain(|Reverse((_, event))| *event != Event::Ready(thread));
                self.events.len() < scheduled
            }
            _ => false,
        };
        if is_blocked {
            self.watch.thread_woken(thread, by);
            self.become_ready(thread);
        }
    }

    /// Skips the steps of a thread up to a certain step. Only wakes other threads, which would wait
    /// forever.
    fn skip_to(&mut self, thread: ThreadIndex, is_wanted: impl Fn(Step) -> bool) {
        while let Some(step) = self.script.step(thread, self.position(thread))
            && !is_wanted(step)
        {
            if let Step::Wake(token) = step {
                self.signal(token, thread);
            }
            self.advance(thread);
        }
    }

    /// Blocks a thread. Returns false, because it does not continue.
    fn block(&mut self, thread: ThreadIndex, state: ThreadState) -> bool {
        self.watch.state_begins(thread, self.now, state);
        self.free_cpus += 1;
        self.advance(thread);
        if state == ThreadState::Waiting {
            self.begin_round(thread);
        }
        false
    }
}
