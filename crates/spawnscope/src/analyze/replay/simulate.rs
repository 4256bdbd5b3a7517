//! Plays programs on N CPUs: a run queue, where who wakes up comes first and who has had a slice comes last, and a queue of
//! events by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::program::{Programs, Step};
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// What the programs are played on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// CPUs.
    pub cpus: u32,
    /// How long a thread keeps its CPU while others wait.
    pub slice: Nanos,
}

/// The kernel's usual slice on few CPUs.
const SLICE: Nanos = Nanos(3_000_000);

impl Machine {
    /// So many CPUs, with the usual slice.
    #[must_use]
    pub fn with_cpus(cpus: u32) -> Machine {
        Machine {
            cpus: cpus.max(1),
            slice: SLICE,
        }
    }
}

/// Plays the programs; gives the time at which the last thread of the command ends.
#[must_use]
pub fn simulate(programs: &Programs, machine: &Machine) -> Nanos {
    let mut play = Play::new(programs, machine);
    play.ready.push_back(programs.root);
    play.fill_cpus();
    while let Some(Reverse((at, _, event))) = play.events.pop() {
        play.now = at;
        match event {
            Event::Ready(thread) => play.ready.push_front(thread),
            Event::Off(cpu) => play.leave(cpu),
        }
        if play.ended {
            break;
        }
        play.fill_cpus();
    }
    play.now
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A thread can run.
    Ready(ThreadIndex),
    /// A CPU has done what it was given.
    Off(u32),
}

#[derive(Clone, Copy, PartialEq)]
enum Signal {
    None,
    /// Somebody waits for it.
    Awaited(ThreadIndex),
    /// It came before anybody waited.
    Given,
}

struct Play<'p> {
    programs: &'p Programs,
    machine: &'p Machine,
    now: Nanos,
    /// Ties go in the order in which the events were made.
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    made: u64,
    /// What each thread does next, and how much of it is done.
    next: Vec<(usize, Nanos)>,
    signals: Vec<Signal>,
    ready: VecDeque<ThreadIndex>,
    cpus: Vec<Option<ThreadIndex>>,
    ended: bool,
}

impl<'p> Play<'p> {
    fn new(programs: &'p Programs, machine: &'p Machine) -> Play<'p> {
        Play {
            programs,
            machine,
            now: Nanos(0),
            events: BinaryHeap::new(),
            made: 0,
            next: vec![(0, Nanos(0)); programs.steps.len()],
            signals: vec![Signal::None; programs.tokens],
            ready: VecDeque::new(),
            cpus: vec![None; machine.cpus as usize],
            ended: false,
        }
    }

    fn schedule(&mut self, after: Nanos, event: Event) {
        self.made += 1;
        self.events
            .push(Reverse((Nanos(self.now.0 + after.0), self.made, event)));
    }

    fn fill_cpus(&mut self) {
        while let Some(cpu) = self.cpus.iter().position(Option::is_none) {
            let Some(thread) = self.ready.pop_front() else { return };
            self.cpus[cpu] = Some(thread);
            self.go_on(cpu as u32, thread);
        }
    }

    /// A thread's slice is over, or its run. Who waits gets the CPU in the former case.
    fn leave(&mut self, cpu: u32) {
        let Some(thread) = self.cpus[cpu as usize] else { return };
        let (position, done) = self.next[thread as usize];
        let has_more =
            matches!(self.programs.steps[thread as usize].get(position), Some(Step::Run(span)) if done < *span);
        if has_more && !self.ready.is_empty() {
            self.cpus[cpu as usize] = None;
            self.ready.push_back(thread);
        } else {
            self.go_on(cpu, thread);
        }
    }

    /// Does what the thread does next, up to the next time it takes.
    fn go_on(&mut self, cpu: u32, thread: ThreadIndex) {
        let steps = &self.programs.steps[thread as usize];
        loop {
            let (position, done) = self.next[thread as usize];
            let Some(step) = steps.get(position) else {
                self.cpus[cpu as usize] = None;
                self.ended |= thread == self.programs.last;
                return;
            };
            if let Step::Run(span) = step {
                if done < *span {
                    return self.run(cpu, thread, span.since(done));
                }
            } else if !self.act(cpu, thread, *step) {
                return;
            }
            self.next[thread as usize] = (position + 1, Nanos(0));
        }
    }

    /// On the CPU for a while, at most a slice.
    fn run(&mut self, cpu: u32, thread: ThreadIndex, left: Nanos) {
        let span = left.min(self.machine.slice);
        self.next[thread as usize].1.0 += span.0;
        self.schedule(span, Event::Off(cpu));
    }

    /// Whether the thread can go on at once.
    fn act(&mut self, cpu: u32, thread: ThreadIndex, step: Step) -> bool {
        match step {
            Step::Wake(token) => {
                let signal = &mut self.signals[token as usize];
                if let Signal::Awaited(sleeper) = *signal {
                    self.ready.push_front(sleeper);
                } else {
                    *signal = Signal::Given;
                }
                true
            }
            Step::Spawn(child) => {
                self.ready.push_back(child);
                true
            }
            Step::Wait(token) => {
                let signal = &mut self.signals[token as usize];
                if *signal == Signal::Given {
                    return true;
                }
                *signal = Signal::Awaited(thread);
                self.step_off(cpu, thread);
                false
            }
            Step::Sleep(span) => {
                self.schedule(span, Event::Ready(thread));
                self.step_off(cpu, thread);
                false
            }
            Step::Run(_) => true,
        }
    }

    fn step_off(&mut self, cpu: u32, thread: ThreadIndex) {
        self.cpus[cpu as usize] = None;
        let (position, _) = self.next[thread as usize];
        self.next[thread as usize] = (position + 1, Nanos(0));
    }
}
