//! What makes the forks of a parent slow: children that close descriptors one by one before their
//! exec, often up to a limit of thousands or millions, and the memory of the parent. A fork copies
//! its page tables, and the exec or the end of the child frees the copy. With a large parent this
//! costs more than the rest of the launch, and with one that grows, for example because of a leak,
//! each fork copies more than the previous one.

use crate::explain::advice::context::{Candidate, RuleContext};
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{forks, name, time};
use crate::explain::advice::tables::case;
use crate::explain::drift::{Drift, MemoryGrowth, Segment};
use crate::model::grouped::grouped;
use crate::model::phases::Phase;
use crate::patterns::runtimes::{PythonCall, Runtime};
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;
use spawnscope_data::units;

/// Minimum number of `close` calls before an exec that count as a loop. Shells and libraries that
/// set up redirections make about ten.
const MIN_CLOSES: u32 = 32;
/// Maximum number of growing parents. The fix of each is replayed, which takes a while for a large
/// recording.
const MAX_GROWING: usize = 3;
/// Forks by a parent are slow if their median time is at least this multiple of the time of a fork
/// by a small process.
const SLOW_FACTOR: f64 = 2.0;
/// Minimum resident set of a parent whose size explains slow forks, in bytes.
const MIN_RSS_BYTES: f64 = 10e6;

pub(super) fn with_close_loops(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let candidates = context.candidates(|_, launch| {
        launch.counts.setup_closes.filter(|closes| *closes >= MIN_CLOSES)?;
        Some((launch.birth_command.name, launch.counts.setup_close_span.get()?))
    });
    let finding = |Candidate { name: parent, launches, max_saving }: Candidate<'_>| {
        let closes = context.median_of(&launches, |launch| launch.counts.setup_closes.map(f64::from));
        let closes = units::count(closes.unwrap_or_default() as u64);
        Finding::of(context, "close-loop", launches, &[], &[("closes", &closes), ("took", &time(max_saving))])
            .predicted_by(Change::CloseRange, format!("--close-range=parent={}", name(parent)))
    };
    candidates.into_iter().map(finding).collect()
}

pub(super) fn by_growing_parents(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let findings = context.drifts.iter().filter_map(|drift| by_growing_parent(context, drift, drift.memory?));
    findings.take(MAX_GROWING).collect()
}

fn by_growing_parent(context: &RuleContext<'_, '_>, drift: &Drift, growth: MemoryGrowth) -> Option<Finding> {
    let forest = context.forest();
    let parent = forest.launches.iter().position(|launch| launch.id == drift.parent)?;
    let children = forest.children(parent).iter().map(|child| *child as u32);
    let mut launches: Vec<u32> = children.filter(|child| context.launch(*child).copies_page_tables()).collect();
    // Skips launches that the process made before it executed this program.
    let program = context.launch(*launches.last()?).birth_command.name;
    launches.retain(|launch| context.launch(*launch).birth_command.name == program);
    launches.sort_unstable();
    let cost_of = |segment: Option<&Segment>| time(segment.map(|segment| segment.cost).unwrap_or_default());
    let values = [
        ("from", &units::bytes(growth.from_bytes)[..]),
        ("to", &units::bytes(growth.to_bytes)),
        ("first", &cost_of(drift.segments.first())),
        ("last", &cost_of(drift.segments.last())),
        ("more", &time(Nanos(growth.ns_per_mb.max(0.0) as u64))),
    ];
    let is_shell = Runtime::of_parent(forest, *launches.first()?) == Runtime::Shell;
    let finding = Finding::of(context, "growing-parent", launches, &[], &values)
        .recipe(context, case(!is_shell, "without-copying"), &[], &[])
        .predicted_by(Change::SteadyParent, format!("--steady-parent=parent={}", name(program)));
    Some(finding)
}

pub(super) fn by_large_parents(context: &RuleContext<'_, '_>) -> Vec<Finding> {
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
        candidates.into_iter().map(move |candidate| by_large_parent(context, candidate, small_fork_ns, avoidable))
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
fn by_large_parent(
    context: &RuleContext<'_, '_>,
    Candidate { name: parent, launches, .. }: Candidate<'_>,
    small_fork_ns: f64,
    avoidable: bool,
) -> Finding {
    let runtime = Runtime::of_parent(context.forest(), launches[0]);
    let created = context.median_phase(&launches, Phase::Create);
    let bytes = context.median_of(&launches, |launch| Some(launch.parent_rss_bytes.get()? as f64));
    let cases = [
        case(context.whatif.constants.free_per_copy.is_some(), "freed"),
        if time_before(context, launches[0]) < created { "quick" } else { "slow" },
        case(runtime.uses_malloc(), "malloc"),
    ];
    let values = [
        ("bytes", &units::bytes(bytes.unwrap_or_default() as u64)[..]),
        ("created", &time(context.total_phase(&launches, Phase::Create))),
        ("median", &time(created)),
        ("small", &time(Nanos(small_fork_ns as u64))),
    ];
    let (rule, change, option) = match avoidable {
        true => ("large-parent", Change::Vfork, "--vfork"),
        false => ("large-parent-pages", Change::HugePages, "--huge-pages"),
    };
    let calls = python_calls(context, &launches).filter(|_| runtime == Runtime::Python);
    let calls: Vec<String> = calls.collect();
    let can_shrink = avoidable || runtime == Runtime::Shell;
    Finding::of(context, rule, launches, &cases, &values)
        .evidence_lines(calls)
        .recipe(context, case(can_shrink, "without-copying"), &[], &[])
        .recipe(context, if avoidable { "vfork" } else { "huge-pages" }, &cases, &[])
        .predicted_by(change, format!("{option}=parent={}", name(parent)))
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

/// Counts the forks by the Python call that made them, as far as the call chains identify it.
fn python_calls(context: &RuleContext<'_, '_>, launches: &[u32]) -> impl Iterator<Item = String> {
    let calls = launches.iter().filter_map(|index| PythonCall::of(context.forest(), context.launch(*index)));
    let by_call = grouped(calls.map(|call| (call, ()))).into_iter();
    by_call.map(|(call, all)| format!("{} made by {}", forks(all.len()), call.description()))
}
