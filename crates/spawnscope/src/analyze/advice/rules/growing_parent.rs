//! A parent that grows while it launches: each fork copies more than the one before, as with a leak.

use super::super::context::{name, time};
use super::super::groups::MOST_FINDINGS;
use super::super::runtimes::Runtime;
use super::super::{Basis, Finding, RuleContext};
use crate::analyze::drift::{Drift, MemoryGrowth};
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::{Change, copies_tables};
use crate::event::Nanos;
use crate::units;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let grown = context
        .drifts
        .iter()
        .filter_map(|drift| finding(context, drift, drift.memory?));
    grown.take(MOST_FINDINGS).collect()
}

fn finding(context: &RuleContext<'_, '_>, drift: &Drift, growth: MemoryGrowth) -> Option<Finding> {
    let forest = context.forest();
    let parent = forest.launches.iter().position(|launch| launch.id == drift.parent)?;
    let children = forest.children(parent).iter().map(|child| *child as u32);
    let mut launches: Vec<u32> = children.filter(|child| copies_tables(context.launch(*child))).collect();
    // What the process launched before it became this program is not this program's.
    let birth = |launch: u32| context.launch(launch).birth_command.name;
    let program = birth(*launches.last()?);
    launches.retain(|launch| birth(*launch) == program);
    launches.sort_unstable();
    let first = *launches.first()?;
    let program = name(program);
    Some(Finding {
        rule: "growing-parent",
        title: format!("{program} grows while it launches, and each launch costs more than the one before"),
        evidence: evidence(drift, growth, launches.len()),
        example: context.example(&launches),
        fix: fix(Runtime::of_parent(context, first)),
        limits: "only what is copied at each fork is counted, not what the memory costs otherwise; if the program needs it, only \
                 the other way remains"
            .to_owned(),
        whatif: format!("--steady-parent=parent={program}"),
        tries: vec![Fix {
            change: Change::SteadyParent,
            launches: launches.clone(),
        }],
        basis: Basis::Modelled,
        launches,
    })
}

fn evidence(drift: &Drift, growth: MemoryGrowth, count: usize) -> Vec<String> {
    let cost =
        |segment: Option<&crate::analyze::drift::Segment>| time(segment.map(|part| part.cost).unwrap_or_default());
    vec![
        format!(
            "its memory went from {} to {} during {}",
            units::bytes(growth.from_bytes),
            units::bytes(growth.to_bytes),
            units::counted(count as u64, "fork", "forks"),
        ),
        format!(
            "launching one took {} at first and {} at last: {} more for each further MB",
            cost(drift.segments.first()),
            cost(drift.segments.last()),
            time(Nanos(growth.ns_per_mb.max(0.0) as u64)),
        ),
    ]
}

/// What holds the memory differs by language; a launch that copies nothing does not mind.
fn fix(runtime: Runtime) -> Vec<String> {
    let find_it = match runtime {
        Runtime::Python => {
            "find what grows: python3 -X tracemalloc, or memray run; typical: lists of results, caches without a limit"
        }
        Runtime::Java => "find what grows: jcmd PID GC.class_histogram at two times",
        Runtime::Node => "find what grows: node --inspect, two heap snapshots compared",
        Runtime::Shell => {
            "find what grows: a variable or array that is added to in the loop; write to a file or a pipe instead"
        }
        _ => "find what grows: heaptrack PROGRAM, or valgrind --tool=massif PROGRAM",
    };
    let mut fix = vec![find_it.to_owned()];
    if runtime != Runtime::Shell {
        fix.push("or launch without copying, so that the parent's size does not matter".to_owned());
        let lines = runtime.without_copying().iter();
        fix.extend(lines.map(|line| (*line).to_owned()));
    }
    fix
}
