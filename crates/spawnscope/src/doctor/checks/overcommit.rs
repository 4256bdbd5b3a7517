//! Whether the kernel would refuse a fork of a large process for want of memory that it would never use.

use super::Check;
use crate::doctor::processes::field;
use crate::doctor::{Examination, Finding, Findings};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "overcommit",
    looks_at: "vm.overcommit_memory, against a fork of the largest process",
    run,
};

/// Below, no process is worth a word.
const LARGE: u64 = 256 << 20;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if examination.surroundings.is_gvisor {
        return;
    }
    let (Some(mode), Some(memory)) = (
        machine.number("/proc/sys/vm/overcommit_memory"),
        machine.text("/proc/meminfo"),
    ) else {
        findings.unseen("/proc/sys/vm/overcommit_memory and /proc/meminfo");
        return;
    };
    let Some(largest) = examination.processes.iter().max_by_key(|process| process.data_bytes) else {
        return;
    };
    let limit = match limit(mode, &memory) {
        Limit::Bytes(limit) => limit,
        Limit::None => return,
        Limit::Unknown => {
            findings.unseen("the limits in /proc/meminfo");
            return;
        }
    };
    if largest.data_bytes < LARGE || largest.data_bytes <= limit {
        return;
    }
    let finding = Finding::problem(format!(
        "a fork of {} (process {}) fails: not enough memory may be promised",
        largest.name, largest.pid
    ))
    .evidence(format!(
        "vm.overcommit_memory is {mode}; a copy needs {}, and {} may be promised",
        units::bytes(largest.data_bytes),
        units::bytes(limit)
    ))
    .evidence("fork then fails with ENOMEM, although the child would execute another program at once")
    .fix("launch by posix_spawn or vfork, which promise nothing")
    .fix(format!(
        "or more swap, or another mode of vm.overcommit_memory, {}",
        examination.surroundings.where_settings_are_made()
    ))
    .fix_cost("with a looser mode, memory that is really used up ends in the out-of-memory killer");
    findings.add(finding);
}

/// How much memory may still be promised.
enum Limit {
    None,
    Unknown,
    Bytes(u64),
}

/// Mode 0 refuses only what the whole machine could not hold; mode 2 keeps to what is promised.
fn limit(mode: u64, memory: &str) -> Limit {
    let bytes = |name: &str| {
        let value = field(memory, name)?.trim_end_matches(" kB");
        Some(value.parse::<u64>().ok()? * 1024)
    };
    let limit = match mode {
        0 => bytes("MemTotal")
            .zip(bytes("SwapTotal"))
            .map(|(memory, swap)| memory + swap),
        2 => bytes("CommitLimit")
            .zip(bytes("Committed_AS"))
            .map(|(limit, promised)| limit.saturating_sub(promised)),
        _ => return Limit::None,
    };
    limit.map_or(Limit::Unknown, Limit::Bytes)
}
