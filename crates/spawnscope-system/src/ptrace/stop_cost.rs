//! Measures the CPU time that a stop takes of the thread that stops, which wakes its tracer, leaves
//! the CPU and comes back. It depends on the kernel and the processor, 5 us on a virtual machine.

use std::ffi::c_int;

use super::event::Event;
use super::request::{Options, Resume, interrupt, resume, seize};
use crate::clock;
use crate::launch_timing::clone::fork;
use crate::process::die_with_parent;
use spawnscope_data::event::{Nanos, Pid};

/// Number of times that the CPU time of some stops is measured; the first does not count.
const ROUNDS: usize = 6;
const STOPS: u64 = 16;

/// Stops a child of this thread at its system calls, and returns the median CPU time of a stop.
/// Takes 2 ms. `None` if tracing is not permitted.
pub fn measure() -> Option<Nanos> {
    let child = Pid(fork(call_forever).ok()?);
    let cost = cost_of_stops(child);
    // SAFETY: plain system calls on our own child, which was not reaped.
    unsafe {
        libc::kill(child.0, libc::SIGKILL);
        libc::waitpid(child.0, std::ptr::null_mut(), libc::__WALL);
    }
    cost
}

fn call_forever() -> c_int {
    die_with_parent(libc::SIGKILL);
    loop {
        // SAFETY: a plain system call.
        unsafe { libc::getppid() };
    }
}

fn cost_of_stops(child: Pid) -> Option<Nanos> {
    seize(child, Options::SYSTEM_CALLS | Options::KILL_ON_EXIT).ok()?;
    interrupt(child).ok()?;
    let await_stop = || matches!(Event::await_of(child)?, Event::Stopped(..)).then_some(());
    await_stop()?;
    let mut rounds = [0; ROUNDS];
    for round in &mut rounds {
        let before = clock::cpu_time_of(child)?;
        for _ in 0..STOPS {
            resume(child, Resume::ToSystemCall(0)).ok()?;
            await_stop()?;
        }
        *round = clock::cpu_time_of(child)?.since(before).0 / STOPS;
    }
    let counted = &mut rounds[1..];
    counted.sort_unstable();
    Some(Nanos(counted[counted.len() / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_costs_cpu_time() {
        let cost = measure().expect("tests may trace their children");
        assert!(cost > Nanos(100), "{cost:?}");
    }
}
