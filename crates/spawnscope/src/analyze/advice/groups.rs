//! Launches sorted into the groups that a rule speaks of, one finding each; what cannot be worth a finding is left out before
//! it is played.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{RuleContext, least};
use crate::analyze::launch::Launch;
use crate::event::Nanos;
use crate::statistics::median;

/// Findings of one rule at most: each is played, which takes a while on a large recording.
pub(super) const MOST_FINDINGS: usize = 3;

/// Launches that one finding is about.
pub(super) struct Group<'a> {
    /// The program that they are sorted by.
    pub(super) name: &'a [u8],
    /// By index, in order.
    pub(super) launches: Vec<u32>,
    /// More than this cannot be saved.
    pub(super) at_stake: Nanos,
}

impl<'a> RuleContext<'_, 'a> {
    /// Sorts launches by a program's name, the groups with most at stake first. `of` gives the name and what is at stake for
    /// each launch that the rule holds for.
    pub(super) fn groups(&self, of: impl Fn(u32, &Launch<'a>) -> Option<(&'a [u8], Nanos)>) -> Vec<Group<'a>> {
        let mut by_name: HashMap<&'a [u8], (Vec<u32>, u64)> = HashMap::new();
        for (index, launch) in (0..).zip(&self.forest().launches) {
            if !launch.is_launch() || launch.parent.get().is_none() {
                continue;
            }
            if let Some((name, at_stake)) = of(index, launch) {
                let (launches, sum) = by_name.entry(name).or_default();
                launches.push(index);
                *sum += at_stake.0;
            }
        }
        let group = |(name, (launches, sum))| Group {
            name,
            launches,
            at_stake: Nanos(sum),
        };
        let mut groups: Vec<Group<'a>> = by_name.into_iter().map(group).collect();
        groups.retain(|group| self.is_worth(group.at_stake));
        groups.sort_by_key(|group| (Reverse(group.at_stake), group.name));
        groups.truncate(MOST_FINDINGS);
        groups
    }

    /// Whether so much would be worth telling if all of it were saved.
    pub(super) fn is_worth(&self, most: Nanos) -> bool {
        most > least(self.wall())
    }

    /// The middle value of what is known of launches.
    pub(super) fn middle(&self, launches: &[u32], of: impl Fn(&Launch<'a>) -> Option<f64>) -> Option<f64> {
        median(launches.iter().filter_map(|index| of(self.launch(*index))))
    }
}
