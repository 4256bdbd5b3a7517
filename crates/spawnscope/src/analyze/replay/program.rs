//! What each recorded thread does, free of when it did it: so much CPU, then wake that one, then wait for this.
//! Each thing it does stands at its place, the phase of a launch on whose account it is, so that a change can find it.

use std::ops::Range;

use super::activity::Activity;
use super::packed::Steps;
use crate::analyze::external_wait::ExternalWait;
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// One recorded wait that another recorded thread ended.
pub type Token = u32;

/// One thing that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Uses a CPU for so long.
    Run(Nanos, Activity),
    /// Uses a CPU for so long because it is being recorded.
    Record(Nanos, Activity),
    /// Could use a CPU, while so much of CPUs that recorded threads left free passes it by.
    Lose(Nanos, Activity),
    /// Waits until somebody has signalled this, which took so long.
    Wait(Token, Activity, Nanos),
    /// Waits so long for something outside.
    Sleep(Nanos, Activity, ExternalWait),
    /// Lets the thread that waits for this go on.
    Wake(Token),
    /// Makes a thread.
    Spawn(ThreadIndex),
}

/// The programs of all threads, in one piece of memory: there are several steps for each launch.
#[derive(Clone, Debug)]
pub struct Programs {
    steps: Steps,
    /// Where the steps of each thread end; they begin where those of the one before end.
    ends: Vec<u32>,
    /// The launch that each thread belongs to.
    pub launch_of: Vec<u32>,
    /// By token: whether it is signalled from the beginning.
    pub given: Vec<bool>,
    /// The thread that is there at the beginning.
    pub root: ThreadIndex,
    /// The thread whose end is the end of the wall.
    pub last: ThreadIndex,
}

impl Programs {
    /// The programs of these threads, whose steps are to come.
    #[must_use]
    pub fn new(launch_of: Vec<u32>, tokens: Token, root: ThreadIndex, last: ThreadIndex) -> Programs {
        Programs {
            steps: Steps::default(),
            ends: Vec::with_capacity(launch_of.len()),
            launch_of,
            given: vec![false; tokens as usize],
            root,
            last,
        }
    }

    /// Adds what the next thread does, which `write` puts behind what the others do.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Steps)) {
        write(&mut self.steps);
        self.ends.push(self.steps.len() as u32);
    }

    /// What a thread does.
    pub fn of(&self, thread: ThreadIndex) -> impl Iterator<Item = Step> + '_ {
        self.range(thread).map(|index| self.steps.get(index))
    }

    /// What it does at a place.
    pub(in crate::analyze) fn step(&self, thread: ThreadIndex, index: usize) -> Option<Step> {
        self.range(thread).nth(index).map(|index| self.steps.get(index))
    }

    fn range(&self, thread: ThreadIndex) -> Range<usize> {
        let start = thread.checked_sub(1).map_or(0, |before| self.ends[before as usize]);
        start as usize..self.ends[thread as usize] as usize
    }
}

/// What is played: it may come up with the steps of a thread when that begins, and forget them when it ends.
pub trait Script {
    /// The launch that each thread belongs to.
    fn launch_of(&self) -> &[u32];
    /// By token: whether it is signalled from the beginning.
    fn given(&self) -> &[bool];
    /// The thread that is there at the beginning.
    fn root(&self) -> ThreadIndex;
    /// The thread whose end is the end of the wall.
    fn last(&self) -> ThreadIndex;
    /// A thread begins.
    fn begin(&mut self, thread: ThreadIndex);
    /// What a thread that has begun and not ended does, by its place; `None` behind its last step. Places before the one that was asked for
    /// last but one are not asked for.
    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step>;
    /// A thread has done all that it does.
    fn end(&mut self, thread: ThreadIndex);
}

impl Script for &Programs {
    fn launch_of(&self) -> &[u32] {
        &self.launch_of
    }

    fn given(&self) -> &[bool] {
        &self.given
    }

    fn root(&self) -> ThreadIndex {
        self.root
    }

    fn last(&self) -> ThreadIndex {
        self.last
    }

    fn begin(&mut self, _: ThreadIndex) {}

    fn step(&mut self, thread: ThreadIndex, index: usize) -> Option<Step> {
        Programs::step(self, thread, index)
    }

    fn end(&mut self, _: ThreadIndex) {}
}
