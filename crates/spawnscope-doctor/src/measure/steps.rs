//! Times single steps of launches: a system call, and a move to another control group.

use std::fs;

use super::median;
use crate::machine::Machine;
use spawnscope_data::event::Nanos;
use spawnscope_system::launch_timing::timing::{make_system_calls, timed};

/// How many system calls a round makes.
const CALLS_PER_ROUND: u32 = 200;
/// How many rounds of system calls are timed.
const ROUNDS: usize = 9;
/// How many moves to a control group are timed.
const MOVES: usize = 5;

/// Returns the time of a system call that does nothing.
pub(super) fn system_call() -> Option<Nanos> {
    median(
        (0..ROUNDS)
            .map(|_| Nanos(timed(|| make_system_calls(CALLS_PER_ROUND)).0 / u64::from(CALLS_PER_ROUND)))
            .collect(),
    )
}

/// Returns the time to move a process into its current control group; `None` without permission to do so. This takes about as long as a
/// move into another group, because most of the time the kernel waits for all CPUs.
pub(super) fn migration(machine: &Machine) -> Option<Nanos> {
    let groups = machine.text("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    let file =
        roots.iter().map(|root| machine.path(format!("{root}/{group}/cgroup.procs"))).find(|file| file.exists())?;
    let mut times = Vec::new();
    for _ in 0..MOVES {
        let mut moved = Ok(());
        times.push(timed(|| moved = fs::write(&file, "0")));
        moved.ok()?;
    }
    median(times)
}
