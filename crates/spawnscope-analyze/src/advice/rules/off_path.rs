//! Launches that take long but delay nothing: other work ran all the while, so a fix would not shorten the wall.

use crate::advice::context::{name, time};
use crate::advice::phrases::{launches, option};
use crate::advice::thresholds::largest;
use crate::advice::{Basis, Finding, RuleContext};
use crate::whatif::Fix;
use crate::whatif::changes::Change;
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// Id of this rule. Its findings are never worth fixing.
pub(in crate::advice) const RULE: &str = "off-path";
/// Launches count as off the path when at most this share of their time is on the critical path.
const MOST_CRITICAL: f64 = 0.05;
const MOST_FINDINGS: usize = 3;

pub(super) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let critical = critical_with_descendants(context);
    let kinds = context.kinds().into_iter().filter_map(|kind| {
        let is_off = are_off(context, &critical, &kind.launches);
        is_off.then_some(((kind.parent, kind.command), kind.launches))
    });
    largest(context, kinds, MOST_FINDINGS)
        .into_iter()
        .map(|((parent, command), all)| finding(context, parent, &command.label(), all))
        .collect()
}

/// Whether launches, including their descendants, delay almost nothing.
pub(in crate::advice) fn are_off_path(context: &RuleContext<'_, '_>, launches: &[u32]) -> bool {
    are_off(context, &critical_with_descendants(context), launches)
}

fn are_off(context: &RuleContext<'_, '_>, critical: &[u64], launches: &[u32]) -> bool {
    let on_path: u64 = launches.iter().map(|index| critical[*index as usize]).sum();
    on_path as f64 <= context.spent_on(launches).0 as f64 * MOST_CRITICAL
}

/// Returns the time on the critical path of each launch including its descendants. A launch that only waits for its own launches is not off
/// the path.
fn critical_with_descendants(context: &RuleContext<'_, '_>) -> Vec<u64> {
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
    let critical = context.critical(&all);
    let title = format!(
        "{} of {} by {} take {} off the critical path: not worth fixing",
        launches(all.len()),
        name(label),
        name(parent),
        time(spent)
    );
    Finding {
        rule: RULE,
        title,
        evidence: vec![format!(
            "{} of their {} are on the critical path ({}): while they ran, other activity determined the wall",
            time(critical),
            time(spent),
            units::percent(critical, spent.max(Nanos(1)))
        )],
        example: context.example(&all),
        fix: vec!["none needed: the command would take as long without them".to_owned()],
        limits: "they use CPU time that other work on this machine could use; with fewer CPUs they would matter"
            .to_owned(),
        whatif: option("--remove", label, parent),
        tries: vec![Fix {
            change: Change::Remove,
            launches: all.clone(),
        }],
        basis: Basis::Modelled,
        launches: all,
    }
}
