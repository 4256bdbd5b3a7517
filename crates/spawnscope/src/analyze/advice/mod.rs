//! Advice: what is worth changing, how, and what that would bring. `rules` find launches and propose a fix, one rule a file;
//! each proposal is played, and only what saves wall time for sure is told, the largest saving first.

mod callers;
mod context;
#[cfg(fuzzing)]
pub mod fuzzing;
mod groups;
mod phrases;
mod pipeline;
mod python_calls;
mod rules;
mod runtimes;
mod selection;
mod shell;
mod thresholds;
mod titles;

use std::cmp::Reverse;

use super::callers::CallerCounts;
use super::whatif::{Fix, Prediction};
use crate::event::Nanos;
use crate::parallel;
pub use context::RuleContext;

/// What a rule has found: launches that cost more than they need to, and a way to change that.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Name of the rule, such as `needless-shell`.
    pub rule: &'static str,
    /// What is the matter, in one sentence without its full stop.
    pub title: String,
    /// The launches that it is about, by index.
    pub launches: Vec<u32>,
    /// Sentences with the figures that it rests on.
    pub evidence: Vec<String>,
    /// Arguments of one of the launches.
    pub example: Vec<Vec<u8>>,
    /// What to do, a line each: sentences, or text to type.
    pub fix: Vec<String>,
    /// What the fix does not help against, or may break.
    pub limits: String,
    /// Options of `spawnscope whatif` that try it; empty where none select what it is about.
    pub whatif: String,
    /// The same for the replay.
    pub tries: Vec<Fix>,
    /// Where the predicted saving comes from.
    pub basis: Basis,
}

/// Where a predicted saving comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The time was seen to be spent on what is to go.
    Measured,
    /// A model says how much would remain.
    Modelled,
}

/// A finding with what its fix would bring.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was found.
    pub finding: Finding,
    /// Wall time that the fix saves: expected, at least, at most.
    pub saving: [Nanos; 3],
    /// The lines that asked for its launches.
    pub callers: CallerCounts,
    /// Places in the list, from 0, of earlier advice about some of the same launches: their savings do not add.
    pub overlaps: Vec<usize>,
}

/// Everything that is worth telling.
#[derive(Clone, Debug, Default)]
pub struct Advices {
    /// What saves wall time, the most first.
    pub worth: Vec<Advice>,
    /// What costs much, but saves too little for sure.
    pub not_worth: Vec<(Doubt, Advice)>,
    /// What the first three save together, when there are at least two.
    pub together: Option<[Nanos; 3]>,
    /// The wall without what recording took, which savings are a share of.
    pub unrecorded: Nanos,
}

/// Why advice is not worth following, although its launches cost much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// It may save much, or next to nothing.
    Uncertain,
    /// Its launches are in the way, but most of what they take remains.
    Little,
    /// Others were at work while its launches ran.
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

/// A saving has to exceed this share of the wall to be told.
const LEAST_SHARE: f64 = 0.01;
/// And this.
const LEAST_SAVING: Nanos = Nanos(5_000_000);
/// What is not worth fixing is told when its launches took this share of the wall.
const NOTABLE_SHARE: f64 = 0.05;
/// Launches of all proposals that are tried at the same time, each of which takes some 200 bytes for a trial.
const MOST_TRIED: usize = 300_000;
/// So many first ones are tried together.
const TOGETHER: usize = 3;

/// Applies all rules to a recording.
#[must_use]
pub fn advise(context: &RuleContext<'_, '_>) -> Advices {
    let findings = parallel::each(rules::ALL.len(), usize::MAX, |index| rules::ALL[index](context));
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
            // What it says is not true then: these launches are in the way of others, or waited for something outside.
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

/// Plays every proposal, as many at a time as memory is well spent on.
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
