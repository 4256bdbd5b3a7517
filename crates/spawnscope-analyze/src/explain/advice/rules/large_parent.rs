//! Forks by large parents. A fork copies the page tables of its parent, and the exec or the end of
//! the child frees the copy. With a large parent this costs more than the rest of the launch.

use std::collections::BTreeMap;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{forks, name, time};
use crate::explain::advice::thresholds::Candidate;
use crate::model::phases::Phase;
use crate::patterns::runtimes::{PythonCall, Runtime};
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;
use spawnscope_data::units;

/// Forks by a parent are slow if their median time is at least this multiple of the time of a fork
/// by a small process.
const SLOW_FACTOR: f64 = 2.0;
/// Minimum resident set of a parent whose size explains slow forks, in bytes.
const MIN_RSS_BYTES: f64 = 10e6;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let Some(small_fork_ns) = context.whatif.constants.fork_create else {
        return Vec::new();
    };
    let has_large_parent = find_large_parents(context, small_fork_ns);
    let cost_per_copy = 1.0 + context.whatif.constants.free_per_copy.unwrap_or_default();
    let of_kind = |avoidable: bool| {
        let candidates = context.candidates(|index, launch| {
            let create = launch.phases.get(Phase::Create).filter(|_| has_large_parent[index as usize])?;
            let max_saving = Nanos(((create.0 as f64 - small_fork_ns).max(0.0) * cost_per_copy) as u64);
            (can_avoid_copy(context, index) == avoidable).then_some((launch.birth_command.name, max_saving))
        });
        candidates.into_iter().map(move |candidate| finding(context, candidate, small_fork_ns, avoidable))
    };
    of_kind(true).chain(of_kind(false)).collect()
}

/// Whether a launch can do without a copy of its parent's page tables. A shell can only fork, and a
/// child without an exec needs the copy.
fn can_avoid_copy(context: &RuleContext<'_, '_>, index: u32) -> bool {
    !context.launch(index).execs.is_empty() && Runtime::of_parent(context.forest(), index) != Runtime::Shell
}

/// Returns for each launch whether its parent is large and forks slowly.
fn find_large_parents(context: &RuleContext<'_, '_>, small_fork_ns: f64) -> Vec<bool> {
    let launches = &context.forest().launches;
    let mut found = vec![false; launches.len()];
    for parent in 0..launches.len() {
        let children = context.forest().children(parent);
        let copied = children.iter().map(|child| &launches[*child]);
        let copied: Vec<_> = copied.filter(|child| child.is_launch() && child.copies_page_tables()).collect();
        let create = median(copied.iter().filter_map(|child| Some(child.phases.get(Phase::Create)?.0 as f64)));
        let bytes = median(copied.iter().filter_map(|child| Some(child.parent_rss_bytes.get()? as f64)));
        if create.is_some_and(|create| create >= SLOW_FACTOR * small_fork_ns)
            && bytes.is_some_and(|bytes| bytes >= MIN_RSS_BYTES)
        {
            let of_parent = children.iter().filter(|child| launches[**child].copies_page_tables());
            of_parent.for_each(|child| found[*child] = true);
        }
    }
    found
}

/// Returns the finding for launches that do not need the copy, or for those that need it or whose
/// parent cannot avoid it.
fn finding(context: &RuleContext<'_, '_>, candidate: Candidate<'_>, small_fork_ns: f64, avoidable: bool) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), candidate.launches[0]);
    let parent = name(candidate.name);
    let evidence = evidence(context, &candidate, small_fork_ns, runtime);
    let created = context.median_phase(&candidate.launches, Phase::Create);
    let loads_quickly = time_before(context, candidate.launches[0]) < created;
    let (rule, title) = match avoidable {
        true => ("large-parent", "copies the page tables of its memory for each launch"),
        false => ("large-parent-pages", "forks while it uses a lot of memory, and each fork copies its page tables"),
    };
    let finding = Finding::modelled(rule, format!("{parent} {title}"), candidate.launches)
        .evidence_lines(evidence)
        .with_example(context);
    if avoidable {
        return finding
            .recipe("without-copying", &[&format!("{runtime:?}")], &[])
            .limits("work that the child does between fork and exec must move to options of the call or to a wrapper")
            .predicted_by(Change::Vfork, format!("--vfork=parent={parent}"));
    }
    let runtime_name = format!("{runtime:?}");
    let cases = [
        &runtime_name[..],
        if loads_quickly { "quick" } else { "slow" },
        if runtime.uses_malloc() { "malloc" } else { "" },
    ];
    finding
        .recipe(if runtime == Runtime::Shell { "without-copying" } else { "" }, &["Shell"], &[])
        .recipe("large-parent-pages", &cases, &[])
        .predicted_by(Change::HugePages, format!("--huge-pages=parent={parent}"))
}

/// Returns how long the parent of a launch ran before its first launch. A worker that does not
/// start as a copy of it repeats that.
fn time_before(context: &RuleContext<'_, '_>, launch: u32) -> Nanos {
    let forest = context.forest();
    let parent = forest.parent(launch as usize);
    let loaded = parent.and_then(|parent| forest.launches[parent].execs.last()?.load_end.get());
    let first = parent.and_then(|parent| forest.launches[*forest.children(parent).first()?].start());
    loaded.zip(first).map_or(Nanos(u64::MAX), |(loaded, first)| first.since(loaded))
}

fn evidence(
    context: &RuleContext<'_, '_>,
    candidate: &Candidate<'_>,
    small_fork_ns: f64,
    runtime: Runtime,
) -> Vec<String> {
    let launches = &candidate.launches;
    let bytes = context.median_of(launches, |launch| Some(launch.parent_rss_bytes.get()? as f64));
    let mut evidence = vec![format!(
        "{} by {} with {} resident took {} in all, a median of {} (a fork by a small process: {})",
        forks(launches.len()),
        name(candidate.name),
        units::bytes(bytes.unwrap_or_default() as u64),
        time(context.total_phase(launches, Phase::Create)),
        time(context.median_phase(launches, Phase::Create)),
        time(Nanos(small_fork_ns as u64)),
    )];
    if context.whatif.constants.free_per_copy.is_some() {
        evidence.push("the exec or the end of each child frees its copy, which takes time as well".to_owned());
    }
    if runtime == Runtime::Python {
        evidence.extend(python_calls(context, launches));
    }
    evidence
}

/// Counts the forks by the Python call that made them, as far as the call chains identify it.
fn python_calls(context: &RuleContext<'_, '_>, launches: &[u32]) -> impl Iterator<Item = String> {
    let mut counts: BTreeMap<PythonCall, usize> = BTreeMap::new();
    for index in launches {
        if let Some(call) = PythonCall::of(context.forest(), context.launch(*index)) {
            *counts.entry(call).or_default() += 1;
        }
    }
    let counts = counts.into_iter();
    counts.map(|(call, count)| format!("{} made by {}", forks(count), call.description()))
}
