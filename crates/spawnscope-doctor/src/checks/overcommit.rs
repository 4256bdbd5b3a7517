//! Finds the process that could not fork because the kernel enforces a limit on committed memory
//! (vm.overcommit_memory is 2), even if the child would never use the memory. In the heuristic
//! mode, the kernel refuses a mapping that is too large for a copy when it is made.

use crate::processes::field_bytes;
use crate::{Examination, Finding, Findings};
use spawnscope_data::units;

/// The mode of vm.overcommit_memory that enforces the commit limit.
const STRICT_MODE: u64 = 2;
/// Smaller processes are not checked.
const MIN_CHECKED_BYTES: u64 = 256 << 20;

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if examination.environment.is_gvisor {
        return;
    }
    let (Some(mode), Some(memory)) = (machine.number("/proc/sys/vm/overcommit_memory"), machine.text("/proc/meminfo"))
    else {
        return findings.add_not_examined("/proc/sys/vm/overcommit_memory and /proc/meminfo");
    };
    if mode != STRICT_MODE {
        return;
    }
    let Some((limit, committed)) = field_bytes(&memory, "CommitLimit").zip(field_bytes(&memory, "Committed_AS")) else {
        return findings.add_not_examined("the limits in /proc/meminfo");
    };
    let left = limit.saturating_sub(committed);
    let largest = examination.processes.iter().max_by_key(|process| process.data_bytes);
    let Some(process) = largest.filter(|largest| largest.data_bytes >= MIN_CHECKED_BYTES && largest.data_bytes > left)
    else {
        return;
    };
    let title =
        format!("a fork of {} (process {}) fails: it needs to commit too much memory", process.name, process.pid);
    findings.add(
        Finding::problem(title)
            .evidence(format!(
                "vm.overcommit_memory is {mode}; a copy needs {}, but only {} can be committed",
                units::bytes(process.data_bytes),
                units::bytes(left)
            ))
            .evidence("fork then fails with ENOMEM, even if the child would exec another program at once")
            .fix("launch by posix_spawn or vfork, which commit no memory")
            .fix(format!(
                "or add swap, or change the mode of vm.overcommit_memory, {}",
                examination.environment.where_settings_are_made()
            ))
            .fix_cost("in a looser mode, the out-of-memory killer acts when memory really runs out"),
    );
}
