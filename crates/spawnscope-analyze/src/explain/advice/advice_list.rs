//! Findings with the predicted savings of their fixes: which fixes are worth making, which are not
//! and why, and which findings overlap.

use std::collections::HashSet;

use crate::explain::advice::context::RuleContext;
use crate::explain::advice::edit::{Edit, EditedLine, add_included};
use crate::explain::advice::finding::{Finding, OneCall};
use crate::explain::advice::owner::{ForeignCode, Owner};
use crate::explain::advice::phrases::name;
use crate::explain::advice::rules;
use crate::explain::advice::sites;
use crate::model::grouped::grouped;
use crate::model::launch::base_name;
use crate::sites::callers::CallerCounts;
use spawnscope_data::event::Nanos;

/// A finding with the predicted saving of its fix.
#[derive(Clone, Debug, Default)]
pub struct Advice {
    /// What was found.
    pub finding: Finding,
    /// Wall time that the fix saves: expected value, lower and upper end of the confidence
    /// interval.
    pub saving: [Nanos; 3],
    /// What was launched, and how often: programs first, then forks; in both parts the most
    /// frequent first.
    pub launched: Vec<(Vec<u8>, u64)>,
    /// Call sites of the affected launches.
    pub callers: CallerCounts,
    /// The code that requests the launches, if the user does not maintain it.
    pub foreign: Option<ForeignCode>,
    /// Indices of earlier advice about some of the same launches. The savings of overlapping advice
    /// cannot be added.
    pub overlaps: Vec<usize>,
    /// Other fixes of the same cause, the largest saving first.
    pub alternatives: Vec<Advice>,
    /// The line that requests most of the launches, without blanks around it. Empty until someone
    /// looks it up.
    pub line: Vec<u8>,
    /// The edits of `finding` in the user's files. Empty until someone looks them up.
    pub edited: Vec<EditedLine>,
    /// What the edits change besides the launches, separated by `; `.
    pub edit_limits: String,
    /// The part of the launches that lines with edits request.
    pub edited_share: f64,
    /// The edits as a unified diff. Empty until someone looks them up.
    pub patch: Vec<u8>,
    /// Whether the edits are shown in lines that other advice has changed, or apply only after its
    /// edits.
    pub is_edited_after_others: bool,
}

impl Advice {
    /// Returns the saving by which fixes are compared: the expected one or, if only an upper end is
    /// known, the middle below it.
    pub(super) fn likely_saving(&self) -> Nanos {
        match self.saving {
            [Nanos(0), low, high] => Nanos(low.0.midpoint(high.0)),
            [expected, ..] => expected,
        }
    }

    /// Returns this fix or the first alternative that has edits in the user's files.
    pub fn edited_fix(&self) -> Option<&Advice> {
        let mut fixes = std::iter::once(self).chain(&self.alternatives);
        fixes.find(|fix| fix.edited.iter().any(|edited| edited.change.is_ok()))
    }

    /// Takes back what the advice says about one call in place of several, if the file of one of
    /// its edits shows that this is wrong. Adds the edits of the files that a file includes.
    pub fn object(&mut self, text_of: &mut dyn FnMut(&Edit) -> Option<Vec<u8>>) {
        let Finding { one_call, edits, .. } = &self.finding;
        let one_call = one_call.unwrap_or(OneCall::Inputs);
        let reason = edits.iter().find_map(|edit| text_of(edit).and_then(|text| edit.objection(&text, one_call)));
        reason.iter().for_each(|reason| self.finding.object(reason));
        add_included(&mut self.finding.edits, text_of);
        self.alternatives.iter_mut().for_each(|other| other.object(text_of));
    }

    /// Declares that the user maintains the code of a file that was taken for generated code.
    pub fn disown(&mut self, file: &[u8]) {
        self.foreign = None;
        for is_first in [true, false] {
            self.finding.title = self.finding.title.replace(&owner_note(Owner::Generated, file, is_first), "");
        }
        self.alternatives.iter_mut().for_each(|other| other.disown(file));
    }

    /// Returns the advice and its alternatives, each for itself.
    pub fn separated(mut self) -> impl Iterator<Item = Advice> {
        let alternatives = std::mem::take(&mut self.alternatives);
        std::iter::once(self).chain(alternatives)
    }
}

/// All advice on a recording.
#[derive(Clone, Debug, Default)]
pub struct AdviceList {
    /// Advice that saves wall time: first in code that the user maintains, then in other code; in
    /// each part, the largest saving first.
    pub worth: Vec<Advice>,
    /// Findings with expensive launches whose fix does not reliably save enough.
    pub not_worth: Vec<(Rejection, Advice)>,
    /// Combined saving of the first two or three in `worth`. `None` if there are fewer than two.
    pub together: Option<[Nanos; 3]>,
    /// The wall without the overhead of recording. Savings are shown as shares of this wall.
    pub unrecorded: Nanos,
}

/// Why a fix is not worth making, although its launches are expensive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rejection {
    /// The confidence interval is too wide.
    Uncertain,
    /// The launches are on the critical path, but the change saves too little of the wall.
    SmallSaving,
    /// The launches are off the critical path.
    OffPath,
}

impl Rejection {
    pub(super) fn of(context: &RuleContext<'_, '_>, critical: &[u64], advice: &Advice) -> Rejection {
        // Advice about sleep loops is always uncertain, because it is unknown what the script polls
        // for. `OffPath` would be wrong: the sleeps are on the critical path, as external waits.
        if context.may_save([advice.saving[0]; 3]) || advice.finding.rule == rules::sleeps::SLEEP_LOOP {
            Rejection::Uncertain
        } else if Rejection::is_off_path(context, critical, &advice.finding.launches) {
            Rejection::OffPath
        } else {
            Rejection::SmallSaving
        }
    }

    /// Whether launches, including their descendants, delay almost nothing.
    fn is_off_path(context: &RuleContext<'_, '_>, critical: &[u64], launches: &[u32]) -> bool {
        let on_path: u64 = launches.iter().map(|index| critical[*index as usize]).sum();
        on_path as f64 <= context.spent_on(launches).0 as f64 * MAX_CRITICAL_SHARE
    }
}

/// Launches are off the path if at most this share of their time is on the critical path.
const MAX_CRITICAL_SHARE: f64 = 0.05;

/// Maximum number of characters of a command in a title.
const MAX_CHARACTERS: usize = 60;

impl AdviceList {
    /// Names of all rules.
    pub fn rules() -> impl Iterator<Item = &'static str> {
        rules::ALL.iter().flat_map(|(names, _)| names.iter().copied()).chain(sites::IDS)
    }

    /// Keeps only the findings of one rule, also those that are alternatives of others. Drops the
    /// saving of several findings together, which is no longer known.
    pub fn keep_rule(&mut self, rule: &str) {
        self.worth = std::mem::take(&mut self.worth).into_iter().flat_map(Advice::separated).collect();
        self.worth.retain(|advice| advice.finding.rule == rule);
        self.not_worth.retain(|(_, advice)| advice.finding.rule == rule);
        self.together = None;
        self.mark_overlaps();
    }

    /// Marks for each advice the earlier advice about some of the same launches.
    pub(super) fn mark_overlaps(&mut self) {
        for index in 1..self.worth.len() {
            let (earlier, later) = self.worth.split_at_mut(index);
            let launches = &later[0].finding.launches;
            let overlaps = (0..index).filter(|other| {
                let mut others = earlier[*other].finding.launches.iter();
                others.any(|launch| launches.binary_search(launch).is_ok())
            });
            later[0].overlaps = overlaps.collect();
        }
    }

    /// Adds the owner of the code to each title, if the user does not maintain the code: after the
    /// name of its file if the title begins with that, otherwise at the end.
    pub(super) fn name_owners(&mut self) {
        let not_worth = self.not_worth.iter_mut().map(|(_, advice)| advice);
        for advice in self.worth.iter_mut().chain(not_worth) {
            let Some(ForeignCode { owner, file }) = &advice.foreign else {
                continue;
            };
            let title = &mut advice.finding.title;
            let begin = name(base_name(file));
            let is_first = *owner != Owner::Input && title.starts_with(&format!("{begin} "));
            let at = if is_first { begin.len() } else { title.len() };
            title.insert_str(at, &owner_note(*owner, file, is_first));
        }
    }

    /// Makes titles that occur more than once distinct by adding the call site or, if that is not
    /// enough, the command.
    pub(super) fn distinguish_titles(&mut self) {
        let not_worth = self.not_worth.iter_mut().map(|(_, advice)| advice);
        let all = self.worth.iter_mut().chain(not_worth).map(|advice| (advice.finding.title.clone(), advice));
        for mut alike in grouped(all).into_values().filter(|alike| alike.len() > 1) {
            let additions = [most_frequent_line_to_add, command_to_add]
                .into_iter()
                .find_map(|addition| distinct_additions(&alike, addition));
            for (advice, addition) in alike.iter_mut().zip(additions.unwrap_or_default()) {
                advice.finding.title.push_str(&addition);
            }
        }
    }
}

/// Returns what a title says about the owner of the code in a file: after the name of the file at
/// its beginning, or at its end.
fn owner_note(owner: Owner, file: &[u8], is_first: bool) -> String {
    let file = name(base_name(file));
    let kind = if owner == Owner::Generated { "generated" } else { "third-party" };
    match (owner, is_first) {
        (Owner::Input, _) => format!(" (commands that {file} is given)"),
        (_, true) => format!(" ({kind} code)"),
        (_, false) => format!(" (requested by {kind} code: {file})"),
    }
}

/// Returns one addition for each title. `None` if one is missing or two are equal.
fn distinct_additions(alike: &[&mut Advice], addition: fn(&Advice) -> Option<String>) -> Option<Vec<String>> {
    let additions: Vec<String> = alike.iter().map(|advice| addition(advice)).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = additions.iter().collect();
    (distinct.len() == alike.len()).then_some(additions)
}

fn most_frequent_line_to_add(advice: &Advice) -> Option<String> {
    let (call_site, _) = advice.callers.largest.first()?;
    Some(format!(", at {}", name(&call_site.short_label())))
}

fn command_to_add(advice: &Advice) -> Option<String> {
    let words = &advice.finding.example;
    let command: String = name(&words.join(&b' ')).chars().take(MAX_CHARACTERS).collect();
    (!words.is_empty()).then(|| format!(": {command}"))
}
