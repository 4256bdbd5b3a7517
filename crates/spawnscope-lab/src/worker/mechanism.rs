//! The launch mechanisms, by name.

use serde::{Deserialize, Serialize};

/// A way to create a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// fork; the child exits at once.
    ForkExit,
    /// fork and exec.
    ForkExec,
    /// vfork and exec: the parent's thread waits until the child has called exec.
    VforkExec,
    /// clone with CLONE_VM and CLONE_VFORK, with a separate stack.
    Clone,
    /// clone3 with CLONE_VM, CLONE_VFORK, CLONE_PIDFD and CLONE_CLEAR_SIGHAND.
    Clone3,
    /// clone with CLONE_VM: the parent continues at once.
    CloneDetached,
    /// posix_spawn of the C library.
    PosixSpawn,
    /// posix_spawnp of the C library, which searches PATH.
    PosixSpawnp,
    /// `PosixSpawn`, with the child's output read from a pipe.
    PosixSpawnPipe,
    /// system of the C library, with a shell.
    System,
    /// popen of the C library, with a shell, reading its output.
    Popen,
    /// The vspawn library of this workspace, with a new command for each launch.
    Vspawn,
    /// vspawn, with one prepared command for all launches.
    VspawnPrepared,
    /// `Vspawn`, with the child's output read from a pipe.
    VspawnPipe,
    /// `Vspawn`, without waiting for the exec.
    VspawnDetached,
    /// `Vspawn`, with all other descriptors closed in the child.
    VspawnCloseOthers,
    /// vfork; the child closes each number up to the limit.
    CloseLoop,
    /// vfork; the child closes each number that it finds in /proc/self/fd.
    CloseProc,
    /// vfork; the child closes all with one close_range.
    CloseRange,
    /// clone with additional CLONE_FILES; the child gets its own descriptor table from close_range with CLOSE_RANGE_UNSHARE.
    CloseUnshare,
}

impl Mechanism {
    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::ForkExit => "fork + _exit",
            Mechanism::ForkExec => "fork + exec",
            Mechanism::VforkExec => "vfork + exec",
            Mechanism::Clone => "clone",
            Mechanism::Clone3 => "clone3",
            Mechanism::CloneDetached => "clone, detached",
            Mechanism::PosixSpawn => "posix_spawn",
            Mechanism::PosixSpawnp => "posix_spawnp",
            Mechanism::PosixSpawnPipe => "posix_spawn, pipe",
            Mechanism::System => "system",
            Mechanism::Popen => "popen",
            Mechanism::Vspawn => "vspawn",
            Mechanism::VspawnPrepared => "vspawn, prepared",
            Mechanism::VspawnPipe => "vspawn, pipe",
            Mechanism::VspawnDetached => "vspawn, detached",
            Mechanism::VspawnCloseOthers => "vspawn, close_others",
            Mechanism::CloseLoop => "vfork, close loop",
            Mechanism::CloseProc => "vfork, /proc/self/fd",
            Mechanism::CloseRange => "vfork, close_range",
            Mechanism::CloseUnshare => "clone, unshare",
        }
    }

    /// Whether the child's output is read from a pipe.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Mechanism::PosixSpawnPipe | Mechanism::VspawnPipe | Mechanism::Popen
        )
    }
}
