//! Groups the launches that a rule selects, one finding per group. Groups whose possible saving is too small are dropped before they are
//! replayed.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::advice::{RuleContext, least};
use crate::launch::Launch;
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::median;

/// Maximum number of findings per rule. Each is replayed, which takes a while on a large recording.
pub(super) const MOST_FINDINGS: usize = 3;

/// The launches of one finding.
pub(super) struct Group<'a> {
    /// The program name that the launches share.
    pub(super) name: &'a [u8],
    /// Launch indices, ascending.
    pub(super) launches: Vec<u32>,
    /// Upper bound for the saving.
    pub(super) at_stake: Nanos,
}

impl<'a> RuleContext<'_, 'a> {
    /// Groups launches by a program's name, the largest possible saving first. `of` returns the name and the possible saving of each launch
    /// that the rule applies to.
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

    /// Whether a saving of `most` would be large enough to report.
    pub(super) fn is_worth(&self, most: Nanos) -> bool {
        most > least(self.wall())
    }

    /// Returns the median over the launches where the value is known.
    pub(super) fn middle(&self, launches: &[u32], of: impl Fn(&Launch<'a>) -> Option<f64>) -> Option<f64> {
        median(launches.iter().filter_map(|index| of(self.launch(*index))))
    }
}
