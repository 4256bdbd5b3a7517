//! Times launches by the recorder itself, in order to measure how much recording adds to them. Some children exit at once, others execute
//! the smallest static program. They are created as by vfork, whose duration does not depend on the size of the recorder. All signals are
//! blocked meanwhile, because a child shares the recorder's memory and must not run its signal handlers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::signal::SigSet;

use crate::arch::Entry;
use crate::launch_timing::clone::{ChildStack, CloneCall};
use crate::launch_timing::timing::LaunchTimer;
use crate::process::reap;
use crate::tiny;

/// Number of launches with an exec, and of launches without one. Together they take 4 ms.
pub(super) const ROUNDS: usize = 25;

/// A stack and a program for children.
pub(super) struct Launcher {
    stack: ChildStack,
    program: OwnedFd,
}

/// The durations of launches, in nanoseconds.
pub(super) struct LaunchTimes {
    /// Launches without an exec.
    pub(super) plain: Vec<f64>,
    /// Launches with an exec.
    pub(super) executing: Vec<f64>,
}

impl Launcher {
    pub(super) fn new() -> io::Result<Launcher> {
        Ok(Launcher { stack: ChildStack::map()?, program: tiny::in_memory(&tiny::program(0, ""))? })
    }

    /// Times launches without and with an exec in turn. Failed launches have no times: a machine may refuse to execute programs in memory.
    pub(super) fn times(&self) -> LaunchTimes {
        let blocked = SigSet::all().thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_SETMASK);
        let program = self.program.as_raw_fd();
        let rounds = 0..ROUNDS;
        let (plain, executing): (Vec<_>, Vec<_>) =
            rounds.map(|_| (self.launch(exit_at_once, &program), self.launch(execute, &program))).unzip();
        if let Ok(before) = blocked {
            let _ = before.thread_set_mask();
        }
        LaunchTimes {
            plain: plain.into_iter().flatten().collect(),
            executing: executing.into_iter().flatten().collect(),
        }
    }

    /// Times a launch; `None` if it fails.
    fn launch(&self, entry: Entry, program: &RawFd) -> Option<f64> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK;
        let timer = LaunchTimer::begin();
        // SAFETY: the child only makes system calls, and this process waits for its exec or end. The descriptor outlives it.
        let child = unsafe { self.stack.start(CloneCall::Clone { flags }, entry, std::ptr::from_ref(program).cast()) };
        let (_, status) = reap(child.ok()?).ok()?;
        (status == 0).then(|| timer.end().wall.0 as f64)
    }
}

unsafe extern "C" fn exit_at_once(_: *const u8) -> ! {
    // SAFETY: exits at once.
    unsafe { libc::_exit(0) }
}

/// Executes the program with this descriptor.
unsafe extern "C" fn execute(program: *const u8) -> ! {
    // SAFETY: the argument is a descriptor.
    tiny::execute(unsafe { *program.cast::<RawFd>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exec_makes_a_launch_longer() {
        let launcher = Launcher::new().unwrap();
        let times = launcher.times();
        assert_eq!(times.plain.len(), ROUNDS);
        let [plain, executing] =
            [&times.plain, &times.executing].map(|times| times.iter().copied().fold(f64::INFINITY, f64::min));
        assert!(plain > 0.0);
        // A machine may refuse to execute programs in memory. The minimum is then infinite.
        assert!(executing > plain, "{:?}", times.executing);
        let mask = SigSet::thread_get_mask().unwrap();
        assert!(!mask.contains(nix::sys::signal::SIGINT), "the signal mask is restored");
    }
}
