//! Programs that end slowly, because the kernel frees a lot of memory while the parent waits.

use crate::explain::advice::candidates::Candidate;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, time};
use crate::model::phases::Phase;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;

/// Minimum CPU time of a slow end, as for about 100 MB of memory. A small program takes 0.1 ms to
/// end, a compiler 1 ms.
const MIN_SLOW_END: Nanos = Nanos(5_000_000);

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let candidates = context.candidates(|_, launch| {
        // A fork without an exec frees copied page tables, which the rules about large parents
        // report.
        let has_program = !launch.execs.is_empty();
        let cpu = launch.cpu_phases.get(Phase::Teardown).filter(|_| has_program)?;
        let wall = launch.phases.get(Phase::Teardown)?;
        (cpu.min(wall) >= MIN_SLOW_END).then_some((launch.command.name, wall))
    });
    candidates.into_iter().map(|candidate| finding(context, candidate)).collect()
}

fn finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>) -> Finding {
    let program = name(candidate.name);
    let evidence = format!(
        "{} of {program} took a median of {} from exit to end, {} in all; a small program takes 0.1 ms",
        launches(candidate.launches.len()),
        time(context.median_phase(&candidate.launches, Phase::Teardown)),
        time(candidate.max_saving),
    );
    let title = format!("{program} ends slowly, because it frees a lot of memory");
    Finding::modelled("teardown", title, candidate.launches)
        .fixed_elsewhere()
        .evidence(evidence)
        .with_example(context)
        .fix(
            "do not wait for it: close the output pipe before the exit; a parent that only needs the output continues at EOF and reaps \
             later",
        )
        .fix("with several such programs, start the next one before the previous one has ended")
        .fix(
            "use huge pages, each of which replaces 512 small pages to be freed (glibc 2.35 and later; jemalloc: \
             MALLOC_CONF=thp:always; or madvise with MADV_HUGEPAGE):",
        )
        .fix("  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PROGRAM")
        .fix("use less memory: map parts of files, and process streams instead of whole files")
        .fix("do not call free() before the end: the kernel frees everything at once; flush the output and call _exit(0)")
        .limits(
            "the predicted saving assumes that no process waits, which is the upper limit; the memory must still be freed, on a CPU \
             that other threads may need",
        )
        .predicted_by(Change::NoTeardown, format!("--no-teardown={program}"))
}
