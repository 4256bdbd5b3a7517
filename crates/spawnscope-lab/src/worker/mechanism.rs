//! The launch mechanisms, by name.

use serde::{Deserialize, Serialize};

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
