//! Finds processes that could not fork because the kernel would refuse to commit the memory for a copy, even if the child never uses it.

use std::time::Instant;

use super::{Check, Run};
use crate::processes::{Process, field, field_bytes};
use crate::{Examination, Finding, Findings, memory_files};
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "overcommit",
    examines: "vm.overcommit_memory, for a fork of the largest process",
    run: Run::Reading(run),
};

/// The heuristic mode of vm.overcommit_memory: a fork fails only if a single mapping is larger than the machine's memory and swap.
const HEURISTIC_MODE: u64 = 0;
/// Smaller processes are not checked.
const MIN_CHECKED_BYTES: u64 = 256 << 20;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    if examination.environment.is_gvisor {
        return;
    }
    let (Some(mode), Some(memory)) = (machine.number("/proc/sys/vm/overcommit_memory"), machine.text("/proc/meminfo"))
    else {
        findings.add_not_examined("/proc/sys/vm/overcommit_memory and /proc/meminfo");
        return;
    };
    let limit = match limit(mode, &memory) {
        Limit::Bytes(limit) => limit,
        Limit::None => return,
        Limit::Unknown => {
            findings.add_not_examined("the limits in /proc/meminfo");
            return;
        }
    };
    let Some((process, needs)) = largest_refused(examination, mode, limit, findings) else {
        return;
    };
    findings.add(refused_fork_finding(
        examination,
        process,
        format!(
            "vm.overcommit_memory is {mode}; a copy needs {}, but only {} can be committed",
            units::bytes(needs),
            units::bytes(limit)
        ),
    ));
}

/// Returns the process whose copy would need the most memory, if that exceeds `limit`, and how much it needs.
fn largest_refused<'p>(
    examination: &'p Examination<'_>,
    mode: u64,
    limit: u64,
    findings: &mut Findings,
) -> Option<(&'p Process, u64)> {
    let large = examination
        .processes
        .iter()
        .filter(|process| process.data_bytes >= MIN_CHECKED_BYTES && process.data_bytes > limit);
    if mode != HEURISTIC_MODE {
        let wanted = large.map(|process| (process, process.data_bytes));
        return wanted.max_by_key(|(_, needs)| *needs);
    }
    let until = Instant::now() + memory_files::TIMEOUT;
    let mut most = None;
    let mut not_examined = 0;
    for process in large {
        let text = memory_files::read(examination.machine, process, "smaps", until);
        match text.and_then(|text| largest_mapping(&text)) {
            Some(needs) if needs > limit => most = most.max(Some((needs, process.pid))),
            Some(_) => {}
            None => not_examined += 1,
        }
    }
    if not_examined > 0 {
        findings.add_not_examined(format!(
            "whether a fork of {} larger than the limit would be refused: the mappings may not be read, or not quickly enough",
            units::counted(not_examined, "process", "processes")
        ));
    }
    let (needs, pid) = most?;
    let process = examination.processes.iter().find(|process| process.pid == pid)?;
    Some((process, needs))
}

fn refused_fork_finding(examination: &Examination<'_>, process: &Process, why: String) -> Finding {
    Finding::problem(format!(
        "a fork of {} (process {}) fails: it needs to commit too much memory",
        process.name, process.pid
    ))
    .evidence(why)
    .evidence("fork then fails with ENOMEM, even if the child would exec another program at once")
    .fix("launch by posix_spawn or vfork, which commit no memory")
    .fix(format!(
        "or add swap, or change the mode of vm.overcommit_memory, {}",
        examination.environment.where_settings_are_made()
    ))
    .fix_cost("in a looser mode, the out-of-memory killer acts when memory really runs out")
}

/// Returns the size of the largest mapping that counts as committed memory (flag `ac`), which excludes mappings with MAP_NORESERVE. `None`
/// if the table of mappings cannot be parsed.
fn largest_mapping(text: &str) -> Option<u64> {
    let mut largest = 0;
    let mut size = 0;
    for line in text.lines() {
        if let Some(kibibytes) = field(line, "Size") {
            size = kibibytes.trim_end_matches(" kB").trim().parse::<u64>().ok()? * 1024;
        }
        if field(line, "VmFlags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "ac")) {
            largest = largest.max(size);
        }
    }
    Some(largest)
}

/// How much memory a fork can commit.
enum Limit {
    None,
    Unknown,
    Bytes(u64),
}

/// Returns the limit in a mode of vm.overcommit_memory. Mode 0 refuses only a mapping larger than memory and swap; mode 1 has no limit;
/// mode 2 enforces the commit limit.
fn limit(mode: u64, memory: &str) -> Limit {
    let limit = match mode {
        0 => field_bytes(memory, "MemTotal").zip(field_bytes(memory, "SwapTotal")).map(|(memory, swap)| memory + swap),
        2 => field_bytes(memory, "CommitLimit")
            .zip(field_bytes(memory, "Committed_AS"))
            .map(|(limit, promised)| limit.saturating_sub(promised)),
        _ => return Limit::None,
    };
    limit.map_or(Limit::Unknown, Limit::Bytes)
}
