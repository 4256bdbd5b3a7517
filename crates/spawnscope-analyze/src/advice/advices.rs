//! Findings with the predicted savings of their fixes: which are worth making, which are not and why, and which overlap.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::advice::context::RuleContext;
use crate::advice::finding::Finding;
use crate::advice::owner::{Foreign, Owner};
use crate::advice::phrases::name;
use crate::advice::rules::{self, off_path};
use crate::callers::CallerCounts;
use crate::launch::base_name;
use spawnscope_data::event::Nanos;

/// A finding with the predicted saving of its fix.
#[derive(Clone, Debug)]
pub struct Advice {
    /// What was found.
    pub finding: Finding,
    /// Wall time that the fix saves: expected value, lower and upper end of the confidence interval.
    pub saving: [Nanos; 3],
    /// Call sites of the affected launches.
    pub callers: CallerCounts,
    /// Whose code requests the launches, if it is not the user's.
    pub foreign: Option<Foreign>,
    /// Indices of earlier advice about some of the same launches. Savings that overlap cannot be added.
    pub overlaps: Vec<usize>,
}

/// All advice on a recording.
#[derive(Clone, Debug, Default)]
pub struct Advices {
    /// Advice that saves wall time: in the user's own code, then in other code, each with the largest saving first.
    pub worth: Vec<Advice>,
    /// Findings with costly launches whose fix does not reliably save enough.
    pub not_worth: Vec<(Doubt, Advice)>,
    /// Combined saving of the first three. `None` when there is only one.
    pub together: Option<[Nanos; 3]>,
    /// The wall without the overhead of recording. Shares of savings refer to it.
    pub unrecorded: Nanos,
}

/// Why a fix is not worth making, although its launches cost much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// The confidence interval is too wide.
    Uncertain,
    /// The launches are on the critical path, but the change saves too little of the wall.
    SmallSaving,
    /// The launches are off the critical path.
    OffPath,
}

impl Doubt {
    pub(super) fn of(context: &RuleContext<'_, '_>, advice: &Advice) -> Doubt {
        // What a script polls for is mostly unknown, and its sleeps are on the path, though not charged to a launch.
        if advice.saving[0] > context.least_saving() || advice.finding.rule == rules::sleep_loop::RULE {
            Doubt::Uncertain
        } else if off_path::are_off_path(context, &advice.finding.launches) {
            Doubt::OffPath
        } else {
            Doubt::SmallSaving
        }
    }
}

/// Maximum number of characters shown of a command.
const MAX_CHARACTERS: usize = 60;

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
        self.mark_overlaps();
    }

    /// Notes for each advice which earlier ones are about some of the same launches.
    pub(super) fn mark_overlaps(&mut self) {
        for index in 1..self.worth.len() {
            let (before, rest) = self.worth.split_at_mut(index);
            let own = &rest[0].finding.launches;
            let shares = |other: &Advice| {
                let mut launches = other.finding.launches.iter();
                launches.any(|launch| own.binary_search(launch).is_ok())
            };
            rest[0].overlaps = (0..index).filter(|other| shares(&before[*other])).collect();
        }
    }

    /// Drops advice of a general rule about launches for which a specific rule has advice.
    pub(super) fn drop_general(&mut self, general: &str) {
        let specific: HashSet<u32> = self
            .worth
            .iter()
            .filter(|advice| advice.finding.rule != general)
            .flat_map(|advice| advice.finding.launches.iter().copied())
            .collect();
        let is_covered = |advice: &Advice| {
            let launches = &advice.finding.launches;
            launches.iter().filter(|launch| specific.contains(launch)).count() * 2 > launches.len()
        };
        self.worth
            .retain(|advice| advice.finding.rule != general || !is_covered(advice));
        self.not_worth.retain(|(_, advice)| advice.finding.rule != general);
    }

    /// Of two rules with the same fix, drops advice about launches that advice of the other one contains. For the same launches, that of the first
    /// one stays.
    pub(super) fn drop_contained(&mut self, rules: [&str; 2]) {
        let rank = |advice: &Advice| rules.iter().position(|rule| *rule == advice.finding.rule);
        let of_rules = self
            .worth
            .iter()
            .filter_map(|advice| Some((rank(advice)?, &advice.finding.launches)));
        let of_rules: Vec<(usize, Vec<u32>)> = of_rules.map(|(rank, launches)| (rank, launches.clone())).collect();
        self.worth.retain(|advice| {
            let own = &advice.finding.launches;
            rank(advice).is_none_or(|own_rank| {
                !of_rules.iter().any(|(rank, launches)| {
                    let comes_first = (Reverse(launches.len()), *rank) < (Reverse(own.len()), own_rank);
                    *rank != own_rank && comes_first && own.iter().all(|launch| launches.binary_search(launch).is_ok())
                })
            })
        });
    }

    /// Says in the titles which advice is about code that the user does not maintain.
    pub(super) fn name_owners(&mut self) {
        let not_worth = self.not_worth.iter_mut().map(|(_, advice)| advice);
        for advice in self.worth.iter_mut().chain(not_worth) {
            let Some(Foreign { owner, file }) = &advice.foreign else {
                continue;
            };
            let kind = match owner {
                Owner::Generated => "generated",
                Owner::ThirdParty | Owner::User => "third-party",
            };
            let addition = format!(", in {kind} code ({})", name(base_name(file)));
            advice.finding.title.push_str(&addition);
        }
    }

    /// Adds the call site or the command to titles that occur more than once, where that makes them distinct.
    pub(super) fn distinguish_titles(&mut self) {
        let not_worth = self.not_worth.iter_mut().map(|(_, advice)| advice);
        let mut by_title: HashMap<String, Vec<&mut Advice>> = HashMap::new();
        for advice in self.worth.iter_mut().chain(not_worth) {
            by_title.entry(advice.finding.title.clone()).or_default().push(advice);
        }
        for mut alike in by_title.into_values().filter(|alike| alike.len() > 1) {
            let additions = [most_frequent_line, command]
                .into_iter()
                .find_map(|of| differing(&alike, of));
            for (advice, addition) in alike.iter_mut().zip(additions.unwrap_or_default()) {
                advice.finding.title.push_str(&addition);
            }
        }
    }
}

/// Returns one addition per advice, or `None` when one is missing or two are equal.
fn differing(alike: &[&mut Advice], of: fn(&Advice) -> Option<String>) -> Option<Vec<String>> {
    let additions: Vec<String> = alike.iter().map(|advice| of(advice)).collect::<Option<_>>()?;
    let distinct: HashSet<&String> = additions.iter().collect();
    (distinct.len() == alike.len()).then_some(additions)
}

fn most_frequent_line(advice: &Advice) -> Option<String> {
    let (call_site, _) = advice.callers.largest.first()?;
    Some(format!(", at {}", name(&call_site.short_label())))
}

fn command(advice: &Advice) -> Option<String> {
    let words = &advice.finding.example;
    let command: String = name(&words.join(&b' ')).chars().take(MAX_CHARACTERS).collect();
    (!words.is_empty()).then(|| format!(": {command}"))
}
