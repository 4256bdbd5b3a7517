//! Advice: what to change, how, and how much time that saves. `sites` groups launches, and tries a few general cures on each group; each rule
//! in `rules` looks for one mechanism that makes launches slow. Each fix is replayed, and only fixes that save wall time are recommended.
//! `merge` makes one piece of advice of all that is about the same cause, and decides which comes first.

mod advice_list;
mod callers;
mod context;
mod edit;
mod edits;
mod finding;
mod functions;
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
mod thresholds;

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
#[cfg(fuzzing)]
pub use rules::builtin::substitute_for_fuzzing;
pub(crate) use rules::shell_code::prints_constant_code;
use sites::Answer;
pub(crate) use small_work::SmallWork;
use spawnscope_data::event::Nanos;
use spawnscope_data::parallel;

/// A finding that is not worth fixing is reported only when its launches took more than this share
/// of the wall.
const NOTABLE_SHARE: f64 = 0.05;
/// A finding whose saving is uncertain is worth a look if the expected saving is at least this share of the wall.
const LIKELY_SHARE: f64 = 0.1;
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

/// Selects and sorts findings by the savings of their fixes. `predictions` has one entry for each set of changes that was found.
pub(crate) fn advise(context: &RuleContext<'_, '_>, found: Found, predictions: &[Prediction]) -> AdviceList {
    let mut list = AdviceList { unrecorded: context.whatif.unrecorded(), ..AdviceList::default() };
    let critical = context.critical_with_descendants();
    let (of_findings, mut others) = predictions.split_at(found.findings.len());
    for (finding, prediction) in found.findings.into_iter().zip(of_findings) {
        add(&mut list, context, &critical, advice_of(context, finding, prediction.saving()));
    }
    for answer in found.answers {
        let (own, rest) = others.split_at(1 + answer.cures.len());
        others = rest;
        add_cures(&mut list, context, &critical, answer.evaluate(context, own));
    }
    let all = list.worth.iter_mut().chain(list.not_worth.iter_mut().map(|(_, advice)| advice));
    all.for_each(|advice| explain_takeover(context, advice));
    list.worth = merge::merge(context, std::mem::take(&mut list.worth));
    list.not_worth.sort_by_key(|(rejection, advice)| {
        let finding = &advice.finding;
        (*rejection, Reverse(context.spent_on(&finding.launches)), finding.rule)
    });
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

/// Says what takes over if a fix saves far less than it removes from the critical path.
fn explain_takeover(context: &RuleContext<'_, '_>, advice: &mut Advice) {
    let [saved, ..] = advice.saving;
    let found = context.whatif.takeover(&advice.finding.changes, saved, context.path, context.recording);
    advice.finding.evidence.extend(found.map(|found| found.sentence(saved)));
}

/// Adds the cures of a site that are worth it. If none is, the site is not worth a fix.
fn add_cures(
    list: &mut AdviceList,
    context: &RuleContext<'_, '_>,
    critical: &[u64],
    cures: Vec<(Finding, [Nanos; 3], bool)>,
) {
    let (worth, others): (Vec<_>, Vec<_>) = cures.into_iter().partition(|(.., is_worth)| *is_worth);
    if worth.is_empty() {
        let best = others.into_iter().max_by_key(|(_, saving, _)| saving[0]);
        best.into_iter()
            .for_each(|(finding, saving, _)| add(list, context, critical, advice_of(context, finding, saving)));
    } else {
        list.worth.extend(worth.into_iter().map(|(finding, saving, _)| advice_of(context, finding, saving)));
    }
}

fn advice_of(context: &RuleContext<'_, '_>, finding: Finding, saving: [Nanos; 3]) -> Advice {
    Advice {
        launched: launched(context.forest(), &finding.launches),
        callers: context.sites.count(&finding.launches),
        foreign: owner::foreign_code(context, &finding.launches).filter(|_| !finding.is_fixed_elsewhere),
        finding: edits::add_edits(context, callers::add_evidence(context, finding)),
        saving,
        overlaps: Vec::new(),
        alternatives: Vec::new(),
        line: Vec::new(),
        edited: Vec::new(),
        patch: Vec::new(),
    }
}

/// Adds advice to `worth` or `not_worth`. Drops it if it saves too little and its launches are
/// cheap.
fn add(list: &mut AdviceList, context: &RuleContext<'_, '_>, critical: &[u64], advice: Advice) {
    if context.is_certain(advice.saving) || advice.saving[0] >= context.share_of_wall(LIKELY_SHARE) {
        list.worth.push(advice);
    } else if context.spent_on(&advice.finding.launches) > context.share_of_wall(NOTABLE_SHARE) {
        list.not_worth.push((Rejection::of(context, critical, &advice), advice));
    }
}
