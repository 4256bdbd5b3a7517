//! Programs that end slowly: the kernel frees much memory while the parent waits.

use crate::advice::context::{name, time};
use crate::advice::groups::Group;
use crate::advice::{Basis, Finding, RuleContext};
use crate::phases::Phase;
use crate::whatif::Fix;
use crate::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// CPU time of a slow end, as for about 100 MB. A small program takes 0.1 ms to end, a compiler 1 ms.
const LARGE: Nanos = Nanos(5_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let groups = context.groups(|_, launch| {
        // A fork without exec frees what it copied, which the rules about its parent report.
        let has_program = !launch.execs.is_empty();
        let cpu = launch.cpu_phases.get(Phase::Teardown).filter(|_| has_program)?;
        let wall = launch.phases.get(Phase::Teardown)?;
        (cpu.min(wall) >= LARGE).then_some((launch.command.name, wall))
    });
    groups.into_iter().map(|group| finding(context, group)).collect()
}

fn finding(context: &RuleContext<'_, '_>, group: Group<'_>) -> Finding {
    let program = name(group.name);
    let each = context.middle(&group.launches, |launch| {
        Some(launch.phases.get(Phase::Teardown)?.0 as f64)
    });
    Finding {
        rule: "teardown",
        title: format!("{program} ends slowly, because it frees much memory"),
        evidence: vec![format!(
            "{} of {program} took {} each from exit to end, {} in all; a small program takes 0.1 ms",
            units::counted(group.launches.len() as u64, "launch", "launches"),
            time(Nanos(each.unwrap_or_default() as u64)),
            time(group.at_stake),
        )],
        example: context.example(&group.launches),
        fix: [
            "do not wait for it: close the output pipe before the exit; a parent that only needs the output continues at EOF and reaps \
             later",
            "with several such programs, start the next one before the previous one has ended",
            "use huge pages, which are freed 512 at a time (glibc 2.35 and later; jemalloc: MALLOC_CONF=thp:always; or madvise with \
             MADV_HUGEPAGE):",
            "  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PROGRAM",
            "use less memory: map parts of files, and process streams instead of whole files",
            "do not call free() before the end: the kernel frees everything at once; flush the output and call _exit(0)",
        ]
        .map(str::to_owned)
        .to_vec(),
        limits: "the predicted saving assumes that no process waits, which is the upper limit; the memory must still be freed, on a CPU \
                 that other threads may need"
            .to_owned(),
        whatif: format!("--no-teardown={program}"),
        tries: vec![Fix {
            change: Change::NoTeardown,
            launches: group.launches.clone(),
        }],
        basis: Basis::Modelled,
        launches: group.launches,
    }
}
