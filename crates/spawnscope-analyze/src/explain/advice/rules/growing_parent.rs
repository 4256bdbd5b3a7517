//! Parents whose memory grows while they launch, for example because of a leak. Each fork copies
//! more than the previous one.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{forks, name, time};
use crate::explain::drift::{Drift, MemoryGrowth, Segment};
use crate::patterns::runtimes::Runtime;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Maximum number of findings. Each is replayed, which takes a while for a large recording.
const MAX_FINDINGS: usize = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let findings = context.drifts.iter().filter_map(|drift| finding(context, drift, drift.memory?));
    findings.take(MAX_FINDINGS).collect()
}

fn finding(context: &RuleContext<'_, '_>, drift: &Drift, growth: MemoryGrowth) -> Option<Finding> {
    let forest = context.forest();
    let parent = forest.launches.iter().position(|launch| launch.id == drift.parent)?;
    let children = forest.children(parent).iter().map(|child| *child as u32);
    let mut launches: Vec<u32> = children.filter(|child| context.launch(*child).copies_page_tables()).collect();
    // Skips launches that the process made before it executed this program.
    let program = context.launch(*launches.last()?).birth_command.name;
    launches.retain(|launch| context.launch(*launch).birth_command.name == program);
    launches.sort_unstable();
    let first = *launches.first()?;
    let program = name(program);
    let runtime = format!("{:?}", Runtime::of_parent(forest, first));
    let title =
        format!("the memory of {program} grows while it launches children, and its launches become more expensive");
    let count = forks(launches.len());
    let finding = Finding::modelled("growing-parent", title, launches)
        .evidence(format!(
            "its memory grew from {} to {} during {count}",
            units::bytes(growth.from_bytes),
            units::bytes(growth.to_bytes),
        ))
        .evidence(format!(
            "a launch took {} at first and {} at the end: {} more per additional MB",
            cost_of(drift.segments.first()),
            cost_of(drift.segments.last()),
            time(Nanos(growth.ns_per_mb.max(0.0) as u64)),
        ))
        .with_example(context)
        .recipe("growing-parent", &[&runtime], &[])
        .recipe(if runtime == "Shell" { "" } else { "without-copying" }, &[&runtime], &[])
        .predicted_by(Change::SteadyParent, format!("--steady-parent=parent={program}"));
    Some(finding)
}

fn cost_of(segment: Option<&Segment>) -> String {
    time(segment.map(|segment| segment.cost).unwrap_or_default())
}
