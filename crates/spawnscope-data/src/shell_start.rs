//! What `spawnscope shell` observes while a shell starts: which line it executes, and which program
//! it waits for.

use crate::event::{Frame, Nanos, Pid};

/// What a shell did in some part of its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Activity {
    /// Whether the shell had shown its first prompt.
    pub after_prompt: bool,
    /// The lines that it was executing, the innermost first. Empty: none, or unknown.
    pub frames: Vec<Frame>,
    /// The process that it was waiting for. `None`: its own work.
    pub program: Option<LaunchedProgram>,
}

/// A process that a shell waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaunchedProgram {
    /// The name of the program; `(bash)` for a fork of the shell.
    pub name: Vec<u8>,
    pub pid: Pid,
}

/// An activity, and how long it was observed.
#[derive(Clone, Debug)]
pub struct Observed {
    pub activity: Activity,
    /// Its time in all starts of the shell that were observed.
    pub time: Nanos,
}
