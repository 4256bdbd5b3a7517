//! Answers: findings about sites, with the range of what their cures save, and the decision whether they are worth printing.

use std::collections::HashSet;

use super::MIN_DEPENDENT_SHARE;
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::predict::whatif::{AppliedChange, Prediction};
use spawnscope_data::event::Nanos;
use spawnscope_data::units;

/// A finding about a site.
pub(crate) struct Answer {
    pub(super) finding: Finding,
    /// Removes the site's launches, which shows how much of the wall depends on them.
    pub(super) removal: AppliedChange,
    /// Whether the cure may save up to everything that depends on the launches it removes, because the recording does not separate their
    /// start-up from their work.
    pub(super) is_open: bool,
    /// Time of the launches that the cure keeps, although its change removes them.
    pub(super) kept: Nanos,
}

/// Advice with a smaller saving than this share of an answer's does not replace the answer.
const ALIKE: f64 = 0.5;

impl Answer {
    /// Returns the changes to predict: those of the cure, and the removal of the launches.
    pub(crate) fn changes(&self) -> [&[AppliedChange]; 2] {
        [&self.finding.changes, std::slice::from_ref(&self.removal)]
    }

    /// Returns the finding and what it saves. `None` if it is not worth printing, or if `others` already answer it. `predictions` are those of
    /// `changes`.
    pub(in crate::explain::advice) fn evaluate(
        self,
        context: &RuleContext<'_, '_>,
        [cure, removal]: [&Prediction; 2],
        others: &[(&[u32], Nanos)],
    ) -> Option<(Finding, [Nanos; 3])> {
        let ([expected, low, high], [dependent, ..]) = (cure.saving(), removal.saving());
        let high = if self.is_open { high.max(dependent) } else { high };
        let saving = [expected.since(self.kept), low.since(self.kept), high];
        let is_certain = saving[1] > context.min_saving();
        let depends = dependent.0 as f64 >= MIN_DEPENDENT_SHARE * cure.unrecorded.0 as f64;
        let is_worth = if self.finding.rule == super::LOOP { is_certain } else { depends };
        if !is_worth || saving[2] <= context.min_saving() || self.is_answered(context, saving[0], others) {
            return None;
        }
        let share = units::percent(dependent, cure.unrecorded);
        let them = if self.removal.launches.len() == 1 { "it" } else { "them" };
        let finding = self.finding.evidence(format!("{share} of the wall depends on {them}"));
        Some((finding, saving))
    }

    /// Whether other advice is about most launches of a loop, or about the same launches and saves about as much.
    fn is_answered(&self, context: &RuleContext<'_, '_>, saving: Nanos, others: &[(&[u32], Nanos)]) -> bool {
        let tops: Vec<usize> = self.removal.launches.iter().map(|launch| *launch as usize).collect();
        let own: HashSet<u32> = context.forest().walk(&tops).map(|step| step.index as u32).collect();
        if self.finding.rule == super::LOOP {
            let covered: HashSet<&u32> = others.iter().flat_map(|(launches, _)| *launches).collect();
            return own.iter().filter(|launch| covered.contains(launch)).count() * 2 > own.len();
        }
        let about_these = others.iter().filter(|(launches, _)| {
            let common = launches.iter().filter(|launch| own.contains(launch)).count();
            common * 2 > launches.len() || common * 2 > own.len()
        });
        let known: u64 = about_these.map(|(_, saving)| saving.0).sum();
        known > 0 && known as f64 >= ALIKE * saving.0 as f64
    }
}
