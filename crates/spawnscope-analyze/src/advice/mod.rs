//! Advice: what to change, how, and how much time that saves. Each rule in `rules` finds launches
//! and proposes a fix. Each fix is replayed, and only fixes that reliably save wall time are
//! recommended: first those in code that the user maintains, the largest saving first.

mod advice_list;
mod callers;
mod candidates;
mod context;
mod finding;
mod languages;
mod owner;
mod phrases;
mod rules;
mod selection;
mod shared_line;
mod thresholds;
mod unknown_arguments;

use std::cmp::Reverse;

use crate::whatif::{AppliedChange, Prediction};
pub use advice_list::{Advice, AdviceList, Rejection};
pub use context::RuleContext;
pub use finding::{Basis, Finding};
pub use owner::{ForeignCode, Owner};
#[cfg(fuzzing)]
pub use rules::builtin::substitute_for_fuzzing;
use spawnscope_data::parallel;

/// A finding that is not worth fixing is reported only when its launches took more than this share
/// of the wall.
const NOTABLE_SHARE: f64 = 0.05;
/// Number of findings whose fixes are replayed together.
const MAX_TOGETHER: usize = 3;

/// Applies all rules to a recording.
pub(crate) fn find(context: &RuleContext<'_, '_>) -> Vec<Finding> {
    let findings = parallel::map(rules::ALL.len(), usize::MAX, |index| rules::ALL[index].1(context));
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    findings.retain(|finding| context.spent_on(&finding.launches) >= context.min_saving());
    findings
}

/// Selects and sorts findings by the savings of their fixes. `predictions` has one entry for each
/// finding.
pub(crate) fn advise(context: &RuleContext<'_, '_>, findings: Vec<Finding>, predictions: &[Prediction]) -> AdviceList {
    let mut list = AdviceList { unrecorded: context.whatif.unrecorded(), ..AdviceList::default() };
    for (finding, prediction) in findings.into_iter().zip(predictions) {
        add(&mut list, context, advice_of(context, finding, prediction));
    }
    list.worth.sort_by_key(|advice| {
        let finding = &advice.finding;
        let is_foreign = advice.foreign.is_some();
        (is_foreign, Reverse(advice.saving), finding.rule, finding.title.clone())
    });
    list.not_worth.sort_by_key(|(rejection, advice)| {
        let finding = &advice.finding;
        (*rejection, Reverse(context.spent_on(&finding.launches)), finding.rule)
    });
    list.drop_general(rules::launch_loop::RULE);
    list.drop_contained([rules::batch::RULE, rules::per_item::RULE]);
    list.distinguish_titles();
    list.name_owners();
    list.mark_overlaps();
    if list.worth.len() > 1 {
        let first = list.worth.iter().take(MAX_TOGETHER);
        let changes: Vec<AppliedChange> = first.flat_map(|advice| advice.finding.changes.iter().cloned()).collect();
        list.together = Some(context.whatif.predict(&changes).saving());
    }
    list
}

fn advice_of(context: &RuleContext<'_, '_>, finding: Finding, prediction: &Prediction) -> Advice {
    Advice {
        callers: context.callers.count(&finding.launches),
        foreign: owner::foreign_code(context, finding.rule, &finding.launches),
        finding: unknown_arguments::add_evidence(context, callers::add_evidence(context, finding)),
        saving: prediction.saving(),
        overlaps: Vec::new(),
    }
}

/// Adds advice to `worth` or `not_worth`. Drops it if it saves too little and its launches are
/// cheap.
fn add(list: &mut AdviceList, context: &RuleContext<'_, '_>, advice: Advice) {
    let min_saving = context.min_saving();
    if advice.finding.rule == rules::off_path::RULE && advice.saving[0] > min_saving {
        // The finding would be wrong: without these launches, the wall would be clearly shorter.
        return;
    }
    if advice.saving[1] > min_saving {
        list.worth.push(advice);
    } else if context.spent_on(&advice.finding.launches) > context.share_of_wall(NOTABLE_SHARE) {
        list.not_worth.push((Rejection::of(context, &advice), advice));
    }
}
