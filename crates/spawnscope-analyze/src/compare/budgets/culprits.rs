//! The script lines that exceed a budget, and the advice about them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::compare::diff::{Count, Key, Run, ScriptLine};
use crate::explain::advice::AdviceList;
use crate::path::groups::THE_RECORDER;
use crate::path::summary::Summary;
use crate::predict::whatif::changes::Change;

pub(super) const MAX_NAMED: usize = 5;

/// A script line that launches, and how much it contributes to what the budget limits.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// The program that the line launches most often.
    pub command: Vec<u8>,
    /// Number of other programs that the line launches.
    pub others: u64,
    pub script_line: Option<ScriptLine>,
    /// The median over the runs of what the budget limits: launches, failed execs, or nanoseconds
    /// of launch tax on the critical path.
    pub count: u64,
    /// The advice about the line's launches: the title, and the lines of the fix.
    pub advice: Option<(String, Vec<String>)>,
}

#[derive(Default)]
struct Line<'r> {
    counts: Vec<u64>,
    /// The count of each program, summed over all runs.
    programs: BTreeMap<&'r [u8], u64>,
}

impl Line<'_> {
    fn culprit(self, script_line: Option<&ScriptLine>) -> Culprit {
        let largest = self.programs.iter().max_by_key(|(_, count)| **count);
        Culprit {
            command: largest.map(|(program, _)| program.to_vec()).unwrap_or_default(),
            others: (self.programs.len() as u64).saturating_sub(1),
            script_line: script_line.cloned(),
            count: Count::of(self.counts).median,
            advice: None,
        }
    }
}

/// The runs that are searched for culprits, and the advice about their launches.
pub(super) struct CulpritSearch<'r> {
    pub(super) runs: &'r [Run],
    pub(super) advices: &'r AdviceList,
}

impl CulpritSearch<'_> {
    /// Sums `count` over the launches of each line, the largest first. Launches without a known
    /// line are grouped by program.
    pub(super) fn by_line(&self, is_limited: impl Fn(&Key) -> bool, count: impl Fn(&Summary) -> u64) -> Vec<Culprit> {
        let mut lines: BTreeMap<_, Line<'_>> = BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            // The recorded command itself is no culprit.
            let suspects = run.launches.iter().filter(|(key, _)| is_limited(key) && key.parent != THE_RECORDER);
            for (key, sums) in suspects {
                let program = key.command.as_slice();
                let unknown = key.script_line.is_none().then_some(program);
                let line = lines.entry((&key.script_line, unknown)).or_default();
                line.counts.resize(self.runs.len(), 0);
                line.counts[number] += count(sums);
                if count(sums) > 0 {
                    *line.programs.entry(program).or_default() += count(sums);
                }
            }
        }
        let lines = lines.into_iter();
        let mut culprits: Vec<Culprit> =
            lines.map(|((script_line, _), line)| line.culprit(script_line.as_ref())).collect();
        culprits.sort_by_key(|culprit| Reverse(culprit.count));
        culprits
    }

    /// Adds to each line the advice about its launches, if the fix lowers what the budget limits.
    pub(super) fn with_advice(&self, mut culprits: Vec<Culprit>, lowers: fn(Change) -> bool) -> Vec<Culprit> {
        let directory = self.runs.first().and_then(|run| run.directory.as_deref());
        for culprit in &mut culprits {
            let Some(script_line) = &culprit.script_line else { continue };
            let advice = self.advices.worth.iter().find(|advice| {
                let mut call_sites = advice.callers.largest.iter().map(|(call_site, _)| call_site);
                advice.finding.changes.iter().any(|fix| lowers(fix.change))
                    && call_sites.any(|call_site| ScriptLine::of(call_site, directory) == *script_line)
            });
            culprit.advice = advice.map(|advice| (advice.finding.title.clone(), advice.finding.fix.clone()));
        }
        culprits
    }
}

pub(super) fn removes_launches(change: Change) -> bool {
    use Change::{Batch, Builtin, Coprocess, InProcess, NoShell, Remove, WakeInTime};
    matches!(change, Remove | Builtin | Batch(_) | NoShell | InProcess | Coprocess | WakeInTime)
}

pub(super) fn removes_failed_execs(change: Change) -> bool {
    change == Change::Absolute || removes_launches(change)
}

/// Keeps the lines with the largest counts. `culprits` is sorted.
pub(super) fn with_largest_counts(mut culprits: Vec<Culprit>) -> Vec<Culprit> {
    culprits.retain(|culprit| culprit.count > 0);
    culprits.truncate(MAX_NAMED);
    culprits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::advice::{Advice, Finding};
    use crate::predict::whatif::AppliedChange;
    use crate::sites::callers::{CallSite, CallerCounts};
    use spawnscope_data::event::{Language, Nanos};

    fn call_site() -> CallSite {
        CallSite { language: Language::Bash, file: Some(b"build.sh".to_vec()), line: Some(3), ..CallSite::default() }
    }

    fn advice(title: &str, change: Change) -> Advice {
        Advice {
            finding: Finding {
                rule: "rule",
                title: title.to_owned(),
                launches: vec![1],
                changes: vec![AppliedChange { change, launches: vec![1] }],
                ..Finding::default()
            },
            saving: [Nanos(1); 3],
            launched: vec![(b"git".to_vec(), 1)],
            callers: CallerCounts { largest: vec![(call_site(), 1)], ..CallerCounts::default() },
            edited_share: 1.0,
            ..Advice::default()
        }
    }

    fn advice_for_budget(worth: &[Advice], lowers: fn(Change) -> bool) -> Option<String> {
        let advices = AdviceList { worth: worth.to_vec(), ..AdviceList::default() };
        let search = CulpritSearch { runs: &[], advices: &advices };
        let culprit = Line::default().culprit(Some(&ScriptLine::of(&call_site(), None)));
        let advised = search.with_advice(vec![culprit], lowers).remove(0);
        advised.advice.map(|(title, _)| title)
    }

    #[test]
    fn advice_for_a_budget_of_counts_reduces_the_count() {
        let (vfork, builtin) = (advice("vfork", Change::Vfork), advice("builtin", Change::Builtin));
        let absolute = advice("absolute", Change::Absolute);
        let both = [vfork.clone(), builtin];
        assert_eq!(advice_for_budget(&both, |_| true).as_deref(), Some("vfork"));
        assert_eq!(advice_for_budget(&both, removes_launches).as_deref(), Some("builtin"));
        assert_eq!(advice_for_budget(&[vfork], removes_launches), None);
        let absolute = [absolute];
        assert_eq!(advice_for_budget(&absolute, removes_launches), None);
        assert_eq!(advice_for_budget(&absolute, removes_failed_execs).as_deref(), Some("absolute"));
    }
}
