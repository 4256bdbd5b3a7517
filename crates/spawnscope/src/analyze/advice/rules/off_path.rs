//! Launches that take long and hold nothing up: others were at work all the while, so that a fix would not be felt.

use super::super::ground::{name, time};
use super::super::wording::{largest, launches, option};
use super::super::{Basis, Finding, Ground};
use crate::analyze::whatif::Fix;
use crate::analyze::whatif::changes::Change;
use crate::event::Nanos;
use crate::units;

/// The rule's name: its findings are never worth fixing.
pub(in crate::analyze::advice) const RULE: &str = "off-path";
/// At most this share of their time is on the critical path.
const MOST_CRITICAL: f64 = 0.05;
const MOST_FINDINGS: usize = 3;

pub(super) fn find(ground: &Ground<'_, '_>) -> Vec<Finding> {
    let critical = critical_with_descendants(ground);
    let kinds = ground.kinds().into_iter().filter_map(|kind| {
        let on_path: u64 = kind.launches.iter().map(|index| critical[*index as usize]).sum();
        let spent = ground.spent_on(&kind.launches).0;
        let is_off = on_path as f64 <= spent as f64 * MOST_CRITICAL;
        is_off.then_some(((kind.parent, kind.command), kind.launches))
    });
    largest(ground, kinds, MOST_FINDINGS)
        .into_iter()
        .map(|((parent, command), all)| finding(ground, parent, &command.label(), all))
        .collect()
}

/// Time on the critical path of each launch and of all below it: what only waits for its own launches is not beside the path.
fn critical_with_descendants(ground: &Ground<'_, '_>) -> Vec<u64> {
    let forest = ground.forest();
    let mut sums: Vec<u64> = ground.path.launches.iter().map(|charges| charges.total().0).collect();
    let tops: Vec<usize> = forest.roots.iter().chain(&forest.orphans).copied().collect();
    let order: Vec<usize> = forest.walk(&tops).map(|step| step.index).collect();
    for index in order.into_iter().rev() {
        if let Some(parent) = forest.parent(index) {
            sums[parent] += sums[index];
        }
    }
    sums
}

fn finding(ground: &Ground<'_, '_>, parent: &[u8], label: &[u8], all: Vec<u32>) -> Finding {
    let spent = ground.spent_on(&all);
    let critical = ground.critical(&all);
    let title = format!(
        "{} of {} by {} take {} beside the critical path: not worth fixing",
        launches(all.len()),
        name(label),
        name(parent),
        time(spent)
    );
    Finding {
        rule: RULE,
        title,
        evidence: vec![format!(
            "{} of their {} are on the critical path ({}): while they ran, something else held up the end",
            time(critical),
            time(spent),
            units::percent(critical, spent.max(Nanos(1)))
        )],
        example: ground.example(&all),
        fix: vec!["nothing: the command would take as long without them".to_owned()],
        limits: "they use CPU time, which other work on this machine could have; with fewer CPUs they would count"
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
