//! Measures how much recording adds to launches. The recorder launches children of its own,
//! recorded and not recorded in turn: what slows the machine for some milliseconds slows both. Only
//! CPU time counts, because other programs delay launches on a busy machine, but add no CPU time.
//! Some children exit at once, others execute the smallest static program. They are created as by
//! vfork, whose duration does not depend on the size of the recorder. All signals are blocked
//! meanwhile, because a child shares the recorder's memory and must not run its signal handlers.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::sys::signal::{SigSet, SigmaskHow};
use spawnscope_data::event::{Calibration, Constant, Pid};

use super::summarize;
use crate::arch::Entry;
use crate::clock::{cpu_time_of, cpu_time_of_thread};
use crate::launch_timing::clone::{ChildStack, CloneCall};
use crate::process::{await_end, reap};
use crate::tiny;

/// Number of rounds, each of which compares launches with and without recording. Together they take
/// 25 ms.
const ROUNDS: usize = 11;
/// Number of launches of each kind in a round. The fastest counts.
const LAUNCHES: usize = 5;

/// Returns how much recording adds to a launch without an exec, and to an exec. `as_recorded`
/// records what its argument does in this thread, and returns whether it succeeded. Constants
/// without a measurable difference are omitted.
pub fn recorded_launches(mut as_recorded: impl FnMut(&mut dyn FnMut()) -> bool) -> Vec<Calibration> {
    // If this fails, only what recording adds to launches stays unknown.
    let Ok(launcher) = Launcher::new() else { return Vec::new() };
    let rounds = (0..ROUNDS).map_while(|_| {
        let unrecorded = launcher.times();
        let mut recorded = None;
        as_recorded(&mut || recorded = launcher.times()).then(|| unrecorded.zip(recorded))
    });
    costs(&rounds.flatten().collect::<Vec<_>>())
}

/// Returns the constants from the times without and with recording. A launch with an exec is longer
/// by the sum of both constants.
fn costs(rounds: &[(LaunchTimes, LaunchTimes)]) -> Vec<Calibration> {
    let increase = |what, time: fn(&LaunchTimes) -> f64| {
        summarize(what, rounds.iter().map(|(unrecorded, recorded)| time(recorded) - time(unrecorded)).collect())
    };
    let launch = increase(Constant::RecordedLaunch, |[plain, _]| *plain);
    let exec = increase(Constant::RecordedExec, |[plain, executing]| executing - plain);
    launch.into_iter().chain(exec).collect()
}

struct Launcher {
    stack: ChildStack,
    program: OwnedFd,
}

/// The CPU time in the parent and the child, in nanoseconds, of a launch without an exec, and of
/// one with it.
type LaunchTimes = [f64; 2];

impl Launcher {
    fn new() -> io::Result<Launcher> {
        Ok(Launcher { stack: ChildStack::map()?, program: tiny::in_memory(&tiny::program(0, ""))? })
    }

    /// Measures launches without and with an exec in turn; `None` if one fails: a machine may
    /// refuse to execute programs in memory.
    fn times(&self) -> Option<LaunchTimes> {
        let blocked = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
        let program = self.program.as_raw_fd();
        let launches = [(); LAUNCHES].map(|()| [self.launch(exit_at_once, &program), self.launch(execute, &program)]);
        if let Ok(before) = blocked {
            let _ = before.thread_set_mask();
        }
        let fastest = |kind: usize| {
            let times = launches.iter().map(|times| times[kind]).collect::<Option<Vec<f64>>>();
            times.map(|times| times.into_iter().fold(f64::INFINITY, f64::min))
        };
        Some([fastest(0)?, fastest(1)?])
    }

    fn launch(&self, entry: Entry, program: &RawFd) -> Option<f64> {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK;
        let before = cpu_time_of_thread();
        // SAFETY: the child only makes system calls, and this process waits for its exec or end.
        // The descriptor outlives it.
        let child = unsafe { self.stack.start(CloneCall::Clone { flags }, entry, std::ptr::from_ref(program).cast()) };
        let child = child.ok()?;
        let in_child = await_end(child).ok().and_then(|()| cpu_time_of(Pid(child)));
        let (_, status) = reap(child).ok()?;
        let in_parent = cpu_time_of_thread().since(before);
        (status == 0).then_some((in_parent.0 + in_child?.0) as f64)
    }
}

unsafe extern "C" fn exit_at_once(_: *const u8) -> ! {
    // SAFETY: exits at once.
    unsafe { libc::_exit(0) }
}

unsafe extern "C" fn execute(program: *const u8) -> ! {
    // SAFETY: the argument is a descriptor.
    tiny::execute(unsafe { *program.cast::<RawFd>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exec_counts_without_its_launch_and_slow_rounds_do_not_count() {
        let times = |plain, executing| [plain, executing];
        let mut rounds: Vec<_> = (0..9).map(|_| (times(30_000.0, 100_000.0), times(45_000.0, 135_000.0))).collect();
        rounds[4].1 = times(1e6, 4e6);
        let found: Vec<_> = costs(&rounds).iter().map(|row| (row.what, row.ns as u64)).collect();
        assert_eq!(found, [(Constant::RecordedLaunch, 15_000), (Constant::RecordedExec, 20_000)]);
        let faster: Vec<_> = (0..9).map(|_| (times(30_000.0, 100_000.0), times(20_000.0, 90_000.0))).collect();
        assert_eq!(costs(&faster), [], "unknown, because recording cannot make a launch faster");
    }

    #[test]
    fn an_exec_makes_a_launch_longer() {
        let times = Launcher::new().unwrap().times();
        // A machine may refuse to execute programs in memory.
        assert!(times.is_none_or(|[plain, executing]| plain > 0.0 && executing > plain));
        let mask = SigSet::thread_get_mask().unwrap();
        assert!(!mask.contains(nix::sys::signal::SIGINT), "the signal mask is restored");
    }

    #[test]
    fn nothing_is_known_if_recording_fails() {
        assert_eq!(recorded_launches(|_| false), []);
    }
}
