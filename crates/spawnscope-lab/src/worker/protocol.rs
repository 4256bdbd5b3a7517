//! The requests to a worker, its replies, and the launch mechanisms that they name. Each message is
//! one line of JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::LabError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// The number of bytes of memory to populate, in addition to the process's own.
    pub memory_bytes: u64,
    pub pages: Pages,
    /// The number of files to open, in addition to the process's own.
    pub open_files: u64,
    /// The limit on open files, which children inherit; `None` leaves it unchanged.
    pub files_limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pages {
    #[default]
    Small,
    Huge,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    pub argv: Vec<String>,
    pub status: i32,
    /// The expected output, if it is read from a pipe.
    pub output: String,
}

impl Program {
    /// Returns a program that is expected to exit with status 0 and to write nothing.
    pub fn new<A: AsRef<Path>>(argv: impl IntoIterator<Item = A>) -> Program {
        Program {
            argv: argv.into_iter().map(|argument| argument.as_ref().display().to_string()).collect(),
            status: 0,
            output: String::new(),
        }
    }

    #[must_use]
    pub fn with_status(mut self, status: i32) -> Program {
        self.status = status;
        self
    }
}

/// The index of the wall time in the reply to `Request::Launch`.
pub const WALL: usize = 0;
/// The index of the total CPU time in the reply to `Request::Launch`.
pub const CPU: usize = 2;
/// The index of the system CPU time in the reply to `Request::Launch`.
pub const SYSTEM: usize = 4;
/// A request. All times are in nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Launch and wait `count` times. If `count` is more than one, an uncounted launch comes first.
    /// The reply has the medians of the wall and of the time inside the call, and the means of
    /// total, user and system CPU time, including children.
    Launch { mechanism: Mechanism, program: Program, count: u32 },
    /// Populate more memory. The reply has no values.
    Grow { bytes: u64 },
    /// Launch all of these files concurrently. The reply has the time of each until it was reaped,
    /// in the order in which they were reaped.
    Concurrent { paths: Vec<String>, status: i32 },
}

/// The values of a performed request. A request that was performed incorrectly has none.
pub type Reply = Result<Vec<f64>, LabError>;

spawnscope_data::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Mechanism {
        /// fork; the child exits immediately.
        ForkExit = "fork + _exit",
        ForkExec = "fork + exec",
        /// vfork and exec. The thread of the parent waits until the child has called exec.
        VforkExec = "vfork + exec",
        /// clone with CLONE_VM and CLONE_VFORK, with a separate stack.
        Clone = "clone",
        /// clone3 with CLONE_VM, CLONE_VFORK, CLONE_PIDFD and CLONE_CLEAR_SIGHAND.
        Clone3 = "clone3",
        /// clone with CLONE_VM. The parent continues immediately.
        CloneDetached = "clone, detached",
        PosixSpawn = "posix_spawn",
        /// Like `PosixSpawn`, but reads the child's output from a pipe.
        PosixSpawnPipe = "posix_spawn, pipe",
        /// system of the C library, which starts a shell.
        System = "system",
        /// popen of the C library, which starts a shell and reads its output.
        Popen = "popen",
        /// The vspawn library of this workspace, with a new command for each launch.
        Vspawn = "vspawn",
        /// Like `Vspawn`, but with one prepared command for all launches.
        VspawnPrepared = "vspawn, prepared",
        /// Like `Vspawn`, but reads the child's output from a pipe.
        VspawnPipe = "vspawn, pipe",
        /// Like `Vspawn`, but does not wait for the exec.
        VspawnDetached = "vspawn, detached",
        /// Like `Vspawn`, but the child closes all descriptors except standard input, output and
        /// error.
        VspawnCloseOthers = "vspawn, close_others",
    }
}

impl Mechanism {
    /// Returns whether the mechanism reads the child's output from a pipe.
    pub fn reads_output(self) -> bool {
        matches!(self, Mechanism::PosixSpawnPipe | Mechanism::VspawnPipe | Mechanism::Popen)
    }
}
