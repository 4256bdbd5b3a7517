//! Large shells, and what a fork of each costs on this machine. A fork copies the page tables,
//! which are large without huge pages. Other large processes are not findings: most programs launch
//! by posix_spawn or vfork, and only a recording shows whether they fork.

use std::path::Path;

use crate::machine::{Process, child_counts, field_bytes};
use crate::{Effect, Examination, Finding, Findings, Machine};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::units;

/// How many of the largest shells are examined.
const MAX_REPORTED: usize = 3;
/// Forks that take less are not reported.
const MIN_REPORTED: Nanos = Nanos(10_000_000);
/// Programs that fork for each command they launch. Other programs may fork too, but /proc does not
/// show it. Newer versions of dash use vfork.
const FORKING_PROGRAMS: [&str; 3] = ["bash", "zsh", "perl"];

pub(super) fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let (machine, measured) = (examination.machine, examination.measured);
    // The lowest measured values, because a busy machine only adds time.
    let costs = measured.min_ns(Constant::PageCopy).zip(measured.min_ns(Constant::PageFree));
    let Some(ns_per_mebibyte) = costs.map(|(copy, free)| copy + free) else {
        findings.add_not_examined("what a fork costs for each MiB: it could not be measured");
        return;
    };
    // Each of the machine's huge pages may belong to the process; they need few page tables.
    let meminfo = machine.text("/proc/meminfo").unwrap_or_default();
    let huge_bytes = field_bytes(&meminfo, "AnonHugePages").unwrap_or_default();
    let children = child_counts(&examination.processes);
    let mut shells: Vec<&Process> = examination.processes.iter().filter(|shell| forks(machine, shell)).collect();
    shells.sort_by_key(|shell| std::cmp::Reverse(shell.anonymous_bytes));
    for shell in shells.into_iter().take(MAX_REPORTED) {
        let small_pages = shell.anonymous_bytes.saturating_sub(huge_bytes) as f64 / f64::from(1 << 20);
        let fork = Nanos((ns_per_mebibyte * small_pages) as u64);
        // A shell without children may not launch anything.
        let children = children.get(&shell.pid).copied().unwrap_or_default();
        if fork >= MIN_REPORTED && children > 0 {
            findings.add(slow_fork_finding(examination, shell, children, fork, ns_per_mebibyte));
        }
    }
}

fn slow_fork_finding(
    examination: &Examination<'_>,
    shell: &Process,
    children: u64,
    fork: Nanos,
    ns_per_mebibyte: f64,
) -> Finding {
    let (name, memory) = (&shell.name, units::bytes(shell.anonymous_bytes));
    let now = units::counted(children, "child", "children");
    let finding = Finding::problem(format!("{name} forks for each command, and its forks are slow"))
        .effect(Effect::modelled(fork, "each command that it launches"))
        .evidence(format!(
            "{name} (process {}): {memory} of anonymous memory, {} for a fork; {now} now",
            shell.pid,
            units::time(fork)
        ))
        .evidence(format!(
            "measured here: a fork takes {} for each MiB in 4 KiB pages, because it copies their page tables",
            units::time(Nanos(ns_per_mebibyte as u64))
        ))
        .fix("keep large data out of the process that launches: in files, or in another process");
    let how = match huge_page_mode(examination.machine).as_deref() {
        Some("never") => format!(
            "they are disabled: /sys/kernel/mm/transparent_hugepage/enabled, {}",
            examination.environment.where_settings_are_made()
        ),
        Some("madvise") => "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 requests them (glibc 2.35)".to_owned(),
        // Huge pages are already enabled for all memory, or not supported.
        _ => return finding.fix_cost("a change to the program"),
    };
    finding
        .fix(format!("a huge page needs one page table entry instead of 512: {how}"))
        .fix_cost("huge pages use more memory, and each write after a fork may copy 2 MiB while the child lives")
}

/// Returns whether a process runs one of `FORKING_PROGRAMS`. If the link to its executable may not
/// be read, its name counts.
fn forks(machine: &Machine, process: &Process) -> bool {
    let program = machine.link(process.file("exe"));
    let name = program.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let name = name.as_deref().unwrap_or(&process.name);
    FORKING_PROGRAMS.iter().any(|program| name.starts_with(program))
}

/// Returns the mode of transparent huge pages: the word in brackets, as in
/// `always [madvise] never`.
fn huge_page_mode(machine: &Machine) -> Option<String> {
    let modes = machine.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
