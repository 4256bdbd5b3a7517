//! Large processes, and what a fork of each would cost on this machine. A fork copies the page tables, which are large without huge pages.
//! A process with children does not necessarily fork, since most programs launch by posix_spawn or vfork. Only shells and Perl are known to
//! fork for each command.

use std::time::Instant;

use super::{Check, Run, c_library, fork_ns_per_mebibyte, fork_time_sentence};
use crate::processes::{self, Process, field};
use crate::{Effect, Examination, Finding, Findings, Machine, memory_files};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

pub(super) const CHECK: Check = Check {
    id: "large-parents",
    examines: "the largest processes, huge pages, and the page tables a fork copies",
    run: Run::Reading(run),
};

/// How many of the largest processes are examined.
const MAX_REPORTED: usize = 3;
/// Forks that take less are not reported.
const MIN_REPORTED: Nanos = Nanos(10_000_000);
/// Programs that fork for each command they launch. Other programs may fork too, but /proc does not show it. Newer versions of dash use
/// vfork.
const FORKING_PROGRAMS: [&str; 3] = ["bash", "zsh", "perl"];
/// The first minor version of glibc 2 whose malloc can request huge pages.
const MALLOC_HUGE_PAGES_SINCE: u32 = 35;

fn run(examination: &Examination<'_>, findings: &mut Findings) {
    let Some(ns_per_mebibyte) = fork_ns_per_mebibyte(examination.measured) else {
        findings.add_not_examined("what a fork costs for each MiB: it could not be measured");
        return;
    };
    let (forking, others): (Vec<LargeProcess<'_>>, _) =
        largest(examination, ns_per_mebibyte).into_iter().partition(LargeProcess::is_known_to_fork_slowly);
    for large in &forking {
        let title = format!("{} forks for each command, and its forks are slow", large.process.name);
        let finding = Finding::problem(title)
            .effect(Effect::modelled(large.min_fork, "each command that it launches"))
            .evidence(large.sentence())
            .fix("keep large data out of the process that launches: in files, or in another process");
        findings.add(with_huge_page_advice(finding, examination, ns_per_mebibyte));
    }
    if let Some(slowest) = others.iter().max_by_key(|large| large.max_fork) {
        let affected = match slowest.max_fork == slowest.min_fork {
            true => "each fork of the process with the slowest forks, if it forks",
            false => "each fork of the process with the slowest forks, if it forks; this is an upper limit",
        };
        let finding = Finding::note("forks of the largest processes would be slow")
            .effect(Effect::modelled(slowest.max_fork, affected));
        let finding = others
            .iter()
            .fold(finding, |finding, large| finding.evidence(large.sentence()))
            .evidence("whether they fork is unknown: launches by posix_spawn or vfork do not copy page tables")
            .fix("launch by posix_spawn or vfork: in Python without preexec_fn, in Rust without pre_exec")
            .fix("or launch from a small helper process that is started early");
        findings.add(with_huge_page_advice(finding, examination, ns_per_mebibyte));
    }
}

/// Adds the cost of copying page tables, and how huge pages can reduce it.
fn with_huge_page_advice(finding: Finding, examination: &Examination<'_>, ns_per_mebibyte: f64) -> Finding {
    let machine = examination.machine;
    let mode = huge_page_mode(machine);
    let finding = finding
        .evidence(format!("measured here: {}", fork_time_sentence(ns_per_mebibyte)))
        .evidence_if(mode.as_ref().map(|mode| format!("transparent huge pages: {mode}")));
    let how = match mode.as_deref() {
        Some("never") => format!(
            "they are disabled: /sys/kernel/mm/transparent_hugepage/enabled, {}",
            examination.environment.where_settings_are_made()
        ),
        Some("madvise") if can_request_huge_pages(machine) => {
            "GLIBC_TUNABLES=glibc.malloc.hugetlb=1 for programs that use glibc's malloc".to_owned()
        }
        Some("madvise") => "programs request them with madvise(MADV_HUGEPAGE)".to_owned(),
        // Huge pages are already enabled for all memory, or not supported.
        _ => return finding.fix_cost("a change to the program"),
    };
    finding
        .fix(format!("a huge page needs one page table entry instead of 512: {how}"))
        .fix_cost("huge pages use more memory, and each write after a fork may copy 2 MiB while the child lives")
}

fn can_request_huge_pages(machine: &Machine) -> bool {
    c_library::version(machine).is_some_and(|(_, minor)| minor >= MALLOC_HUGE_PAGES_SINCE)
}

struct LargeProcess<'p> {
    process: &'p Process,
    /// The upper bound for the time of a fork. It equals `min_fork` if the process's huge pages are known.
    max_fork: Nanos,
    /// The lower bound for the time of a fork.
    min_fork: Nanos,
    children: u64,
    /// Whether the program is known to fork for each command.
    is_forking: bool,
}

impl LargeProcess<'_> {
    /// Returns whether the process certainly forks, and slowly. A process without children may not launch anything.
    fn is_known_to_fork_slowly(&self) -> bool {
        self.is_forking && self.children > 0 && self.min_fork >= MIN_REPORTED
    }

    fn sentence(&self) -> String {
        let process = self.process;
        let at_most = if self.max_fork == self.min_fork { "" } else { "at most " };
        format!(
            "{} (process {}): {} of anonymous memory, {at_most}{} for a fork; {} now",
            process.name,
            process.pid,
            units::bytes(process.anonymous_bytes),
            units::time(self.max_fork),
            units::counted(self.children, "child", "children")
        )
    }
}

/// Returns those of the largest processes whose forks would be slow.
fn largest<'p>(examination: &'p Examination<'_>, ns_per_mebibyte: f64) -> Vec<LargeProcess<'p>> {
    let machine = examination.machine;
    let until = Instant::now() + memory_files::TIMEOUT;
    let children = processes::child_counts(&examination.processes);
    let mut processes: Vec<&Process> = examination.processes.iter().collect();
    processes.sort_by_key(|process| std::cmp::Reverse(process.anonymous_bytes));
    let examined = processes.into_iter().take(MAX_REPORTED);
    let slow = examined.filter(|process| fork_time(process.anonymous_bytes, ns_per_mebibyte) >= MIN_REPORTED);
    let largest = slow.map(|process| {
        let (least, most) = small_page_bytes(machine, process, until);
        LargeProcess {
            process,
            max_fork: fork_time(most, ns_per_mebibyte),
            min_fork: fork_time(least, ns_per_mebibyte),
            children: children.get(&process.pid).copied().unwrap_or_default(),
            is_forking: FORKING_PROGRAMS.iter().any(|program| program_name(machine, process).starts_with(program)),
        }
    });
    largest.filter(|large| large.max_fork >= MIN_REPORTED).collect()
}

fn fork_time(bytes: u64, ns_per_mebibyte: f64) -> Nanos {
    Nanos((ns_per_mebibyte * bytes as f64 / f64::from(1 << 20)) as u64)
}

/// Returns the bounds of how much of a process's anonymous memory is in small pages. Both are the exact number if the file with it may be
/// read, which needs the permission to trace the process. Otherwise, any number of the machine's huge pages may belong to the process.
fn small_page_bytes(machine: &Machine, process: &Process, until: Instant) -> (u64, u64) {
    let all = process.anonymous_bytes;
    let machine_huge = machine.text("/proc/meminfo").and_then(|text| huge_bytes(&text));
    if machine_huge == Some(0) {
        return (all, all);
    }
    let process_huge = memory_files::read(machine, process, "smaps_rollup", until).and_then(|text| huge_bytes(&text));
    match process_huge {
        Some(huge) => (all.saturating_sub(huge), all.saturating_sub(huge)),
        None => (all.saturating_sub(machine_huge.unwrap_or(all)), all),
    }
}

fn huge_bytes(text: &str) -> Option<u64> {
    let kibibytes: u64 = field(text, "AnonHugePages")?.trim_end_matches(" kB").parse().ok()?;
    Some(kibibytes * 1024)
}

/// Returns the name of a process's executable, without directories, or the process name if the link to the executable may not be read.
fn program_name(machine: &Machine, process: &Process) -> String {
    let program = machine.link(process.file("exe"));
    let name = program.as_deref().and_then(|program| program.file_name());
    name.map_or_else(|| process.name.clone(), |name| name.to_string_lossy().into_owned())
}

/// Returns the mode of transparent huge pages: the word in brackets, as in `always [madvise] never`.
fn huge_page_mode(machine: &Machine) -> Option<String> {
    let modes = machine.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
    let (_, rest) = modes.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}
