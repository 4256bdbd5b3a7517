//! The script lines behind an exceeded budget, and the advice about them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::advice::{Advice, Advices};
use crate::diff::{Count, Key, Place, Run};
use crate::groups::THE_RECORDER;
use crate::summary::Summary;

/// Maximum number of lines that are named for one budget.
const MAX_NAMED: usize = 5;

/// A line that launches, with what counts against the budget.
#[derive(Clone, Debug)]
pub struct Culprit {
    /// The program that it launches most.
    pub command: Vec<u8>,
    /// Number of other programs that it launches.
    pub others: u64,
    /// The line. `None` if it is unknown.
    pub place: Option<Place>,
    /// What counts: launches, failed execs, or nanoseconds on the critical path. The median over the runs.
    pub count: u64,
    /// The advice about its launches: the title, and the lines of the fix.
    pub advice: Option<(String, Vec<String>)>,
}

/// The counts of one line.
#[derive(Default)]
struct Line<'r> {
    /// By run.
    counts: Vec<u64>,
    /// By program, over all runs.
    programs: BTreeMap<&'r [u8], u64>,
}

impl Line<'_> {
    fn culprit(self, place: Option<&Place>) -> Culprit {
        let most = self.programs.iter().max_by_key(|(_, count)| **count);
        Culprit {
            command: most.map(|(program, _)| program.to_vec()).unwrap_or_default(),
            others: (self.programs.len() as u64).saturating_sub(1),
            place: place.cloned(),
            count: Count::of(self.counts).median,
            advice: None,
        }
    }
}

/// The runs and their advice, in which culprits are found.
pub(super) struct Suspects<'r> {
    pub(super) runs: &'r [Run],
    pub(super) advices: &'r Advices,
}

impl Suspects<'_> {
    /// Counts by line. Launches without a known line are counted by program.
    pub(super) fn by_line(&self, is_meant: impl Fn(&Key) -> bool, of: impl Fn(&Summary) -> u64) -> Vec<Culprit> {
        let mut lines: BTreeMap<_, Line<'_>> = BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            // The command itself cannot be removed.
            let is_suspect = |key: &Key| is_meant(key) && key.parent != THE_RECORDER;
            for (key, sums) in run.launches.iter().filter(|(key, _)| is_suspect(key)) {
                let program = key.command.as_slice();
                let unknown = key.place.is_none().then_some(program);
                let line = lines.entry((&key.place, unknown)).or_default();
                line.counts.resize(self.runs.len(), 0);
                line.counts[number] += of(sums);
                if of(sums) > 0 {
                    *line.programs.entry(program).or_default() += of(sums);
                }
            }
        }
        let lines = lines.into_iter();
        let mut culprits: Vec<Culprit> = lines.map(|((place, _), line)| line.culprit(place.as_ref())).collect();
        culprits.sort_by_key(|culprit| Reverse(culprit.count));
        culprits
    }

    /// Adds the advice about the launches of each line.
    pub(super) fn advised(&self, mut culprits: Vec<Culprit>) -> Vec<Culprit> {
        for culprit in &mut culprits {
            let Some(place) = &culprit.place else { continue };
            let is_about = |advice: &&Advice| {
                let mut call_sites = advice.callers.most.iter().map(|(call_site, _)| Place::of(call_site));
                call_sites.any(|call_site| call_site == *place)
            };
            let advice = self.advices.worth.iter().find(is_about);
            culprit.advice = advice.map(|advice| (advice.finding.title.clone(), advice.finding.fix.clone()));
        }
        culprits
    }
}

/// Keeps the lines that count most.
pub(super) fn worst(mut culprits: Vec<Culprit>) -> Vec<Culprit> {
    culprits.retain(|culprit| culprit.count > 0);
    culprits.truncate(MAX_NAMED);
    culprits
}
