//! Programs whose end takes long, since much memory has to be given back while the parent waits.

use super::super::context::{name, time};
use super::super::groups::Group;
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::phases::Phase;
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::Change;
use crate::event::Nanos;
use crate::units;

/// CPU time: that of some 100 MB. The end of a small program takes 0.1 ms, that of a compiler 1 ms.
const LARGE: Nanos = Nanos(5_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let groups = context.groups(|_, launch| {
        // A fork gives back what it copied; that is for the rules about its parent to say.
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
        title: format!("{program} takes long to end, since much memory is given back"),
        evidence: vec![format!(
            "{} of {program} took {} each from their exit to their end, {} in all; a small program takes 0.1 ms",
            units::counted(group.launches.len() as u64, "launch", "launches"),
            time(Nanos(each.unwrap_or_default() as u64)),
            time(group.at_stake),
        )],
        example: context.example(&group.launches),
        fix: [
            "do not wait for it: close the output pipe before the exit; a parent that only wants the output goes on at EOF, and reaps later",
            "of several such programs, start the next before the last has ended",
            "huge pages are given back 512 at a time (glibc 2.35 and later; jemalloc: MALLOC_CONF=thp:always; or madvise with MADV_HUGEPAGE):",
            "  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PROGRAM",
            "use less memory: files mapped in part, streams in the place of whole files",
            "do not free() before the end: the kernel gives all back at once; _exit(0) after the output is flushed",
        ]
        .map(str::to_owned)
        .to_vec(),
        limits: "the saving is that of nobody waiting, the most that there is; the memory has still to be given back, on a CPU that \
                 others may want"
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
