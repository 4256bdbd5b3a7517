//! One cause is one piece of advice: findings about mostly the same launches become one, with the
//! best fix first and the others as alternatives. A cause is worth a fix if one of its fixes is;
//! which of them is best does not depend on who found it. Then decides in which order causes are
//! named.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::explain::advice::advice_list::{Advice, AdviceList, Rejection};
use crate::explain::advice::context::RuleContext;
use crate::explain::advice::finding::Finding;
use crate::explain::advice::rules::builtin;
use crate::predict::dependence::DEPENDENT_SHARE;
use crate::predict::whatif::AppliedChange;
use crate::predict::whatif::changes::Change;
use crate::sites::callers::CallerCounts;
use spawnscope_data::event::Nanos;

/// Two findings have the same cause if they share at least this part of the launches of the larger
/// one.
const SAME_CAUSE: f64 = 0.5;
/// They also have the same cause if their own launches agree in this part.
const ABOUT_ALL: f64 = 0.8;
/// Of several fixes of a cause, the simplest of those that save at least this part of the best one
/// comes first.
const ABOUT_AS_MUCH: f64 = 0.75;
/// A fix in the user's own files comes before one elsewhere if it saves at least this part of it.
const MUCH: f64 = 0.25;
/// A fix that is known to be possible comes before a guess if it saves at least this part of it.
const GUESSED: f64 = 0.15;
/// A fix is minor if it saves less than this part of what depends on the launches.
const MINOR: f64 = 0.25;
/// A fix of a phase, such as of the copy of a large parent, needs this part.
const GUESSED_OF_PHASE: f64 = 0.4;
/// Findings that save less than this share of the wall come after all larger ones.
pub(super) const SMALL_SHARE: f64 = 0.02;
/// A fix that is simple at one line is not so at more than these.
const MANY_LINES: u64 = 10;
/// Number of findings whose fixes are replayed together.
const MAX_TOGETHER: usize = 3;
/// Launches hold most of the wall if this share depends on them.
const MOST: f64 = 0.5;

/// The ids of findings, the simplest fixes first. Others are in between.
const SIMPLE: [&str; 10] = [
    "not-at-all", "scanner", "lock-wait", "once", "builtin", "shell-line", "pipeline", "shell-code", "version-manager",
    "needless-shell",
];
/// The ids of other findings about launches or about how they are awaited, not about their phases.
const OF_LAUNCHES: [&str; 6] =
    ["many-per-launch", "resident", "in-language", "make-recursive", "package-script", "late-reaping"];
const HARDER: [&str; 3] = ["resident", "in-language", "parallel"];

/// Merges the findings about each cause, and sorts causes: those in the user's own code first, the
/// largest saving first, and small ones last. Takes what may be saved at the same launches from
/// `not_worth`.
pub(super) fn merge(
    context: &RuleContext<'_, '_>,
    mut all: Vec<Advice>,
    not_worth: &mut Vec<(Rejection, Advice)>,
) -> Vec<Advice> {
    all.sort_by_key(by_score);
    let mut causes: Vec<(Vec<bool>, Vec<Advice>)> = Vec::new();
    for advice in all {
        let covered = covered(context, &advice);
        match causes.iter_mut().find(|(others, members)| {
            is_same_cause(others, &covered, members[0].finding.rule == "shell-line")
                || have_same_launches(&members[0].finding.launches, &advice.finding.launches)
        }) {
            Some((_, members)) => members.push(advice),
            None => causes.push((covered, vec![advice])),
        }
    }
    for (_, members) in &mut causes {
        let launches = members[0].finding.launches.clone();
        let uncertain = not_worth.extract_if(.., |(_, advice)| {
            context.may_save(advice.saving) && have_same_launches(&launches, &advice.finding.launches)
        });
        members.extend(uncertain.map(|(_, advice)| advice));
        members.sort_by_key(by_score);
    }
    let mut merged: Vec<Advice> = causes.into_iter().map(|(_, members)| best_of(members)).collect();
    absorb(context, &mut merged);
    sort(&mut merged, context.whatif.unrecorded());
    merged
}

/// Sorts causes. `wall` is without the overhead of recording.
///
/// Recorders see the same launches, but other times. So times decide only between savings that are
/// certainly different. Between others decides what every recorder sees.
pub(super) fn sort(all: &mut [Advice], wall: Nanos) {
    let share = |share: f64| Nanos((wall.0 as f64 * share) as u64);
    // Work inside a lock is not what others wait for.
    let kind = |advice: &Advice| (advice.foreign.is_some(), advice.finding.rule != "lock-wait");
    all.sort_by_key(|advice| {
        // What holds most of the wall comes before trifles, however little of it is certainly
        // saved.
        let holds_most = advice.finding.dependent >= share(MOST);
        let is_less = |part: f64| advice.likely_saving() < share(part) && !holds_most;
        let saving = Reverse((advice.likely_saving(), advice.saving));
        let title = advice.finding.title.clone();
        (is_less(SMALL_SHARE), kind(advice), is_less(DEPENDENT_SHARE), saving, advice.finding.rule, title)
    });
    let mut rest = all;
    while let Some(first) = rest.first() {
        let is_alike = |advice: &Advice| kind(advice) == kind(first) && may_save_as_much(advice, first);
        let alike = || rest.iter().enumerate().filter(|(_, advice)| is_alike(advice));
        let most = alike().map(|(_, advice)| removed_by(&advice.finding)).max().unwrap_or_default();
        let best = alike().min_by_key(|(_, advice)| {
            let finding = &advice.finding;
            let (is_possible, is_about_most) = (!finding.is_guess, is_about(removed_by(finding), most));
            let known = [is_of_launches(finding), is_possible, is_about_most].map(Reverse);
            let [_, _, most_saved] = advice.saving;
            let is_less = most_saved < first.likely_saving();
            (known, difficulty(advice), is_less, finding.launches.first().copied())
        });
        let best = best.map_or(0, |(position, _)| position);
        rest[..=best].rotate_right(1);
        rest = &mut rest[1..];
    }
}

/// Whether a fix may save as much as another one, which seems to save more. A guess may save
/// nothing.
fn may_save_as_much(advice: &Advice, first: &Advice) -> bool {
    let (saving, [_, least, _]) = (advice.likely_saving(), first.saving);
    let is_at_least = |part: f64| saving.0 as f64 >= part * first.likely_saving().0 as f64;
    let is_surer = first.finding.is_guess && !advice.finding.is_guess && is_at_least(MOST);
    saving >= least && is_at_least(MUCH) || is_surer
}

/// Returns how many launches a fix removes, without their descendants.
fn removed_by(finding: &Finding) -> usize {
    let removed = finding.changes.iter().map(|AppliedChange { change, launches }| match change {
        Change::Remove | Change::Builtin | Change::InProcess => launches.len(),
        Change::Batch(size) => launches.len() - launches.len().div_ceil(*size as usize),
        _ => 0,
    });
    removed.sum()
}

/// Whether a number is about as large as another one.
fn is_about(number: usize, other: usize) -> bool {
    number as f64 >= ABOUT_AS_MUCH * other as f64
}

impl AdviceList {
    /// Decides again which fix of each cause comes first, and which cause, once the files of the
    /// user have shown more.
    pub fn settle(&mut self) {
        let titles = |all: &[Advice]| all.iter().map(|advice| advice.finding.title.clone()).collect::<Vec<_>>();
        let before = titles(&self.worth);
        let causes = std::mem::take(&mut self.worth).into_iter();
        self.worth = causes.map(|cause| led_again(cause.separated().collect())).collect();
        sort(&mut self.worth, self.unrecorded);
        if titles(&self.worth) != before {
            self.together = None;
        }
        self.mark_overlaps();
    }

    /// Returns the changes whose saving is `together`, if that is not known yet.
    pub fn unpredicted(&self) -> Option<Vec<AppliedChange>> {
        let first = self.worth.iter().take(MAX_TOGETHER);
        (self.together.is_none() && self.worth.len() > 1)
            .then(|| first.flat_map(|advice| advice.finding.changes.iter().cloned()).collect())
    }
}

/// Returns the advice about a cause, whose fixes are no longer what they were.
pub(super) fn led_again(mut members: Vec<Advice>) -> Advice {
    let first = &members[0].finding;
    if !first.is_objected && members.iter().skip(1).all(|advice| advice.finding.is_guess >= first.is_guess) {
        let first = members.remove(0);
        return Advice { alternatives: members, ..first };
    }
    members.sort_by_key(by_score);
    best_of(members)
}

/// Makes findings about launches that a better fix removes anyway alternatives of that fix.
fn absorb(context: &RuleContext<'_, '_>, all: &mut Vec<Advice>) {
    all.sort_by_key(by_score);
    let mut at = 0;
    while at + 1 < all.len() {
        let removed = removed(context, &all[at]);
        let is_foreign = all[at].foreign.is_some();
        let is_absorbed = |advice: &mut Advice| {
            let launches = &advice.finding.launches;
            let common = launches.iter().filter(|launch| removed[**launch as usize]).count();
            let is_in_place = !is_foreign || advice.foreign.is_some();
            is_in_place && common > 0 && common as f64 >= ABOUT_ALL * launches.len() as f64
        };
        let absorbed: Vec<Advice> = all.extract_if(at + 1.., is_absorbed).collect();
        all[at].alternatives.extend(absorbed.into_iter().flat_map(Advice::separated));
        at += 1;
    }
}

/// Returns for each launch whether a fix removes it.
fn removed(context: &RuleContext<'_, '_>, advice: &Advice) -> Vec<bool> {
    let mut removed = vec![false; context.forest().launches.len()];
    for applied in &advice.finding.changes {
        match applied.change {
            Change::Remove | Change::Builtin => {
                context.walk(&applied.launches).for_each(|step| removed[step.index] = true);
            }
            Change::InProcess => applied.launches.iter().for_each(|launch| removed[*launch as usize] = true),
            _ => {}
        }
    }
    removed
}

fn by_score(advice: &Advice) -> (Reverse<Nanos>, &'static str, String) {
    (Reverse(score(advice)), advice.finding.rule, advice.finding.title.clone())
}

/// Returns how much a fix saves. What is uncertain counts half; one launch that may be needed
/// counts less than what it does.
fn score(advice: &Advice) -> Nanos {
    let likely = advice.saving[1].0.midpoint(advice.likely_saving().0);
    let is_whole = advice.finding.launches.len() == 1 && advice.finding.rule == "resident";
    Nanos(if is_whole { likely / 2 } else { likely })
}

/// Returns for each launch whether a finding is about it: its own launches, those that its fix
/// changes, and all descendants. A program that is started in another way launches the same.
fn covered(context: &RuleContext<'_, '_>, advice: &Advice) -> Vec<bool> {
    let forest = context.forest();
    let mut covered = vec![false; forest.launches.len()];
    let changed = advice.finding.changes.iter().flat_map(|change| &change.launches);
    advice.finding.launches.iter().chain(changed).for_each(|launch| covered[*launch as usize] = true);
    if advice.finding.changes.iter().all(|applied| applied.change == Change::Direct) {
        return covered;
    }
    for step in forest.walk_all() {
        covered[step.index] |= forest.parent(step.index).is_some_and(|parent| covered[parent]);
    }
    covered
}

fn is_same_cause(one: &[bool], other: &[bool], is_line: bool) -> bool {
    let count = |launches: &[bool]| launches.iter().filter(|is_covered| **is_covered).count();
    let common = one.iter().zip(other).filter(|(one, other)| **one && **other).count();
    // A line contains all that it launches.
    let larger = if is_line { count(other) } else { count(one).max(count(other)) };
    common > 0 && common as f64 >= SAME_CAUSE * larger as f64
}

/// Whether two findings are about the same launches, apart from the forks around them.
fn have_same_launches(one: &[u32], other: &[u32]) -> bool {
    let common = one.iter().filter(|launch| other.binary_search(launch).is_ok()).count();
    common > 0 && common as f64 >= SAME_CAUSE * one.len().max(other.len()) as f64
}

/// Returns the advice about a cause: the best fix, with the others as its alternatives. `members`
/// are sorted by their scores.
fn best_of(mut members: Vec<Advice>) -> Advice {
    let is_better = |advice: &Advice| !advice.finding.is_guess || !advice.finding.edits.is_empty();
    if members.iter().any(|advice| !advice.finding.is_objected && is_better(advice)) {
        members.retain(|advice| !advice.finding.is_objected);
    }
    let most = score(&members[0]);
    let is_much = |advice: &Advice, share: f64| score(advice).0 as f64 >= share * most.0 as f64;
    let is_foreign = !members.iter().any(|advice| advice.foreign.is_none() && is_much(advice, MUCH));
    let in_place = |advice: &Advice| advice.foreign.is_some() == is_foreign;
    let is_guess = !members.iter().any(|advice| in_place(advice) && is_much(advice, needed_share(advice)));
    let is_candidate = |advice: &Advice| in_place(advice) && (is_guess || !advice.finding.is_guess);
    let candidates: Vec<usize> = (0..members.len()).filter(|position| is_candidate(&members[*position])).collect();
    let mut best = members.remove(best_candidate(&members, &candidates));
    // A guess is of no use beside a fix that is known to be possible, nor is a part of the same
    // fix.
    let said = lines_of(&best.finding);
    members.retain(|advice| (is_guess || !advice.finding.is_guess) && !lines_of(&advice.finding).is_subset(&said));
    best.alternatives = members;
    best
}

/// Returns which of some fixes of a cause is the best one.
fn best_candidate(members: &[Advice], candidates: &[usize]) -> usize {
    let advices = || candidates.iter().map(|position| &members[*position]);
    let Some(first) = advices().next() else { return 0 };
    // One process saves more than running launches at the same time, even where the recording does
    // not show how long their start-up takes.
    let parallel = members.iter().find(|advice| advice.finding.rule == "parallel").map(|advice| advice.saving[0]);
    let is_as_good = |advice: &Advice| {
        let removes_as_many = || is_about(removed_by(&advice.finding), removed_by(&first.finding));
        score(advice).0 as f64 >= ABOUT_AS_MUCH * score(first).0 as f64
            || may_save_as_much(advice, first) && removes_as_many()
            || is_one_process(advice) && parallel.is_some_and(|parallel| middle(advice) >= parallel)
    };
    let good = candidates.iter().copied().filter(|position| is_as_good(&members[*position]));
    let best = good.min_by_key(|position| {
        let advice = &members[*position];
        (difficulty(advice), Reverse(removed_by(&advice.finding)), *position)
    });
    let best = best.unwrap_or_default();
    // Long launches are more than their launch tax. One process for all of them saves an unknown
    // part of the rest, too.
    let dependent = advices().map(|advice| advice.finding.dependent).max();
    let is_minor = |saved: Nanos| (saved.0 as f64) < MINOR * dependent.unwrap_or_default().0 as f64;
    let is_major = |advice: &Advice| is_one_process(advice) && !is_minor(middle(advice));
    let major = candidates.iter().copied().find(|position| is_major(&members[*position]));
    major.filter(|_| is_minor(members[best].likely_saving())).unwrap_or(best)
}

/// Returns the lines of a fix, without how often each applies.
fn lines_of(finding: &Finding) -> BTreeSet<String> {
    finding.fix.iter().map(|line| builtin::without_count(line)).collect()
}

/// Returns which part of a guess a fix must save to come before it. A fix of the launches
/// themselves makes fixes of their phases needless.
fn needed_share(advice: &Advice) -> f64 {
    let rule = advice.finding.rule;
    match is_of_launches(&advice.finding) {
        _ if advice.finding.is_guess || rule == "parallel" => f64::INFINITY,
        true => GUESSED,
        false => GUESSED_OF_PHASE,
    }
}

fn is_of_launches(finding: &Finding) -> bool {
    SIMPLE.contains(&finding.rule) || OF_LAUNCHES.contains(&finding.rule)
}

fn middle(advice: &Advice) -> Nanos {
    Nanos(advice.saving[1].0.midpoint(advice.saving[2].0))
}

/// Whether a fix lets one process do all the work.
fn is_one_process(advice: &Advice) -> bool {
    !advice.finding.is_guess && matches!(advice.finding.rule, "many-per-launch" | "resident")
}

/// Returns how hard a fix is to make, compared with others.
fn difficulty(advice: &Advice) -> usize {
    let rule = advice.finding.rule;
    let simple = SIMPLE.iter().position(|id| *id == rule).filter(|_| !is_at_many_lines(&advice.callers));
    // A known function of the language is not harder than another call.
    let is_function = rule == "in-language" && !advice.finding.is_guess;
    let harder = HARDER.iter().position(|id| *id == rule).filter(|_| !is_function);
    let harder = harder.map(|position| SIMPLE.len() + 1 + position);
    simple.or(harder).unwrap_or(SIMPLE.len())
}

/// Whether about each launch has a line of its own, so that a fix changes many lines.
fn is_at_many_lines(callers: &CallerCounts) -> bool {
    let lines = callers.largest.len() as u64 + callers.other_call_sites;
    let launches = callers.largest.iter().map(|(_, count)| count).sum::<u64>() + callers.others;
    lines > MANY_LINES && launches < 2 * lines
}
