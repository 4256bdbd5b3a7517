//! Single steps of launches: a system call, and a move to another control group.

use std::fs;

use super::median;
use crate::machine::Machine;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::timing::{make_system_calls, timed};

const CALLS: u32 = 200;
const ROUNDS: usize = 9;
const MOVES: usize = 5;

/// The time of a system call that does nothing.
pub(super) fn system_call() -> Option<Nanos> {
    let round = |_| Nanos(timed(|| make_system_calls(CALLS)).0 / u64::from(CALLS));
    median((0..ROUNDS).map(round).collect())
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
    let move_there = |_| {
        let mut moved = Ok(());
        let time = timed(|| moved = fs::write(&file, "0"));
        moved.ok().map(|()| time)
    };
    median((0..MOVES).map(move_there).collect::<Option<_>>()?)
}
