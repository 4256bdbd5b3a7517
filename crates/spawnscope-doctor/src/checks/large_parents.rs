//! Large processes and what a fork of each would cost here: without huge pages, a fork copies their page tables. Having children does not
//! prove that a process forks, since most programs launch by posix_spawn or vfork. Only shells and Perl are known to fork for each command.

use std::time::Instant;

use super::{Check, Run, c_library, fork_of_mebibyte, takes_for_each_mebibyte};
use crate::processes::{self, Process, field};
use crate::{Effect, Examination, Finding, Findings, Machine, memory_files};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "large-parents",
    examines: "the largest processes, huge pages, and the page tables a fork copies",
    run: Run::Reading(run),
};

const MAX_REPORTED: usize = 3;
/// Faster forks are not reported.
const REPORTED_FROM: Nanos = Nanos(10_000_000);
/// Programs that fork for each command they launch. Others may too, but /proc does not show it. Newer versions of dash use vfork.
const FORK: [&str; 3] = ["bash", "zsh", "perl"];
/// The minor version of glibc since which malloc can request huge pages.
const HUGE_BY_MALLOC: u32 = 35;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(of_mebibyte) = fork_of_mebibyte(examination.measured) else {
        findings.not_examined("what a fork costs for each MiB: it could not be measured");
        return;
    };
    let (forking, others): (Vec<Large<'_>>, _) = largest(examination, of_mebibyte)
        .into_iter()
        .partition(Large::is_known_to_fork_slowly);
    for large in &forking {
        let title = format!("{} forks for each command, and its forks are slow", large.process.name);
        let finding = Finding::problem(title)
            .effect(Effect::modelled(large.least, "each command that it launches"))
            .evidence(large.sentence())
            .fix("keep large data out of the process that launches: in files, or in another process");
        findings.add(with_pages(finding, examination, of_mebibyte));
    }
    if let Some(slowest) = others.iter().max_by_key(|large| large.fork) {
        let of = match slowest.fork == slowest.least {
            true => "each fork of the largest, if it forks",
            false => "each fork of the largest, if it forks, at most",
        };
        let finding =
            Finding::note("forks of the largest processes would be slow").effect(Effect::modelled(slowest.fork, of));
        let finding = others
            .iter()
            .fold(finding, |finding, large| finding.evidence(large.sentence()))
            .evidence("whether they fork is unknown: launches by posix_spawn or vfork do not copy page tables")
            .fix("launch by posix_spawn or vfork: in Python without preexec_fn, in Rust without pre_exec")
            .fix("or launch from a small helper process that is started early");
        findings.add(with_pages(finding, examination, of_mebibyte));
    }
}

/// Adds the cost of page tables, and how to reduce it with huge pages.
fn with_pages(finding: Finding, examination: &Examination<'_>, of_mebibyte: f64) -> Finding {
    let machine = examination.machine;
    let mode = huge_pages(machine);
    let finding = finding
        .evidence(format!("measured here: {}", takes_for_each_mebibyte(of_mebibyte)))
        .evidence_if(mode.as_ref().map(|mode| format!("transparent huge pages: {mode}")));
    let can_malloc_ask = || c_library::version(machine).is_some_and(|(_, minor)| minor >= HUGE_BY_MALLOC);
    let how = match mode.as_deref() {
        Some("never") => format!(
            "they are disabled: /sys/kernel/mm/transparent_hugepage/enabled, {}",
            examination.environment.where_settings_are_made()
        ),
        Some("madvise") if can_malloc_ask() => {
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for programs that use glibc's malloc".to_owned()
        }
        Some("madvise") => "programs request them with madvise(MADV_HUGEPAGE)".to_owned(),
        // Already enabled for all memory, or not supported.
        _ => return finding.fix_cost("a change to the program"),
    };
    finding
        .fix(format!("a huge page needs one page table entry instead of 512: {how}"))
        .fix_cost("huge pages use more memory, and each write after a fork may copy 2 MiB while the child lives")
}

struct Large<'p> {
    process: &'p Process,
    /// The cost of a fork; an upper bound if its huge pages are unknown.
    fork: Nanos,
    /// The lower bound of that cost.
    least: Nanos,
    children: u64,
    /// Whether its program is known to fork for each command.
    forks: bool,
}

impl Large<'_> {
    /// A process without children may not launch anything.
    fn is_known_to_fork_slowly(&self) -> bool {
        self.forks && self.children > 0 && self.least >= REPORTED_FROM
    }

    fn sentence(&self) -> String {
        let process = self.process;
        let at_most = if self.fork == self.least { "" } else { "at most " };
        format!(
            "{} (process {}): {} of anonymous memory, {at_most}{} for a fork; {} now",
            process.name,
            process.pid,
            units::bytes(process.anonymous_bytes),
            units::time(self.fork),
            units::counted(self.children, "child", "children")
        )
    }
}

/// The largest processes, as far as their forks are slow.
fn largest<'p>(examination: &'p Examination<'_>, ns_of_mebibyte: f64) -> Vec<Large<'p>> {
    let machine = examination.machine;
    let until = Instant::now() + memory_files::TIMEOUT;
    let children = processes::children(&examination.processes);
    let mut processes: Vec<&Process> = examination.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.anonymous_bytes));
    let fork = |bytes: u64| Nanos((ns_of_mebibyte * bytes as f64 / f64::from(1 << 20)) as u64);
    let slow = processes
        .into_iter()
        .take(MAX_REPORTED)
        .filter(|process| fork(process.anonymous_bytes) >= REPORTED_FROM);
    let largest = slow.map(|process| {
        let (least, most) = small_bytes(machine, process, until);
        Large {
            process,
            fork: fork(most),
            least: fork(least),
            children: children.get(&process.pid).copied().unwrap_or_default(),
            forks: FORK
                .iter()
                .any(|program| program_of(machine, process).starts_with(program)),
        }
    });
    largest.filter(|large| large.fork >= REPORTED_FROM).collect()
}

/// How much of its anonymous memory is in small pages, at least and at most. No process has more huge pages than the whole machine, which
/// is known without reading the process's files; knowing more requires permission to trace it.
fn small_bytes(machine: &Machine, process: &Process, until: Instant) -> (u64, u64) {
    let all = process.anonymous_bytes;
    let of_everybody = machine.text("/proc/meminfo").and_then(|text| huge_bytes(&text));
    if of_everybody == Some(0) {
        return (all, all);
    }
    let own = memory_files::read(machine, process, "smaps_rollup", until).and_then(|text| huge_bytes(&text));
    match own {
        Some(huge) => (all.saturating_sub(huge), all.saturating_sub(huge)),
        None => (all.saturating_sub(of_everybody.unwrap_or(all)), all),
    }
}

fn huge_bytes(text: &str) -> Option<u64> {
    let kibibytes: u64 = field(text, "AnonHugePages")?.trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1024)
}

/// The name of its executable, without directories; its process name if the executable may not be read.
fn program_of(machine: &Machine, process: &Process) -> String {
    let program = machine.link(process.file("exe"));
    let name = program.as_deref().and_then(|program| program.file_name());
    name.map_or_else(|| process.name.clone(), |name| name.to_string_lossy().into_owned())
}

/// The word in brackets of `always [madvise] never`.
fn huge_pages(machine: &Machine) -> Option<String> {
    let modes = machine.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
