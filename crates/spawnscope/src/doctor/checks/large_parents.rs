//! Large processes that run now, and what a fork of each would cost here: without huge pages, their page tables are copied.

use super::{Check, Run, fork_of_mebibyte, takes_for_each_mebibyte};
use crate::doctor::processes::{self, Process, field};
use crate::doctor::{Effect, Examination, Finding, Findings, Machine};
use crate::event::Nanos;
use crate::units;

pub(super) const CHECK: Check = Check {
    id: "large-parents",
    looks_at: "the largest processes, huge pages, and the page tables a fork copies",
    run: Run::Looking(run),
};

const MOST_TOLD: usize = 3;
/// Forks from here on are told.
const TOLD_FROM: Nanos = Nanos(10_000_000);

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let machine = examination.machine;
    let Some(of_mebibyte) = fork_of_mebibyte(examination.measured) else {
        findings.unseen("what a fork costs for each megabyte could not be measured");
        return;
    };
    let large = largest(examination, of_mebibyte);
    let Some(dearest) = large.iter().map(|large| large.fork).max() else {
        return;
    };
    let launches = large.iter().any(|large| large.children > 0);
    let mut finding = Finding::problem_if(launches, "a fork of the largest processes is dear")
        .effect(Effect::modelled(dearest, "each fork of the largest"));
    for large in &large {
        finding = finding.evidence(large.sentence());
    }
    let mode = huge_pages(machine);
    findings.add(
        finding
            .evidence(format!("measured here: {}", takes_for_each_mebibyte(of_mebibyte)))
            .evidence_if(mode.as_ref().map(|mode| format!("transparent huge pages: {mode}")))
            .fix("launch by posix_spawn or vfork, which copy no page tables: in Python without preexec_fn, in Rust without pre_exec")
            .fix("or from a small helper process that is started early")
            .fix(match mode.as_deref() {
                Some("never") => format!(
                    "a huge page takes one entry where small ones take 512; they are switched off: /sys/kernel/mm/transparent_hugepage/enabled, {}",
                    examination.surroundings.where_settings_are_made()
                ),
                _ => "a huge page takes one entry where small ones take 512: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for programs that use glibc's malloc"
                    .to_owned(),
            })
            .fix_cost("huge pages take more memory, and writes after a fork copy 2 MiB each while the child lives"),
    );
}

struct Large<'p> {
    process: &'p Process,
    /// What a fork of it costs; at most, if its huge pages cannot be seen.
    fork: Nanos,
    are_huge_pages_seen: bool,
    children: u64,
}

impl Large<'_> {
    fn sentence(&self) -> String {
        let process = self.process;
        let at_most = if self.are_huge_pages_seen { "" } else { "at most " };
        format!(
            "{} (process {}): {} of anonymous memory, {at_most}{} for a fork; has {} now",
            process.name,
            process.pid,
            units::bytes(process.anonymous_bytes),
            units::time(self.fork),
            units::counted(self.children, "child", "children")
        )
    }
}

/// The largest processes of which a fork is dear.
fn largest<'p>(examination: &'p Examination<'_>, ns_of_mebibyte: f64) -> Vec<Large<'p>> {
    let children = processes::children(&examination.processes);
    let mut processes: Vec<&Process> = examination.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.anonymous_bytes));
    let largest = processes.into_iter().take(MOST_TOLD).map(|process| {
        let huge = huge_bytes(examination.machine, process);
        let small = process.anonymous_bytes.saturating_sub(huge.unwrap_or_default());
        Large {
            process,
            fork: Nanos((ns_of_mebibyte * small as f64 / f64::from(1 << 20)) as u64),
            are_huge_pages_seen: huge.is_some(),
            children: children.get(&process.pid).copied().unwrap_or_default(),
        }
    });
    largest.filter(|large| large.fork >= TOLD_FROM).collect()
}

/// Only who may trace the process can know.
fn huge_bytes(machine: &Machine, process: &Process) -> Option<u64> {
    let text = machine.text(process.file("smaps_rollup"))?;
    let kibibytes: u64 = field(&text, "AnonHugePages")?.trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1024)
}

/// The word in brackets of `always [madvise] never`.
fn huge_pages(machine: &Machine) -> Option<String> {
    let modes = machine.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
