//! Advice: what to change, how, and how much time that saves. `sites` groups launches, and tries a
//! few general cures on each group; each rule in `rules` looks for one mechanism that makes
//! launches slow. Each fix is replayed, and only fixes that save wall time are recommended. `merge`
//! makes one piece of advice of all that is about the same cause, and decides which comes first.

mod advice_list;
mod context;
mod edit;
mod edits;
mod finding;
mod languages;
mod merge;
mod owner;
mod phrases;
mod programs;
mod rules;
mod selection;
mod shared_line;
mod sites;
mod small_work;
mod tables;

use std::cmp::Reverse;

use crate::path::groups::launched;
use crate::predict::whatif::{AppliedChange, Prediction};
pub use advice_list::{Advice, AdviceList, Rejection};
pub use context::RuleContext;
#[cfg(fuzzing)]
pub use edit::edit_for_fuzzing;
pub use edit::{Edit, EditRefusal, EditedLine, Splice, spliced};
pub use finding::{Basis, Finding};
pub use owner::{ForeignCode, Owner};
pub(crate) use rules::builtin::Substitutes;
#[cfg(fuzzing)]
pub use rules::builtin::substitute_for_fuzzing;
pub(crate) use rules::shims::prints_constant_code;
pub use rules::tool_calls::fixes;
use sites::Answer;
pub(crate) use small_work::SmallWork;
use spawnscope_data::event::Nanos;
use spawnscope_data::parallel;
pub(crate) use tables::{Recipe, recipe};

/// A finding that is not worth fixing is reported only when its launches took more than this share
/// of the wall.
const NOTABLE_SHARE: f64 = 0.05;

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

/// Applies all rules to a recording, and looks for sites and their cures.
pub(crate) fn find(context: &RuleContext<'_, '_>) -> Found {
    let (findings, answers) = parallel::join(
        || parallel::map(rules::ALL.len(), usize::MAX, |index| rules::ALL[index].1(context)),
        || sites::find(context),
    );
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    findings.retain(|finding| context.spent_on(&finding.launches) >= context.min_saving());
    Found { findings, answers }
}

/// Selects and sorts findings by the savings of their fixes. `predictions` has one entry for each
/// set of changes that was found.
pub(crate) fn advise(context: &RuleContext<'_, '_>, found: Found, predictions: &[Prediction]) -> AdviceList {
    let mut list = AdviceList { unrecorded: context.whatif.unrecorded(), ..AdviceList::default() };
    let critical = context.path.with_descendants(context.forest());
    let (of_findings, mut others) = predictions.split_at(found.findings.len());
    for (finding, prediction) in found.findings.into_iter().zip(of_findings) {
        let [saved, low, high] = prediction.saving();
        let (saving, most) = match finding.is_at_most {
            true => ([Nanos(0), Nanos(0), high], high),
            false => ([saved, low, high], saved),
        };
        // At least what the fix saves depends on the launches.
        let is_interval = finding.is_at_most && finding.is_guess;
        let is_worth = !is_interval && context.is_worth(&finding.launches, saving, most);
        add(&mut list, context, &critical, vec![(finding, saving, is_worth)]);
    }
    for answer in found.answers {
        let (own, rest) = others.split_at(1 + answer.cures.len());
        others = rest;
        add(&mut list, context, &critical, answer.evaluate(context, own));
    }
    let all = list.worth.iter_mut().chain(list.not_worth.iter_mut().map(|(_, advice)| advice));
    all.for_each(|advice| explain_takeover(context, advice));
    list.worth = merge::merge(context, std::mem::take(&mut list.worth), &mut list.not_worth);
    list.not_worth.sort_by_key(|(rejection, advice)| {
        let finding = &advice.finding;
        (*rejection, Reverse(context.spent_on(&finding.launches)), finding.rule)
    });
    list.distinguish_titles();
    list.name_owners();
    list.mark_overlaps();
    list.together = list.unpredicted().map(|changes| context.whatif.predict(&changes).saving());
    list
}

/// Says what takes over if a fix saves far less than it removes from the critical path.
fn explain_takeover(context: &RuleContext<'_, '_>, advice: &mut Advice) {
    let [saved, ..] = advice.saving;
    if advice.finding.is_at_most {
        return;
    }
    let found = context.whatif.takeover(&advice.finding.changes, saved, context.path, context.recording);
    advice.finding.evidence.extend(found.map(|found| found.sentence(saved)));
}

/// Adds the fixes of some launches that are worth it. If none is, and the launches are expensive,
/// adds the best one as not worth it.
fn add(
    list: &mut AdviceList,
    context: &RuleContext<'_, '_>,
    critical: &[u64],
    fixes: Vec<(Finding, [Nanos; 3], bool)>,
) {
    let (worth, others): (Vec<_>, Vec<_>) = fixes
        .into_iter()
        .partition(|(finding, saving, is_worth)| *is_worth && !is_trifle_of_others(context, finding, saving));
    let best = others.into_iter().max_by_key(|(_, saving, _)| saving[0]).filter(|_| worth.is_empty());
    list.worth.extend(worth.into_iter().map(|(finding, saving, _)| advice_of(context, finding, saving)));
    let is_expensive = |finding: &Finding| context.spent_on(&finding.launches) > context.share_of_wall(NOTABLE_SHARE);
    if let Some((finding, saving, _)) = best.filter(|(finding, ..)| is_expensive(finding)) {
        let advice = advice_of(context, finding, saving);
        list.not_worth.push((Rejection::of(context, critical, &advice), advice));
    }
}

/// Whether a fix that somebody else would have to make saves too little to ask for it.
fn is_trifle_of_others(context: &RuleContext<'_, '_>, finding: &Finding, saving: &[Nanos; 3]) -> bool {
    let [expected, least, _] = *saving;
    let enough = context.whatif.unrecorded().0 as f64 * merge::SMALL_SHARE;
    let is_small = (expected.0.midpoint(least.0) as f64) < enough;
    is_small && !context.is_much(finding.dependent) && foreign_code(context, finding).is_some()
}

fn foreign_code(context: &RuleContext<'_, '_>, finding: &Finding) -> Option<ForeignCode> {
    owner::foreign_code(context, &finding.launches).filter(|_| !finding.is_fixed_elsewhere)
}

fn advice_of(context: &RuleContext<'_, '_>, finding: Finding, saving: [Nanos; 3]) -> Advice {
    Advice {
        launched: launched(context.forest(), &finding.launches),
        callers: context.sites.count(&finding.launches),
        foreign: foreign_code(context, &finding),
        finding: edits::add_edits(context, finding.with_call_sites(context)),
        saving,
        edited_share: 1.0,
        ..Advice::default()
    }
}
