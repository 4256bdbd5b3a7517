//! The launch mechanisms, by name.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// fork; the child exits immediately.
    ForkExit,
    ForkExec,
    /// vfork and exec. The thread of the parent waits until the child has called exec.
    VforkExec,
    /// clone with CLONE_VM and CLONE_VFORK, with a separate stack.
    Clone,
    /// clone3 with CLONE_VM, CLONE_VFORK, CLONE_PIDFD and CLONE_CLEAR_SIGHAND.
    Clone3,
    /// clone with CLONE_VM. The parent continues immediately.
    CloneDetached,
    PosixSpawn,
    /// Like `PosixSpawn`, but reads the child's output from a pipe.
    PosixSpawnPipe,
    /// system of the C library, which starts a shell.
    System,
    /// popen of the C library, which starts a shell and reads its output.
    Popen,
    /// The vspawn library of this workspace, with a new command for each launch.
    Vspawn,
    /// Like `Vspawn`, but with one prepared command for all launches.
    VspawnPrepared,
    /// Like `Vspawn`, but reads the child's output from a pipe.
    VspawnPipe,
    /// Like `Vspawn`, but does not wait for the exec.
    VspawnDetached,
    /// Like `Vspawn`, but the child closes all descriptors except standard input, output and error.
    VspawnCloseOthers,
}

impl Mechanism {
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ForkExit => "fork + _exit",
            Mechanism::ForkExec => "fork + exec",
            Mechanism::VforkExec => "vfork + exec",
            Mechanism::Clone => "clone",
            Mechanism::Clone3 => "clone3",
            Mechanism::CloneDetached => "clone, detached",
            Mechanism::PosixSpawn => "posix_spawn",
            Mechanism::PosixSpawnPipe => "posix_spawn, pipe",
            Mechanism::System => "system",
            Mechanism::Popen => "popen",
            Mechanism::Vspawn => "vspawn",
            Mechanism::VspawnPrepared => "vspawn, prepared",
            Mechanism::VspawnPipe => "vspawn, pipe",
            Mechanism::VspawnDetached => "vspawn, detached",
            Mechanism::VspawnCloseOthers => "vspawn, close_others",
        }
    }

    /// Returns whether the mechanism reads the child's output from a pipe.
    pub fn reads_output(self) -> bool {
        matches!(self, Mechanism::PosixSpawnPipe | Mechanism::VspawnPipe | Mechanism::Popen)
    }
}
