//! Large processes that run now, and what a fork of each would cost here: without huge pages, their page tables are copied.

use super::Check;
use crate::doctor::processes::{self, Process, field};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::{Constant, Nanos};
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "large-parents",
    looks_at: "the largest processes, huge pages, and the page tables a fork copies",
    run,
};

const MOST_TOLD: usize = 3;
/// Forks from here on are told.
const TOLD_FROM: Nanos = Nanos(10_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let constant = |what| examination.measured.constant(what);
    let (Some(copy), Some(free)) = (constant(Constant::PageCopy), constant(Constant::PageFree)) else {
        findings.unseen("what a fork costs for each megabyte could not be measured");
        return;
    };
    let mut processes: Vec<&Process> = examination.processes.iter().collect();
    let children = processes::children(&examination.processes);
    processes.sort_by_key(|process| std::cmp::Reverse(process.anonymous_bytes));
    let fork = |process: &Process| {
        let small = process.anonymous_bytes.saturating_sub(huge_bytes(machine, process));
        Nanos(((copy + free) * small as f64 / f64::from(1 << 20)) as u64)
    };
    let large: Vec<(&Process, Nanos)> = processes
        .into_iter()
        .take(MOST_TOLD)
        .map(|process| (process, fork(process)))
        .filter(|(_, fork)| *fork >= TOLD_FROM)
        .collect();
    let Some((_, dearest)) = large.iter().max_by_key(|(_, fork)| *fork) else {
        return;
    };
    let count = |process: &Process| children.get(&process.pid).copied().unwrap_or_default();
    let launches = large.iter().any(|(process, _)| count(process) > 0);
    let mut finding = Finding::problem_if(launches, "a fork of the largest processes is dear")
        .effect(Effect::modelled(*dearest, "each fork of the largest"));
    for (process, fork) in &large {
        let children = units::counted(count(process), "child", "children");
        finding = finding.evidence(format!(
            "{} (process {}): {} of anonymous memory, {} for a fork; has {children} now",
            process.name,
            process.pid,
            units::bytes(process.anonymous_bytes),
            units::time(*fork)
        ));
    }
    let mode = huge_pages(machine);
    findings.add(
        finding
            .evidence(format!("measured here: {} for each MiB in pages of 4 KiB", units::time(Nanos((copy + free) as u64))))
            .evidence_if(mode.as_ref().map(|mode| format!("transparent huge pages: {mode}")))
            .fix("launch by posix_spawn or vfork, which copy no page tables: in Python without preexec_fn, in Rust without pre_exec")
            .fix("or from a small helper process that is started early")
            .fix(match mode.as_deref() {
                Some("never") => format!(
                    "huge pages make such forks some 30 times cheaper; they are switched off: /sys/kernel/mm/transparent_hugepage/enabled, {}",
                    examination.surroundings.where_settings_are_made()
                ),
                _ => "huge pages make such forks some 30 times cheaper: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for programs that use glibc's malloc"
                    .to_owned(),
            })
            .fix_cost("huge pages take more memory, and writes after a fork copy 2 MiB each while the child lives"),
    );
}

fn huge_bytes(machine: &Machine, process: &Process) -> u64 {
    let text = machine.text(process.file("smaps_rollup")).unwrap_or_default();
    let kibibytes = field(&text, "AnonHugePages").and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    kibibytes.unwrap_or_default() * 1024
}

/// The word in brackets of `always [madvise] never`.
fn huge_pages(machine: &Machine) -> Option<String> {
    let modes = machine.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
