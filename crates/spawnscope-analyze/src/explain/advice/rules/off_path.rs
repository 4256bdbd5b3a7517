//! Launches that take long but delay nothing, because other work ran at the same time. A fix would
//! not shorten the wall.

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::phrases::{launches, name, option, time};
use crate::explain::advice::thresholds::longest_frequent_groups;
use crate::predict::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Id of this rule. Its findings are never worth fixing.
pub(in crate::explain::advice) const RULE: &str = "off-path";
/// Launches are off the path if at most this share of their time is on the critical path.
const MAX_CRITICAL_SHARE: f64 = 0.05;
const MAX_FINDINGS: usize = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let critical = critical_with_descendants(context);
    let mut by_programs = context.grouped_by(|_, launch| Some((launch.birth_command.name, *launch.command)));
    by_programs.retain(|_, launches| have_small_critical_share(context, &critical, launches));
    longest_frequent_groups(context, by_programs, MAX_FINDINGS)
        .into_iter()
        .map(|((parent, command), all)| finding(context, parent, &command.label(), all))
        .collect()
}

/// Whether launches, including their descendants, delay almost nothing.
pub(in crate::explain::advice) fn are_off_path(context: &RuleContext<'_, '_>, launches: &[u32]) -> bool {
    have_small_critical_share(context, &critical_with_descendants(context), launches)
}

fn have_small_critical_share(context: &RuleContext<'_, '_>, critical: &[u64], launches: &[u32]) -> bool {
    let on_path: u64 = launches.iter().map(|index| critical[*index as usize]).sum();
    on_path as f64 <= context.spent_on(launches).0 as f64 * MAX_CRITICAL_SHARE
}

/// Returns the time on the critical path of each launch including its descendants. A launch that
/// only waits for its children is on the path through them.
pub(in crate::explain::advice) fn critical_with_descendants(context: &RuleContext<'_, '_>) -> Vec<u64> {
    let forest = context.forest();
    let mut sums: Vec<u64> = context.path.launches.iter().map(|charges| charges.total().0).collect();
    let tops: Vec<usize> = forest.roots.iter().chain(&forest.orphans).copied().collect();
    let order: Vec<usize> = forest.walk(&tops).map(|step| step.index).collect();
    for index in order.into_iter().rev() {
        if let Some(parent) = forest.parent(index) {
            sums[parent] += sums[index];
        }
    }
    sums
}

fn finding(context: &RuleContext<'_, '_>, parent: &[u8], label: &[u8], all: Vec<u32>) -> Finding {
    let spent = context.spent_on(&all);
    let charges = all.iter().map(|index| &context.path.launches[*index as usize]);
    let critical = Nanos(charges.map(|charges| charges.total().0).sum());
    let title = format!(
        "{} of {} by {} take {} off the critical path: not worth fixing",
        launches(all.len()),
        name(label),
        name(parent),
        time(spent)
    );
    let evidence = format!(
        "only {} of their {} ({}) is on the critical path: while they ran, other activity determined the wall",
        time(critical),
        time(spent),
        units::percent(critical, spent.max(Nanos(1)))
    );
    Finding::modelled(RULE, title, all)
        .fixed_elsewhere()
        .evidence(evidence)
        .with_example(context)
        .fix("none needed: the command would take as long without them")
        .limits("they use CPU time that other work on this machine could use; with fewer CPUs they would matter")
        .predicted_by(Change::Remove, option("--remove", label, parent))
}
