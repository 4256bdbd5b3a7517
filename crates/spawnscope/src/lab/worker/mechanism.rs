//! The ways to make a process, by name.

use serde::{Deserialize, Serialize};

/// A way to make a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// The child only ends.
    ForkExit,
    /// The classic.
    ForkExec,
    /// The parent's thread waits until the child has called exec.
    VforkExec,
    /// clone with CLONE_VM and CLONE_VFORK, on a stack of its own.
    Clone,
    /// clone3 with CLONE_VM, CLONE_VFORK, CLONE_PIDFD and CLONE_CLEAR_SIGHAND.
    Clone3,
    /// clone with CLONE_VM: the parent goes on at once.
    CloneDetached,
    /// The C library's.
    PosixSpawn,
    /// The C library's, which looks the program up along PATH.
    PosixSpawnp,
    /// The same, and what the child writes is read through a pipe.
    PosixSpawnPipe,
    /// The C library's, through a shell.
    System,
    /// The C library's, through a shell, and what it writes is read.
    Popen,
    /// The workspace's library, told what to launch each time.
    Vspawn,
    /// The same, told once.
    VspawnPrepared,
    /// `Vspawn`, and what the child writes is read through a pipe.
    VspawnPipe,
    /// `Vspawn`, without waiting for the exec.
    VspawnDetached,
    /// `Vspawn`, with all other descriptors closed in the child.
    VspawnCloseOthers,
    /// vfork, and the child closes each number up to the limit.
    CloseLoop,
    /// vfork, and the child closes each number that it finds in /proc/self/fd.
    CloseProc,
    /// vfork, and the child closes all by one close_range.
    CloseRange,
    /// clone with CLONE_FILES too, and the child takes a table of its own by close_range with CLOSE_RANGE_UNSHARE.
    CloseUnshare,
}

impl Mechanism {
    /// What tables call it.
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

    /// Whether the child writes into a pipe that is read.
    #[must_use]
    pub fn reads(self) -> bool {
        matches!(
            self,
            Mechanism::PosixSpawnPipe | Mechanism::VspawnPipe | Mechanism::Popen
        )
    }
}
