//! Advice: what to change, how, and how much time that saves. Each rule in `rules` finds launches
//! and proposes a fix; `sites` has a general answer where no rule fits. Each fix is replayed, and only fixes that reliably save wall time are
//! recommended: first those in code that the user maintains, the largest saving first.

mod advice_list;
mod callers;
mod candidates;
mod context;
mod edit;
mod finding;
mod languages;
mod owner;
mod phrases;
mod rules;
mod selection;
mod shared_line;
mod sites;
mod thresholds;
mod unknown_arguments;

use std::cmp::Reverse;

use crate::path::groups::launched;
use crate::predict::whatif::{AppliedChange, Prediction};
pub use advice_list::{Advice, AdviceList, Rejection};
pub use context::RuleContext;
pub use edit::{Edit, EditRefusal, EditedLine};
pub use finding::{Basis, Finding};
pub use owner::{ForeignCode, Owner};
#[cfg(fuzzing)]
pub use rules::builtin::substitute_for_fuzzing;
use sites::Answer;
use spawnscope_data::event::Nanos;
use spawnscope_data::parallel;

/// A finding that is not worth fixing is reported only when its launches took more than this share
/// of the wall.
const NOTABLE_SHARE: f64 = 0.05;
/// Number of findings whose fixes are replayed together.
const MAX_TOGETHER: usize = 3;

/// Everything that was found, before the savings are predicted.
pub(crate) struct Found {
    findings: Vec<Finding>,
    answers: Vec<Answer>,
}

impl Found {
    /// Returns the changes to predict.
    pub(crate) fn changes(&self) -> Vec<&[AppliedChange]> {
        let of_findings = self.findings.iter().map(|finding| finding.changes.as_slice());
        of_findings.chain(self.answers.iter().flat_map(Answer::changes)).collect()
    }
}

/// Applies all rules to a recording, and looks for sites that need an answer.
pub(crate) fn find(context: &RuleContext<'_, '_>) -> Found {
    let (findings, answers) = parallel::join(
        || parallel::map(rules::ALL.len(), usize::MAX, |index| rules::ALL[index].1(context)),
        || sites::find(context),
    );
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    findings.retain(|finding| context.spent_on(&finding.launches) >= context.min_saving());
    Found { findings, answers }
}

/// Selects and sorts findings by the savings of their fixes. `predictions` has one entry for each set of changes that was found.
pub(crate) fn advise(context: &RuleContext<'_, '_>, found: Found, predictions: &[Prediction]) -> AdviceList {
    let mut list = AdviceList { unrecorded: context.whatif.unrecorded(), ..AdviceList::default() };
    let (of_findings, of_answers) = predictions.split_at(found.findings.len());
    for (finding, prediction) in found.findings.into_iter().zip(of_findings) {
        add(&mut list, context, advice_of(context, finding, prediction.saving()));
    }
    add_answers(&mut list, context, found.answers, of_answers);
    list.worth.sort_by_key(|advice| {
        let finding = &advice.finding;
        let is_foreign = advice.foreign.is_some();
        (is_foreign, Reverse(advice.saving), finding.rule, finding.title.clone())
    });
    list.not_worth.sort_by_key(|(rejection, advice)| {
        let finding = &advice.finding;
        (*rejection, Reverse(context.spent_on(&finding.launches)), finding.rule)
    });
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

/// Adds the answers about sites that no finding of a rule answers.
fn add_answers(list: &mut AdviceList, context: &RuleContext<'_, '_>, answers: Vec<Answer>, predictions: &[Prediction]) {
    // Running launches at the same time does not reduce their number.
    let others = list.worth.iter().filter(|advice| advice.finding.rule != rules::serial_jobs::RULE);
    let others = others.map(|advice| (advice.finding.launches.as_slice(), advice.saving[0]));
    let others: Vec<(&[u32], Nanos)> = others.collect();
    let pairs = answers.into_iter().zip(predictions.chunks_exact(2));
    let worth = pairs.filter_map(|(answer, pair)| answer.evaluate(context, [&pair[0], &pair[1]], &others));
    let worth: Vec<Advice> = worth.map(|(finding, saving)| advice_of(context, finding, saving)).collect();
    list.worth.extend(worth);
}

fn advice_of(context: &RuleContext<'_, '_>, finding: Finding, saving: [Nanos; 3]) -> Advice {
    Advice {
        launched: launched(context.forest(), &finding.launches),
        callers: context.callers.count(&finding.launches),
        foreign: owner::foreign_code(context, finding.rule, &finding.launches),
        finding: unknown_arguments::add_evidence(context, callers::add_evidence(context, finding)),
        saving,
        overlaps: Vec::new(),
        edited: Vec::new(),
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
