//! The input of all rules: the recording with its launches and critical path, and queries that
//! several rules share. Each finding is replayed, which takes a while for a large recording, so
//! that rules look only at the groups of launches that took longest.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::explain::advice::programs::is_idempotent;
use crate::explain::advice::small_work::SmallWork;
use crate::explain::drift::Drift;
use crate::explain::tool_calls::ToolCalls;
use crate::model::grouped::grouped;
use crate::model::launch::{Exec, Launch};
use crate::model::phases::Phase;
use crate::model::timeline::Timelines;
use crate::model::tree::{Forest, Step};
use crate::path::critical_path::CriticalPath;
use crate::patterns::pipeline::is_captured;
use crate::patterns::queries::{Answer, answer_of, is_git, is_git_reading, reads_repository};
use crate::predict::dependence::DEPENDENT_SHARE;
use crate::predict::whatif::WhatIf;
use crate::predict::whatif::changes::work;
use crate::sites::callers::Callers;
use spawnscope_data::event::Nanos;
use spawnscope_data::rows::Recording;
use spawnscope_data::statistics::median;

/// Minimum number of launches in a group. Fewer launches are not a pattern in a script, and are too
/// few to predict the duration of another launch.
pub(super) const MIN_REPETITIONS: usize = 5;
/// Advice is reported only if its saving exceeds this share of the wall.
const MIN_SAVING_SHARE: f64 = 0.01;
/// Advice is reported only if its saving also exceeds this duration.
const MIN_SAVING: Nanos = Nanos(5_000_000);
/// What launches that are a pattern must save instead: a short command may run often.
const MIN_SAVING_OF_PATTERN: Nanos = Nanos(2_000_000);

/// Maximum number of candidates of a rule.
const MAX_CANDIDATES: usize = 3;

/// The launches of one possible finding.
pub(super) struct Candidate<'a> {
    /// The program name that the launches share.
    pub(super) name: &'a [u8],
    /// Launch indices, ascending.
    pub(super) launches: Vec<u32>,
    /// Upper bound for the saving.
    pub(super) max_saving: Nanos,
}

/// The data that rules read.
#[derive(Clone, Copy)]
pub struct RuleContext<'g, 'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// The chain of activity that determined the wall.
    pub path: &'g CriticalPath,
    /// Parents whose launches became slower over time, the worst first.
    pub drifts: &'g [Drift],
    /// The launches, the threads, and the replay of the recording.
    pub whatif: WhatIf<'g, 'a>,
    /// The call sites of launches.
    pub callers: &'g Callers,
    /// The call sites of launches, with helper functions seen through.
    pub sites: &'g Callers,
    /// Which launches do less than they cost.
    pub(crate) small_work: &'g SmallWork,
    /// The `Substitutes` of the rule `builtin`, which is above this module.
    pub(crate) substitutes: &'g (dyn Any + Send + Sync),
    /// Whether each launch is a command that a program is given, as a coding agent is.
    pub(crate) given: &'g [bool],
    /// Commands that are started through a shell that first does other work.
    pub(crate) tool_calls: &'g [ToolCalls],
}

impl<'g, 'a> RuleContext<'g, 'a> {
    pub(super) fn forest(&self) -> &'g Forest<'a> {
        self.whatif.forest
    }

    pub(super) fn timelines(&self) -> &'g Timelines {
        self.whatif.timelines
    }

    /// Iterates over launches and all their descendants.
    pub(super) fn walk(&self, launches: &[u32]) -> impl Iterator<Item = Step> + use<'g, 'a> {
        let tops: Vec<usize> = launches.iter().map(|launch| *launch as usize).collect();
        self.whatif.forest.walk(&tops)
    }

    pub(super) fn launch(&self, index: u32) -> &'g Launch<'a> {
        &self.whatif.forest.launches[index as usize]
    }

    /// Iterates over the launches with a known parent, and therefore not over the recorded command
    /// itself.
    pub(super) fn launched(&self) -> impl Iterator<Item = (u32, &'g Launch<'a>)> + use<'g, 'a> {
        let launches = (0..).zip(&self.whatif.forest.launches);
        launches.filter(|(_, launch)| launch.is_launch() && launch.parent.get().is_some())
    }

    /// Groups the launches with a known parent. `key` returns `None` for launches that the rule
    /// does not apply to.
    pub(super) fn grouped_by<K: Ord>(&self, key: impl Fn(u32, &'g Launch<'a>) -> Option<K>) -> BTreeMap<K, Vec<u32>> {
        grouped(self.launched().filter_map(|(index, launch)| Some((key(index, launch)?, index))))
    }

    /// Groups launches by program. Those that execute another program first do not count.
    pub(super) fn by_program(&self, launches: &[u32]) -> BTreeMap<&'a [u8], Vec<u32>> {
        let plain = launches.iter().filter(|index| self.launch(**index).execs.len() == 1);
        grouped(plain.map(|index| (self.launch(*index).command.name, *index)))
    }

    /// Returns the groups with at least `MIN_REPETITIONS` launches that took the longest, at most
    /// `max` of them.
    pub(super) fn longest_frequent<K>(
        &self,
        groups: impl IntoIterator<Item = (K, Vec<u32>)>,
        max: usize,
    ) -> impl Iterator<Item = (K, Vec<u32>)> {
        self.longest(groups.into_iter().filter(|(_, launches)| launches.len() >= MIN_REPETITIONS), max)
    }

    /// Returns the groups of any size that took the longest, at most `max` of them.
    pub(super) fn longest<K>(
        &self,
        groups: impl IntoIterator<Item = (K, Vec<u32>)>,
        max: usize,
    ) -> impl Iterator<Item = (K, Vec<u32>)> {
        let mut groups: Vec<(K, Vec<u32>)> = groups.into_iter().collect();
        groups.sort_by_cached_key(|(_, launches)| Reverse(self.spent_on(launches)));
        groups.into_iter().take(max)
    }

    /// Returns the candidates of a rule, one per program name, the largest possible saving first.
    /// `name_and_max_saving` returns `None` for launches that the rule does not apply to.
    pub(super) fn candidates(
        &self,
        name_and_max_saving: impl Fn(u32, &Launch<'a>) -> Option<(&'a [u8], Nanos)>,
    ) -> Vec<Candidate<'a>> {
        let by_name = grouped(self.launched().filter_map(|(index, launch)| {
            let (name, max_saving) = name_and_max_saving(index, launch)?;
            Some((name, (index, max_saving.0)))
        }));
        let candidates = by_name.into_iter().map(|(name, all)| {
            let (launches, savings): (Vec<u32>, Vec<u64>) = all.into_iter().unzip();
            Candidate { name, launches, max_saving: Nanos(savings.iter().sum()) }
        });
        let mut candidates: Vec<_> = candidates.filter(|candidate| candidate.max_saving > self.min_saving()).collect();
        candidates.sort_by_key(|candidate| (Reverse(candidate.max_saving), candidate.name));
        candidates.truncate(MAX_CANDIDATES);
        candidates
    }

    /// Returns the work time of a launch: its `run` phase without waits for a CPU. Sleep counts as
    /// work, since it may be the purpose of the program.
    pub(super) fn work_time(&self, index: usize) -> Option<Nanos> {
        work::work_time(self.forest(), self.timelines(), index)
    }

    /// Returns the measured wall.
    pub(super) fn wall(&self) -> Nanos {
        self.whatif.replay.measured
    }

    pub(super) fn share_of_wall(&self, share: f64) -> Nanos {
        Nanos((self.wall().0 as f64 * share) as u64)
    }

    /// Returns the saving that advice must exceed.
    pub(super) fn min_saving(&self) -> Nanos {
        self.min_share().max(MIN_SAVING)
    }

    fn min_share(&self) -> Nanos {
        Nanos((self.whatif.unrecorded().0 as f64 * MIN_SAVING_SHARE) as u64)
    }

    /// Whether a saving exceeds the minimum.
    fn exceeds_minimum(&self, saving: Nanos) -> bool {
        saving > self.min_saving()
    }

    /// Whether a fix may save more than the minimum.
    pub(super) fn may_save(&self, saving: [Nanos; 3]) -> bool {
        self.exceeds_minimum(saving[0].max(saving[2]))
    }

    /// Whether much of the wall without the overhead of recording depends on launches.
    pub(super) fn is_much(&self, dependent: Nanos) -> bool {
        dependent.0 as f64 >= DEPENDENT_SHARE * self.whatif.unrecorded().0 as f64
    }

    /// Whether a fix of some launches is worth making: it certainly saves something, or probably
    /// and they are a pattern, or it may, and much depends on them.
    pub(super) fn is_worth(&self, launches: &[u32], saving: [Nanos; 3], dependent: Nanos) -> bool {
        let [expected, least, _] = saving;
        // A tracer's unknown cost widens the interval, but decides on nothing.
        let certain = Nanos((least.0 as f64 * self.recording.max_slowdown()) as u64);
        let probable = Nanos(expected.0.midpoint(least.0));
        self.exceeds_minimum(certain)
            || launches.len() >= MIN_REPETITIONS && probable > self.min_share().max(MIN_SAVING_OF_PATTERN)
            || self.may_save(saving) && self.is_much(dependent)
    }

    /// Returns the summed wall time of launches, which is an upper bound for the saving.
    pub(super) fn spent_on(&self, launches: &[u32]) -> Nanos {
        Nanos(launches.iter().map(|index| self.launch(*index).total(self.forest().end).unwrap_or_default().0).sum())
    }

    /// Returns the summed duration of one phase. Unknown durations count as zero.
    pub(super) fn total_phase(&self, launches: &[u32], phase: Phase) -> Nanos {
        Nanos(launches.iter().map(|index| self.launch(*index).phases.get(phase).unwrap_or_default().0).sum())
    }

    /// Returns the median duration of one phase, or zero if it is unknown for all launches.
    pub(super) fn median_phase(&self, launches: &[u32], phase: Phase) -> Nanos {
        let median = self.median_of(launches, |launch| Some(launch.phases.get(phase)?.0 as f64));
        Nanos(median.unwrap_or_default() as u64)
    }

    /// Returns the median of the known values of `value`.
    pub(super) fn median_of(&self, launches: &[u32], value: impl Fn(&Launch<'a>) -> Option<f64>) -> Option<f64> {
        median(launches.iter().filter_map(|index| value(self.launch(*index))))
    }

    /// Whether the parent reads the output of a launch while the launch runs, as a shell does for
    /// `$( )`.
    pub(super) fn is_captured(&self, index: u32) -> bool {
        is_captured(self.forest(), self.timelines(), index)
    }

    /// Whether each git of the recording only reads.
    pub(super) fn is_repository_unchanged(&self) -> bool {
        let mut execs = self.launched().flat_map(|(_, launch)| &launch.execs).filter(|exec| is_git(exec));
        execs.all(|exec| is_git_reading(exec) || answer_of(exec).is_some())
    }

    /// Whether a launch certainly gives the same answer each time, so that an edit may keep it. An
    /// unknown program may write, or answer differently each time.
    pub(super) fn has_certain_answer(&self, index: u32) -> bool {
        let is_same = |exec: &Exec<'_>| {
            let is_question = is_idempotent(exec) || is_git_reading(exec) || answer_of(exec) == Some(Answer::Same);
            is_question && (!reads_repository(exec) || self.is_repository_unchanged())
        };
        self.launch(index).execs.last().is_some_and(is_same)
    }

    /// Returns the arguments of a typical one of these launches.
    pub(super) fn example(&self, launches: &[u32]) -> Vec<Vec<u8>> {
        let launch = self.example_launch(launches);
        let exec = launch.and_then(|index| self.launch(index).execs.last());
        exec.map(|exec| exec.arguments().map(<[u8]>::to_vec).collect()).unwrap_or_default()
    }

    /// Returns the launch that [`RuleContext::example`] takes the arguments from: the first with an
    /// exec at the line that requests most of them.
    fn example_launch(&self, launches: &[u32]) -> Option<u32> {
        let executed = launches.iter().copied().filter(|index| !self.launch(*index).execs.is_empty());
        let lines = grouped(executed.map(|index| (self.sites.number_of(index as usize), index)));
        lines.into_values().map(|own| (own.len(), Reverse(own[0]))).max().map(|(_, Reverse(first))| first)
    }
}

/// Returns the largest number of spans that overlap. At the same instant, one ends before another
/// one starts.
pub(super) fn most_at_once(spans: impl Iterator<Item = (Nanos, Nanos)>) -> usize {
    let mut changes: Vec<(Nanos, i64)> = spans.flat_map(|(from, to)| [(from, 1), (to, -1)]).collect();
    changes.sort_unstable();
    let mut current = 0;
    let counts = changes.into_iter().map(|(_, change)| {
        current += change;
        current
    });
    counts.max().unwrap_or_default().max(0) as usize
}
