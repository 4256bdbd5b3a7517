//! The launches that a rule considers: frequent groups, groups that took long, candidates whose
//! possible saving is large enough, and launches whose work is small compared with their launch
//! cost.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::explain::advice::context::{MIN_REPETITIONS, RuleContext};
use crate::model::launch::Launch;
use crate::predict::whatif::changes::work;
use spawnscope_data::event::Nanos;

/// Returns the groups with at least `MIN_REPETITIONS` launches that took the longest, at most `max`
/// of them. The number is limited because each finding is replayed.
pub(super) fn longest_frequent_groups<K>(
    context: &RuleContext<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    max: usize,
) -> Vec<(K, Vec<u32>)> {
    let frequent_groups = groups.into_iter().filter(|(_, launches)| launches.len() >= MIN_REPETITIONS);
    longest_groups(context, frequent_groups, max)
}

/// Returns the groups of any size that took the longest, at most `max` of them.
pub(super) fn longest_groups<K>(
    context: &RuleContext<'_, '_>,
    groups: impl IntoIterator<Item = (K, Vec<u32>)>,
    max: usize,
) -> Vec<(K, Vec<u32>)> {
    let mut groups: Vec<_> = groups.into_iter().map(|group| (Reverse(context.spent_on(&group.1)), group)).collect();
    groups.sort_by_key(|(spent, _)| *spent);
    groups.into_iter().take(max).map(|(_, group)| group).collect()
}

/// Returns the work time of a launch: its `run` phase without waits for a CPU. Sleep counts as
/// work, since it may be the purpose of the program.
pub(super) fn work_time(context: &RuleContext<'_, '_>, index: usize) -> Option<Nanos> {
    work::work_time(context.forest(), context.timelines(), index)
}

/// Maximum number of findings per rule. Each finding is replayed, which takes a while for a large
/// recording.
const MAX_FINDINGS: usize = 3;

/// The launches of one possible finding.
pub(super) struct Candidate<'a> {
    /// The program name that the launches share.
    pub(super) name: &'a [u8],
    /// Launch indices, ascending.
    pub(super) launches: Vec<u32>,
    /// Upper bound for the saving.
    pub(super) max_saving: Nanos,
}

impl<'a> RuleContext<'_, 'a> {
    /// Returns one candidate per program name, the largest possible saving first.
    /// `name_and_max_saving` returns `None` for launches that the rule does not apply to.
    pub(super) fn candidates(
        &self,
        name_and_max_saving: impl Fn(u32, &Launch<'a>) -> Option<(&'a [u8], Nanos)>,
    ) -> Vec<Candidate<'a>> {
        let mut by_name: HashMap<&'a [u8], Candidate<'a>> = HashMap::new();
        for (index, launch) in self.launched() {
            if let Some((name, max_saving)) = name_and_max_saving(index, launch) {
                let new = Candidate { name, launches: Vec::new(), max_saving: Nanos(0) };
                let candidate = by_name.entry(name).or_insert(new);
                candidate.launches.push(index);
                candidate.max_saving.0 += max_saving.0;
            }
        }
        let mut candidates: Vec<Candidate<'a>> = by_name.into_values().collect();
        candidates.retain(|candidate| candidate.max_saving > self.min_saving());
        candidates.sort_by_key(|candidate| (Reverse(candidate.max_saving), candidate.name));
        candidates.truncate(MAX_FINDINGS);
        candidates
    }
}
