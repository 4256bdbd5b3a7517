//! Forks by large parents. A fork copies the page tables of its parent, and the exec or the end of the child frees the copy. With a large
//! parent this costs more than the rest of the launch.

use std::collections::BTreeMap;

use crate::advice::context::{name, time};
use crate::advice::groups::Group;
use crate::advice::{Basis, Finding, RuleContext};
use crate::launch::Launch;
use crate::patterns::runtimes::{PythonCall, Runtime};
use crate::phases::Phase;
use crate::whatif::Fix;
use crate::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;
use spawnscope_data::units;

/// Forks by a parent are slow when the median takes this multiple of a fork by a small process.
const SLOW: f64 = 2.0;
/// Below this size, memory does not explain a slow fork.
const LARGE_BYTES: f64 = 10e6;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let Some(small) = context.whatif.constants.fork_create else {
        return Vec::new();
    };
    let by_large = made_by_large_parents(context, small);
    let at_stake = |index: u32, launch: &Launch<'_>| {
        let create = launch.phases.get(Phase::Create).filter(|_| by_large[index as usize])?;
        let freed = 1.0 + context.whatif.constants.free_per_copy.unwrap_or_default();
        Some(Nanos(((create.0 as f64 - small).max(0.0) * freed) as u64))
    };
    // A shell can only fork, and a child without exec needs the copy.
    let can_change = |index: u32, launch: &Launch<'_>| {
        !launch.execs.is_empty() && Runtime::of_parent(context.forest(), index) != Runtime::Shell
    };
    let chosen = |wanted: bool| {
        context.groups(|index, launch| {
            let at_stake = at_stake(index, launch)?;
            (can_change(index, launch) == wanted).then_some((launch.birth_command.name, at_stake))
        })
    };
    let avoidable = chosen(true).into_iter().map(|group| avoidable(context, group, small));
    let necessary = chosen(false).into_iter().map(|group| necessary(context, group, small));
    avoidable.chain(necessary).collect()
}

/// Returns for each launch whether its parent is large and forks slowly.
fn made_by_large_parents(context: &RuleContext<'_, '_>, small: f64) -> Vec<bool> {
    let launches = &context.forest().launches;
    let mut found = vec![false; launches.len()];
    for parent in 0..launches.len() {
        let children = context.forest().children(parent);
        let copied = || {
            let copied = children.iter().map(|child| &launches[*child]);
            copied.filter(|child| child.is_launch() && child.copies_page_tables())
        };
        let create = median(copied().filter_map(|child| Some(child.phases.get(Phase::Create)?.0 as f64)));
        let bytes = median(copied().filter_map(|child| Some(child.parent_rss_bytes.get()? as f64)));
        if create.is_some_and(|create| create >= SLOW * small) && bytes.is_some_and(|bytes| bytes >= LARGE_BYTES) {
            let of_parent = children.iter().filter(|child| launches[**child].copies_page_tables());
            of_parent.for_each(|child| found[*child] = true);
        }
    }
    found
}

/// Returns the finding for launches that do not need the copy.
fn avoidable(context: &RuleContext<'_, '_>, group: Group<'_>, small: f64) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), group.launches[0]);
    let parent = name(group.name);
    let mut fix = lines(runtime.without_copying());
    fix.push(
        "if the call cannot be changed, huge pages make the copy smaller: GLIBC_TUNABLES=glibc.malloc.hugetlb=1 (glibc 2.35 and later)"
            .to_owned(),
    );
    let mut evidence = evidence(context, &group, small);
    if runtime == Runtime::Python {
        evidence.extend(python_calls(context, &group.launches));
    }
    Finding {
        rule: "large-parent",
        title: format!("{parent} copies the page tables of its memory for each launch"),
        evidence,
        example: context.example(&group.launches),
        fix,
        limits: "work that the child does between fork and exec must move to options of the call or to a wrapper; huge pages help \
                 only with memory that the program allocates itself, and may use more memory"
            .to_owned(),
        whatif: format!("--vfork=parent={parent}"),
        tries: vec![Fix {
            change: Change::Vfork,
            launches: group.launches.clone(),
        }],
        basis: Basis::Modelled,
        launches: group.launches,
    }
}

/// Returns the finding for launches that need the copy, or whose parent cannot avoid it.
fn necessary(context: &RuleContext<'_, '_>, group: Group<'_>, small: f64) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), group.launches[0]);
    let parent = name(group.name);
    let mut evidence = evidence(context, &group, small);
    if runtime == Runtime::Python {
        evidence.extend(python_calls(context, &group.launches));
    }
    let mut fix = match runtime {
        Runtime::Shell => lines(runtime.without_copying()),
        Runtime::Python => vec![
            "multiprocessing, concurrent.futures: start method \"forkserver\" or \"spawn\", set before the memory is allocated"
                .to_owned(),
        ],
        _ => vec!["start the workers early, before the memory is allocated, and keep them".to_owned()],
    };
    fix.extend(lines(&[
        "or put the memory in huge pages, whose page tables are 512 times smaller (glibc 2.35 and later):",
        "  GLIBC_TUNABLES=glibc.malloc.hugetlb=1 PROGRAM",
        "jemalloc: MALLOC_CONF=thp:always; memory that the program maps itself: madvise(start, length, MADV_HUGEPAGE)",
        "for all programs on the machine:",
        "  echo always > /sys/kernel/mm/transparent_hugepage/enabled",
    ]));
    Finding {
        rule: "large-parent-pages",
        title: format!("{parent} forks with much memory, and each fork copies its page tables"),
        evidence,
        example: context.example(&group.launches),
        fix,
        limits: "writing to memory after a fork copies whole pages, which takes longer with huge pages; they need unfragmented \
                 memory, and waste memory that is used sparsely"
            .to_owned(),
        whatif: format!("--huge-pages=parent={parent}"),
        tries: vec![Fix {
            change: Change::HugePages,
            launches: group.launches.clone(),
        }],
        basis: Basis::Modelled,
        launches: group.launches,
    }
}

fn evidence(context: &RuleContext<'_, '_>, group: &Group<'_>, small: f64) -> Vec<String> {
    let count = units::counted(group.launches.len() as u64, "fork", "forks");
    let bytes = context.middle(&group.launches, |launch| Some(launch.parent_rss_bytes.get()? as f64));
    let create = context.middle(&group.launches, |launch| {
        Some(launch.phases.get(Phase::Create)?.0 as f64)
    });
    vec![format!(
        "{count} by {} with {} resident took {} each (a fork by a small process: {}), {} in all",
        name(group.name),
        units::bytes(bytes.unwrap_or_default() as u64),
        time(Nanos(create.unwrap_or_default() as u64)),
        time(Nanos(small as u64)),
        time(context.phase_of(&group.launches, Phase::Create)),
    )]
}

/// Counts the Python calls that made the copies, as far as the call chains identify them.
fn python_calls(context: &RuleContext<'_, '_>, launches: &[u32]) -> Vec<String> {
    let mut counts: BTreeMap<PythonCall, u64> = BTreeMap::new();
    for index in launches {
        if let Some(call) = PythonCall::of(context.forest(), context.launch(*index)) {
            *counts.entry(call).or_default() += 1;
        }
    }
    let line = |(call, count): (PythonCall, u64)| {
        format!("{} made by {}", units::counted(count, "fork", "forks"), call.words())
    };
    counts.into_iter().map(line).collect()
}

fn lines(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
