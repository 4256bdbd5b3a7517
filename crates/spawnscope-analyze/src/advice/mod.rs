//! Advice: what to change, how, and how much time that saves. Each rule in `rules` finds launches and proposes a fix. Each proposal is
//! replayed, and only proposals that reliably save wall time are reported, the largest saving first.

mod callers;
mod context;
#[cfg(fuzzing)]
pub mod fuzzing;
mod groups;
mod phrases;
mod rules;
mod selection;
mod thresholds;
mod titles;

use std::cmp::Reverse;

use crate::callers::CallerCounts;
use crate::whatif::{Fix, Prediction};
pub use context::RuleContext;
use spawnscope_data::event::Nanos;
use spawnscope_data::parallel;

/// A finding of a rule: launches that cost more than necessary, and a fix.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the rule, such as `needless-shell`.
    pub rule: &'static str,
    /// The problem, in one sentence without a full stop.
    pub title: String,
    /// The affected launches, by index.
    pub launches: Vec<u32>,
    /// Sentences with the measurements behind the finding.
    pub evidence: Vec<String>,
    /// Arguments of one of the affected launches.
    pub example: Vec<Vec<u8>>,
    /// The fix, one line each: sentences, or text to type.
    pub fix: Vec<String>,
    /// What the fix does not solve, or may break.
    pub limits: String,
    /// Options of `spawnscope whatif` that try the fix. Empty where no options select these launches.
    pub whatif: String,
    /// The same adjustments, as input of the replay.
    pub tries: Vec<Fix>,
    /// How the saving is derived.
    pub basis: Basis,
}

/// How a predicted saving is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The recording shows the time that the fix removes.
    Measured,
    /// A model estimates how much time remains after the fix.
    Modelled,
}

/// A finding with the predicted saving of its fix.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was found.
    pub finding: Finding,
    /// Wall time that the fix saves: expected value, lower and upper end of the confidence interval.
    pub saving: [Nanos; 3],
    /// Call sites of the affected launches.
    pub callers: CallerCounts,
    /// Indices of earlier advice about some of the same launches. Savings that overlap cannot be added.
    pub overlaps: Vec<usize>,
}

/// All advice on a recording.
#[derive(Clone, Debug, Default)]
pub struct Advices {
    /// Advice that saves wall time, the largest saving first.
    pub worth: Vec<Advice>,
    /// Findings with costly launches whose fix does not reliably save enough.
    pub not_worth: Vec<(Doubt, Advice)>,
    /// Combined saving of the first three. `None` when there is only one.
    pub together: Option<[Nanos; 3]>,
    /// The wall without the overhead of recording. Shares of savings refer to it.
    pub unrecorded: Nanos,
}

impl Advices {
    /// Names of all rules.
    pub fn rules() -> impl Iterator<Item = &'static str> {
        rules::ALL.iter().flat_map(|(names, _)| names.iter().copied())
    }

    /// Keeps what one rule found. The savings of several findings together are no longer known then.
    pub fn keep_rule(&mut self, rule: &str) {
        self.worth.retain(|advice| advice.finding.rule == rule);
        self.not_worth.retain(|(_, advice)| advice.finding.rule == rule);
        self.together = None;
        mark_overlaps(&mut self.worth);
    }
}

/// Why a fix is not worth making, although its launches cost much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// The confidence interval is too wide.
    Uncertain,
    /// The launches are on the critical path, but most of their time would remain.
    Little,
    /// The launches are off the critical path.
    OffPath,
}

impl Doubt {
    fn of(context: &RuleContext<'_, '_>, advice: &Advice, least: Nanos) -> Doubt {
        if advice.saving[0] > least {
            Doubt::Uncertain
        } else if rules::off_path::are_off_path(context, &advice.finding.launches) {
            Doubt::OffPath
        } else {
            Doubt::Little
        }
    }
}

/// Advice is reported only when its saving exceeds this share of the wall.
const LEAST_SHARE: f64 = 0.01;
/// Advice is reported only when its saving exceeds this duration, too.
const LEAST_SAVING: Nanos = Nanos(5_000_000);
/// A finding that is not worth fixing is reported when its launches took this share of the wall.
const NOTABLE_SHARE: f64 = 0.05;
/// Maximum number of launches in concurrent replays. A replay takes about 200 bytes per launch.
const MOST_TRIED: usize = 300_000;
/// Number of findings in the combined replay.
const TOGETHER: usize = 3;

/// Applies all rules to a recording.
#[must_use]
pub fn advise(context: &RuleContext<'_, '_>) -> Advices {
    let findings = parallel::each(rules::ALL.len(), usize::MAX, |index| rules::ALL[index].1(context));
    let findings = findings.into_iter().flatten();
    let worthy = |finding: &Finding| context.most_saved(&finding.launches) >= least(context.wall());
    let findings: Vec<Finding> = findings.filter(worthy).collect();
    let tries: Vec<&[Fix]> = findings.iter().map(|finding| finding.tries.as_slice()).collect();
    let predictions = predict_all(context, &tries);
    let mut advices = Advices {
        unrecorded: context.whatif.unrecorded(),
        ..Advices::default()
    };
    let callers = context.callers;
    for (mut finding, prediction) in findings.into_iter().zip(predictions) {
        let saving = prediction.saving();
        finding.evidence.extend(callers::evidence(context, callers, &finding));
        let advice = Advice {
            callers: callers.count(&finding.launches),
            finding,
            saving,
            overlaps: Vec::new(),
        };
        let is_worth = saving[1] > least(context.wall());
        if advice.finding.rule == rules::off_path::RULE && saving[0] > least(context.wall()) {
            // The finding would be wrong: these launches delay others, or waited for something outside.
            continue;
        }
        if is_worth {
            advices.worth.push(advice);
        } else if context.spent_on(&advice.finding.launches) > share_of(context.wall(), NOTABLE_SHARE) {
            let doubt = Doubt::of(context, &advice, least(context.wall()));
            advices.not_worth.push((doubt, advice));
        }
    }
    let by_saving = |advice: &Advice| {
        (
            Reverse(advice.saving),
            advice.finding.rule,
            advice.finding.title.clone(),
        )
    };
    advices.worth.sort_by_key(by_saving);
    advices.not_worth.sort_by_key(|(doubt, advice)| {
        (
            *doubt,
            Reverse(context.spent_on(&advice.finding.launches)),
            advice.finding.rule,
        )
    });
    titles::tell_apart(&mut advices);
    mark_overlaps(&mut advices.worth);
    advices.together = together(context, &advices.worth);
    advices
}

fn least(wall: Nanos) -> Nanos {
    share_of(wall, LEAST_SHARE).max(LEAST_SAVING)
}

fn share_of(wall: Nanos, share: f64) -> Nanos {
    Nanos((wall.0 as f64 * share) as u64)
}

/// Replays every proposal, as many concurrently as memory allows.
fn predict_all(context: &RuleContext<'_, '_>, tries: &[&[Fix]]) -> Vec<Prediction> {
    let for_memory = (MOST_TRIED / context.forest().launches.len().max(1)).max(1);
    parallel::each(tries.len(), for_memory, |index| context.whatif.predict(tries[index]))
}

fn mark_overlaps(advices: &mut [Advice]) {
    for index in 1..advices.len() {
        let (before, rest) = advices.split_at_mut(index);
        let own = &rest[0].finding.launches;
        let shares = |other: &Advice| {
            other
                .finding
                .launches
                .iter()
                .any(|launch| own.binary_search(launch).is_ok())
        };
        rest[0].overlaps = (0..index).filter(|other| shares(&before[*other])).collect();
    }
}

fn together(context: &RuleContext<'_, '_>, advices: &[Advice]) -> Option<[Nanos; 3]> {
    if advices.len() < 2 {
        return None;
    }
    let first = advices.iter().take(TOGETHER);
    let fixes: Vec<Fix> = first.flat_map(|advice| advice.finding.tries.iter().cloned()).collect();
    Some(context.whatif.predict(&fixes).saving())
}
