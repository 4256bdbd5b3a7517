//! Candidates for findings: the launches that a rule applies to, grouped by a program's name.
//! Candidates whose possible saving is too small are dropped before they are replayed.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::explain::advice::context::RuleContext;
use crate::model::launch::Launch;
use spawnscope_data::event::Nanos;

/// Maximum number of findings per rule. Each finding is replayed, which takes a while for a large
/// recording.
pub(super) const MAX_FINDINGS: usize = 3;

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
