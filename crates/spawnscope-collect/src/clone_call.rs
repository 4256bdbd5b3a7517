//! Determines how a process is created, from the number and flags of the system call that creates
//! it.

use spawnscope_data::event::Mechanism;
use spawnscope_system::arch::FORK_NUMBERS;

pub(crate) const CLONE_VM: u64 = 0x100;
pub(crate) const CLONE_VFORK: u64 = 0x4000;
/// The flags of libc's fork: the exit signal, and where to store the child's tid.
const FORK_FLAGS: u64 = 0xff | 0x0100_0000 | 0x0020_0000 | 0x0010_0000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CloneCall {
    /// The number of the call; negative for a 32-bit call.
    pub(crate) number: libc::c_long,
    /// The CLONE_* flags as passed; 0 for fork and vfork.
    pub(crate) flags: u64,
    /// Whether the caller passed no stack, or its own, so that the child runs on the caller's stack
    /// or on a copy of it.
    pub(crate) shares_stack: bool,
}

impl CloneCall {
    /// Whether the child runs in the creator's memory until its exec.
    pub(crate) fn is_spawn(self) -> bool {
        matches!(self.mechanism(), Some(Mechanism::Vfork | Mechanism::PosixSpawn))
    }

    pub(crate) fn mechanism(self) -> Option<Mechanism> {
        let CloneCall { number, flags, shares_stack } = self;
        let spawns = flags & (CLONE_VM | CLONE_VFORK) == CLONE_VM | CLONE_VFORK;
        Some(match number {
            _ if FORK_NUMBERS.is_some_and(|[fork, _]| number == fork) => Mechanism::Fork,
            _ if FORK_NUMBERS.is_some_and(|[_, vfork]| number == vfork) => Mechanism::Vfork,
            libc::SYS_clone if FORK_NUMBERS.is_none() && spawns && shares_stack => Mechanism::Vfork,
            _ if spawns => Mechanism::PosixSpawn,
            libc::SYS_clone if flags & !FORK_FLAGS == 0 => Mechanism::Fork,
            libc::SYS_clone => Mechanism::Clone,
            libc::SYS_clone3 => Mechanism::Clone3,
            _ => return None,
        })
    }
}
