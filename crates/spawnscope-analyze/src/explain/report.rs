//! The contents of `spawnscope report` as plain data: counts, sums and groups. `present` adds
//! words, colours and JSON keys.

use std::collections::HashMap;

use crate::explain::advice::AdviceList;
use crate::explain::causes::Causes;
use crate::explain::drift::{Drift, drifts};
use crate::explain::tool_calls::{ToolCalls, tool_calls};
use crate::model::launch::Outcome;
use crate::model::tree::Forest;
use crate::model::window::{Episode, WindowTitle, episodes};
use crate::path::critical_path::CriticalPath;
pub use crate::path::groups::GroupBy;
use crate::path::groups::{Group, Repeat, groups, repeats};
pub use crate::path::spent::Spent;
use crate::path::spent::where_the_wall_went;
use crate::path::summary::{Summary, tax_overlaps};
use crate::predict::dependence::{Dependence, Work, rank_by_dependence};
use crate::predict::replay::CpuWaits;
use crate::waits::attribution::AttributedWaits;
use crate::waits::failed_execs::{Failure, PathSearches, failures};
use spawnscope_data::event::{Loss, Nanos, Pid};
use spawnscope_data::parallel;
use spawnscope_data::rows::{Info, Origin, Recording, Scope};

#[derive(Clone, Debug)]
pub struct Report {
    /// What was recorded, and how the recording ended. `ended` is `None` when the recorder was
    /// killed, and `lost` has only kinds of which events were lost.
    pub info: Info,
    /// The followed process (`-p`) and its name.
    pub followed: Option<(Pid, Vec<u8>)>,
    /// The window that the report is about. `None` for a whole recording.
    pub window: Option<WindowTitle>,
    /// Spans in which a process launched others and then lived on, the busiest first. Empty for a
    /// command and for a window.
    pub episodes: Vec<Episode>,
    /// The report on the busiest episode, for a recording of the whole machine.
    pub busiest: Option<Box<Report>>,
    /// Whether the critical path is based on waits whose causes were not recorded but
    /// reconstructed.
    pub is_reconstructed: bool,
    /// The time from the start to the end of the command or of the recording; to the last event if
    /// the recorder was killed.
    pub wall: Nanos,
    /// How the command ended. `None` without a command.
    pub exit: Option<Outcome>,
    /// Sums over all launches.
    pub all: Summary,
    /// Whether the launch tax of several launches overlaps in time, so that the sum is not a share
    /// of the wall.
    pub overlaps: bool,
    /// How the wall was spent along the critical path, the longest first. Empty when the path is
    /// unknown.
    pub where_the_wall_went: Vec<(Spent, Nanos)>,
    /// The part of the launch tax on the critical path that new processes waited for a CPU. `None`
    /// when the path is unknown.
    pub critical_queue: Option<Nanos>,
    /// The waits of all threads for a CPU. `None` without a replay.
    pub cpu_waits: Option<CpuWaits>,
    /// The replay error, as a share of the wall. `None` without a replay.
    pub replay_error: Option<f64>,
    /// Waits for other processes, the longest first. Empty when the slices were not read.
    pub waits: Vec<AttributedWaits>,
    pub advices: AdviceList,
    /// How much of the wall depends on each of the commands that run longest, the largest part
    /// first. Empty without a reliable replay.
    pub dependence: Vec<Dependence>,
    /// The command with the most work on the critical path.
    pub work: Option<Work>,
    /// What `groups` are grouped by.
    pub group_by: GroupBy,
    /// The rows of the table, the most expensive first. Programs are ordered by how much of the
    /// wall depends on them, then by launch tax; call sites by time on the critical path; all other
    /// groups by launch tax.
    pub groups: Vec<Group>,
    /// Command lines that were launched repeatedly, the longest total time first.
    pub repeats: Vec<Repeat>,
    /// Commands that were still running at the end, the most frequent first.
    pub still_running: Vec<(Vec<u8>, u64)>,
    pub path_searches: PathSearches,
    /// Other failed execs, the most frequent errno first.
    pub failures: Vec<Failure>,
    /// Parents whose launches became slower over time, the worst first.
    pub drifts: Vec<Drift>,
    /// Commands that are started through a shell that first does other work.
    pub tool_calls: Vec<ToolCalls>,
}

impl Report {
    /// Whether the recorder was killed before it finished the recording.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.info.ended.is_none() && !self.info.is_live
    }

    /// Returns the number of lost events of all kinds.
    #[must_use]
    pub fn lost_events(&self) -> u64 {
        Loss::total(&self.info.lost)
    }
}

/// Reports on a recording without its slices. The critical path is then unknown.
#[must_use]
pub fn report(recording: &Recording, group_by: GroupBy) -> Report {
    report_on(recording, &Forest::build(recording), None, group_by)
}

fn still_running(forest: &Forest<'_>) -> Vec<(Vec<u8>, u64)> {
    let mut counts: HashMap<Vec<u8>, u64> = HashMap::new();
    for launch in forest.launches.iter().filter(|launch| launch.is_launch() && launch.is_unfinished()) {
        *counts.entry(launch.command.label()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(a, count_a), (b, count_b)| count_b.cmp(count_a).then_with(|| a.cmp(b)));
    counts
}

fn sum_of_all(info: &Info, forest: &Forest<'_>, path: Option<&CriticalPath>) -> Summary {
    let mut sum = Summary::default();
    for (index, launch) in forest.launches.iter().enumerate() {
        if launch.is_launch() {
            sum.add(forest, index, path);
        }
    }
    let is_whole = info.wall.is_some() && info.lost.iter().all(|loss| loss.events == 0);
    debug_assert!(!is_whole || !info.contradictions.0.is_empty() || is_consistent(&sum), "{sum:?}");
    sum
}

/// Returns what a report shows of a recording: nothing of kinds of events that were not lost.
fn info_shown(info: &Info) -> Info {
    let lost = info.lost.iter().filter(|loss| loss.events > 0).cloned().collect();
    Info { ended: info.wall.and(info.ended.clone()), lost, ..info.clone() }
}

/// Reports on a recording with joined launches, and with causes if they were computed.
#[must_use]
pub fn report_on(recording: &Recording, forest: &Forest<'_>, causes: Option<&Causes>, group_by: GroupBy) -> Report {
    let path = causes.map(|causes| &causes.path);
    let ((all, overlaps, repeats, (path_searches, failures)), mut groups) = parallel::join(
        || (sum_of_all(&recording.info, forest, path), tax_overlaps(forest), repeats(forest), failures(forest)),
        || groups(forest, path, group_by),
    );
    let dependence = causes.map(|causes| causes.dependence.clone()).unwrap_or_default();
    if group_by == GroupBy::Command {
        rank_by_dependence(&mut groups, &dependence);
    }
    let info = &recording.info;
    Report {
        info: info_shown(info),
        followed: (info.scope == Scope::Process).then(|| followed(forest)).flatten(),
        window: None,
        episodes: if info.scope == Scope::Command { Vec::new() } else { episodes(forest) },
        busiest: None,
        is_reconstructed: causes.is_some() && !info.sees_scheduler(),
        wall: info.wall.unwrap_or(info.last_event),
        exit: forest.launches.iter().find(|launch| launch.origin == Origin::Command).map(|launch| launch.outcome),
        all,
        overlaps,
        replay_error: causes.map(|causes| causes.replay_error),
        advices: causes.map(|causes| causes.advices.clone()).unwrap_or_default(),
        where_the_wall_went: path.map(|path| where_the_wall_went(path, recording)).unwrap_or_default(),
        critical_queue: path.map(CriticalPath::queue),
        cpu_waits: causes.map(|causes| causes.cpu_waits),
        waits: Vec::new(),
        dependence,
        work: causes.and_then(|causes| causes.work.clone()),
        group_by,
        groups,
        repeats,
        still_running: still_running(forest),
        path_searches,
        failures,
        drifts: causes.map_or_else(|| drifts(forest), |causes| causes.drifts.clone()),
        tool_calls: causes.map_or_else(|| tool_calls(forest), |causes| causes.tool_calls.clone()),
    }
}

/// By how many nanoseconds the critical tax of a launch may exceed its tax, because the critical
/// path rounds at each change of phase, and charges a parent's wake-up to its child.
const TOLERANCE_NS: u64 = 20_000;

/// Whether the launch tax on the critical path is at most the total launch tax.
#[must_use]
pub fn is_consistent(all: &Summary) -> bool {
    let is_known = all.phases.iter().all(|(_, sum)| sum.unknown == 0);
    let max_critical_tax = all.tax.map(|tax| Nanos(tax.0 + TOLERANCE_NS * all.count));
    !is_known || all.critical_tax.is_none() || all.critical_tax <= max_critical_tax
}

/// Whether the sum of all waits is possible: none of the `threads` threads can have waited longer
/// than the wall.
#[must_use]
pub fn waits_fit(waits: &[AttributedWaits], wall: Nanos, threads: usize) -> bool {
    let waited: u128 = waits.iter().map(|each| u128::from(each.parts.total().0)).sum();
    waited <= u128::from(wall.0) * threads as u128
}

/// Returns the process that `-p` followed: the first one that existed before the recording.
fn followed(forest: &Forest<'_>) -> Option<(Pid, Vec<u8>)> {
    let launch = forest.launches.iter().find(|launch| launch.origin == Origin::Existed)?;
    Some((launch.pid.get()?, launch.command.label()))
}
