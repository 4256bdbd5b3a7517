//! Single steps of launches: a system call, and a move to another control group.

use std::fs;

use super::median;
use crate::machine::Machine;
use spawnscope_collect::now;
use spawnscope_data::event::Nanos;

const CALLS: u64 = 200;
const ROUNDS: usize = 9;
const MOVES: usize = 5;

/// The time of a system call that does nothing.
pub(super) fn system_call() -> Option<Nanos> {
    let round = || {
        let began = now();
        for _ in 0..CALLS {
            // SAFETY: a plain system call without arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        Nanos(now().since(began).0 / CALLS)
    };
    median((0..ROUNDS).map(|_| round()).collect())
}

/// The time to move a process to another control group. Most of it is spent waiting for all CPUs, even if the target is the process's
/// current group. Unknown without the permission to move processes.
pub(super) fn migration(machine: &Machine) -> Option<Nanos> {
    let groups = machine.text("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let file = roots
        .iter()
        .map(|root| machine.path(format!("{root}/{group}/cgroup.procs")))
        .find(|file| file.exists())?;
    let times: Option<Vec<Nanos>> = (0..MOVES)
        .map(|_| {
            let began = now();
            fs::write(&file, "0").ok()?;
            Some(now().since(began))
        })
        .collect();
    median(times?)
}
