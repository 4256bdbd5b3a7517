//! What each recorded thread does, free of when it did it: so much CPU, then wake that one, then wait for this.
//! Each thing it does stands at its place, the phase of a launch on whose account it is, so that a change can find it.

use super::place::Place;
use crate::analyze::outside::Outside;
use crate::analyze::timeline::ThreadIndex;
use crate::event::Nanos;

/// One recorded wait that another recorded thread ended.
pub type Token = u32;

/// One thing that a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Uses a CPU for so long.
    Run(Nanos, Place),
    /// Uses a CPU for so long because it is being recorded.
    Record(Nanos, Place),
    /// Could use a CPU, while so much of CPUs that recorded threads left free passes it by.
    Lose(Nanos, Place),
    /// Waits until somebody has signalled this, which took so long.
    Wait(Token, Place, Nanos),
    /// Waits so long for something outside.
    Sleep(Nanos, Place, Outside),
    /// Lets the thread that waits for this go on.
    Wake(Token),
    /// Makes a thread.
    Spawn(ThreadIndex),
}

/// The programs of all threads.
#[derive(Clone, Debug)]
pub struct Programs {
    /// By thread.
    pub steps: Vec<Vec<Step>>,
    /// The launch that each thread belongs to.
    pub launch_of: Vec<u32>,
    /// By token: whether it is signalled from the beginning.
    pub given: Vec<bool>,
    /// The thread that is there at the beginning.
    pub root: ThreadIndex,
    /// The thread whose end is the end of the wall.
    pub last: ThreadIndex,
}
