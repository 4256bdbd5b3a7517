//! Programs: the steps of each recorded thread, without the times at which they happened.

use super::contention::CpuWaits;
use super::steps::{Step, Steps, Token};
use super::supervision::Supervision;
use crate::model::external_wait::ExternalWait;
use crate::model::timeline::ThreadIndex;
use foldhash::{HashMap, HashSet};
use spawnscope_data::event::Nanos;

/// The programs of all threads, in one allocation, because there are several steps per launch.
#[derive(Clone, Debug)]
pub struct Programs {
    steps: Steps,
    /// End of the steps of each thread. They start at the end of the previous thread.
    ends: Vec<u32>,
    pub launch_of: Vec<u32>,
    /// For each thread, whether changes to other launches cannot change its steps.
    pub(in crate::predict) is_independent: Vec<bool>,
    /// The threads that do work of their own while they supervise launches.
    pub(in crate::predict) supervisions: HashMap<ThreadIndex, Supervision>,
    /// The threads that another thread kills, at any moment of a replay.
    pub(super) mortal: HashSet<ThreadIndex>,
    pub signalled_at_start: Vec<bool>,
    /// The tokens of waits for a permission scanner that is recorded itself.
    pub(in crate::predict) scanned: Vec<Token>,
    pub cpu_waits: CpuWaits,
    /// The share of long losses of CPU time that recording caused.
    pub(super) by_recorder: f64,
    /// The threads that exist at the start. The first thread of the command comes first.
    pub roots: Vec<ThreadIndex>,
    /// The thread whose end is the end of the wall.
    pub last: ThreadIndex,
}

impl Programs {
    pub fn new(launch_of: Vec<u32>, token_count: Token, roots: Vec<ThreadIndex>, last: ThreadIndex) -> Programs {
        Programs {
            steps: Steps::default(),
            ends: Vec::with_capacity(launch_of.len()),
            launch_of,
            is_independent: Vec::new(),
            supervisions: HashMap::default(),
            mortal: HashSet::default(),
            signalled_at_start: vec![false; token_count as usize],
            scanned: Vec::new(),
            cpu_waits: CpuWaits::default(),
            by_recorder: 0.0,
            roots,
            last,
        }
    }

    pub(super) fn reserve(&mut self, steps: usize) {
        self.steps.reserve(steps);
    }

    /// Adds the program of the next thread. `write` appends its steps, and learns whether another
    /// thread kills this one.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Steps, bool)) {
        let thread = self.ends.len() as ThreadIndex;
        let launch = self.launch_of[thread as usize];
        let is_mortal = self.is_mortal(thread);
        write(&mut self.steps, is_mortal);
        self.ends.push(self.steps.len() as u32);
        let is_independent = self.steps_of(thread).all(|step| is_independent(step, launch));
        self.is_independent.push(is_independent);
        let supervision = Supervision::of(self.steps_of(thread), launch, is_mortal);
        if !supervision.is_empty() {
            self.supervisions.insert(thread, supervision);
        }
    }

    pub fn steps_of(&self, thread: ThreadIndex) -> impl Iterator<Item = Step> + '_ {
        let launch = self.launch_of[thread as usize];
        (self.start(thread)..self.end(thread)).map(move |index| self.steps.get(index, launch))
    }

    pub(crate) fn step(&self, thread: ThreadIndex, index: usize) -> Option<Step> {
        let index = self.start(thread) + index;
        (index < self.end(thread)).then(|| self.steps.get(index, self.launch_of[thread as usize]))
    }

    /// Returns the CPU time of the steps from `index` on that use nothing but a CPU, up to `limit`,
    /// and the number of these steps.
    pub(in crate::predict) fn cpu_from(
        &self,
        thread: ThreadIndex,
        index: usize,
        limit: Nanos,
        recording: f64,
    ) -> (Nanos, usize) {
        if self.is_mortal(thread) {
            return (Nanos(0), 0);
        }
        self.steps.cpu_in(self.start(thread) + index..self.end(thread), limit, recording)
    }

    /// Whether another thread may kill this one, after any step.
    pub(in crate::predict) fn is_mortal(&self, thread: ThreadIndex) -> bool {
        self.mortal.contains(&thread)
    }

    fn start(&self, thread: ThreadIndex) -> usize {
        thread.checked_sub(1).map_or(0, |before| self.ends[before as usize] as usize)
    }

    fn end(&self, thread: ThreadIndex) -> usize {
        self.ends[thread as usize] as usize
    }
}

/// Whether a step of a thread of this launch changes only with the launch. A wait may end earlier
/// if other launches change.
fn is_independent(step: Step, launch: u32) -> bool {
    match step {
        Step::Sleep(_, _, ExternalWait::Scanner(_)) => false,
        Step::Run(span, overhead, activity) => span.max(overhead) > Nanos(0) && activity.launch == launch,
        Step::Lose(span, activity) | Step::Sleep(span, activity, _) => span > Nanos(0) && activity.launch == launch,
        Step::Wake(_) => true,
        _ => false,
    }
}

/// The input of a simulation. An implementation may create the steps of a thread when the thread
/// starts, and drop them when it ends.
pub trait Script {
    fn programs(&self) -> &Programs;
    /// Returns, for each token, whether it is signalled from the start.
    fn signalled_at_start(&self) -> &[bool];
    fn begin(&mut self, thread: ThreadIndex);
    /// Returns a step of a running thread by its index. `None` after the last step. If `index` has
    /// been requested, no index below `index - 1` is requested again.
    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step>;
    /// Returns the CPU time of the steps from `index` on that the thread makes without a pause, up
    /// to `limit`, and their number. They are one stretch on a CPU.
    fn cpu_from(&mut self, thread: ThreadIndex, index: usize, limit: Nanos, recording: f64) -> (Nanos, usize);
    /// Notifies the script that a thread has completed its steps.
    fn end(&mut self, thread: ThreadIndex);
}

impl Script for &Programs {
    fn programs(&self) -> &Programs {
        self
    }

    fn signalled_at_start(&self) -> &[bool] {
        &self.signalled_at_start
    }

    fn begin(&mut self, _: ThreadIndex) {}

    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step> {
        Programs::step(self, thread, index)
    }

    fn cpu_from(&mut self, thread: ThreadIndex, index: usize, limit: Nanos, recording: f64) -> (Nanos, usize) {
        Programs::cpu_from(self, thread, index, limit, recording)
    }

    fn end(&mut self, _: ThreadIndex) {}
}
