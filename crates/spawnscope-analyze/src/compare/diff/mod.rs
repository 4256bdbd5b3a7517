//! Compares recordings of two versions of a command: which launches were added, removed and
//! changed. Counts are exact. Times have confidence intervals if both sides have several runs.
//! `normalise` and `matching` decide which launches are the same, and `change` decides which
//! differences are noise.

mod change;
mod matching;
pub mod normalise;
mod run;

use std::cmp::Reverse;

pub use change::{Count, CountChange, TimeChange, Times};
use matching::{Pair, pairs};
pub use run::{Key, Run, ScriptLine};
use spawnscope_data::event::{Calibration, Constant, Nanos};
use spawnscope_data::statistics::Resamples;

use crate::model::phases::Phase;
use crate::path::summary::Summary;

/// A group's change in time is reported only if it is at least this share of the wall. With many
/// groups, some intervals exclude zero by chance.
const MIN_SHARE_OF_WALL: f64 = 0.01;
/// The machine constants that represent the cost of a launch.
const COST_CONSTANTS: [Constant; 3] = [Constant::ForkExit, Constant::VforkExit, Constant::PageCopy];
/// Machine constants are reported if they differ by more than this share.
const MIN_CONSTANT_CHANGE: f64 = 0.2;

/// The difference between two sides.
#[derive(Clone, Debug)]
pub struct Diff {
    /// Number of runs before and after.
    pub runs: [usize; 2],
    /// Arguments of the command before and after.
    pub commands: [Vec<Vec<u8>>; 2],
    /// Number of lost events before and after. If it is not zero, counts are lower limits.
    pub lost: [u64; 2],
    /// Conditions that differ between the runs.
    pub conditions: Vec<Condition>,
    /// The wall.
    pub wall: TimeChange,
    /// Number of launches.
    pub launches: CountChange,
    /// Number of forks without an exec.
    pub forks_without_exec: CountChange,
    /// Number of failed execs.
    pub failed_execs: CountChange,
    /// Times of all launches.
    pub times: Times,
    /// The part of the critical path that is launch tax.
    pub critical_tax: TimeChange,
    /// Groups of launches, the largest change first.
    pub rows: Vec<Row>,
}

/// A condition that differs between the sides, and affects times in addition to the compared
/// change.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// The number of CPUs.
    Cpus(u32, u32),
    /// The architecture.
    Architecture(String, String),
    /// A constant of the machine, in nanoseconds.
    Constant(Constant, f64, f64),
    /// Script lines are unknown on this side, and known on the other.
    NoLines(Side),
    /// A recording of this side is incomplete.
    Incomplete(Side),
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The older recordings.
    Before,
    /// The newer recordings.
    After,
}

/// What happened to a group of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// Only the newer recordings contain the group.
    Added,
    /// Only the older recordings contain the group.
    Removed,
    /// Both sides contain the group, and a count or a time differs.
    Changed,
    /// Both sides contain the group, and no difference exceeds the noise.
    Same,
}

/// A group of launches that do the same.
#[derive(Clone, Debug)]
pub struct Row {
    /// What happened to the group.
    pub kind: ChangeKind,
    /// The program.
    pub command: Vec<u8>,
    /// The normalised arguments. `None` if they differ within the group.
    pub arguments: Option<Vec<u8>>,
    /// The program of the parent.
    pub parent: Vec<u8>,
    /// The call site in the older recordings.
    pub line_before: Option<ScriptLine>,
    /// The call site in the newer recordings.
    pub line_after: Option<ScriptLine>,
    /// Number of launches.
    pub count: CountChange,
    /// Number of failed execs.
    pub failed_execs: CountChange,
    /// Times of the launches.
    pub times: Times,
}

impl Row {
    /// Returns the call site in the newer recordings, or in the older recordings if the newer have
    /// none.
    #[must_use]
    pub fn line(&self) -> Option<&ScriptLine> {
        self.line_after.as_ref().or(self.line_before.as_ref())
    }
}

/// Compares recordings of two versions.
#[must_use]
pub fn compare(before: &[Run], after: &[Run]) -> Diff {
    let resamples = Resamples::draw(before.len(), after.len());
    let sides = [before, after];
    let [walls_before, walls_after] = sides.map(walls);
    let wall = TimeChange::of(&resamples, &walls_before, &walls_after);
    let sums = sides.map(|runs| runs.iter().map(|run| Some(run.all.clone())).collect::<Vec<_>>());
    let mut rows: Vec<Row> = pairs(before, after).iter().map(|pair| row(pair, &resamples, wall.before)).collect();
    rows.sort_by_cached_key(rank);
    Diff {
        runs: sides.map(<[Run]>::len),
        commands: sides.map(|runs| runs.first().map(|run| run.command.clone()).unwrap_or_default()),
        lost: sides.map(|runs| runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.lost))),
        conditions: differing_conditions(before, after),
        wall,
        launches: counts(&sums, |sums| sums.count),
        forks_without_exec: counts(&sums, |sums| sums.forks_without_exec),
        failed_execs: counts(&sums, |sums| sums.failed_execs),
        critical_tax: time(&resamples, &sums, |sums| sums.critical_tax),
        times: times(&resamples, &sums),
        rows,
    }
}

fn walls(runs: &[Run]) -> Vec<Option<f64>> {
    runs.iter().map(|run| Some(run.wall?.0 as f64)).collect()
}

/// The sums of each run of both sides.
type Sums = [Vec<Option<Summary>>; 2];

fn counts(sums: &Sums, count: impl Fn(&Summary) -> u64) -> CountChange {
    let [before, after] = [0, 1].map(|side| {
        let counts = sums[side].iter().map(|sums| sums.as_ref().map_or(0, &count));
        Count::of(counts.collect())
    });
    CountChange { before, after }
}

/// Compares a time. It is zero in a run without such launches, and unknown in a run whose launches
/// have an unknown time.
fn time(resamples: &Resamples, sums: &Sums, time_of: impl Fn(&Summary) -> Option<Nanos>) -> TimeChange {
    let [before, after] = sums.each_ref().map(|side| {
        let times = side.iter().map(|sums| match sums {
            Some(sums) => time_of(sums).map(|time| time.0 as f64),
            None => Some(0.0),
        });
        times.collect::<Vec<Option<f64>>>()
    });
    TimeChange::of(resamples, &before, &after)
}

fn times(resamples: &Resamples, sums: &Sums) -> Times {
    Times {
        tax: time(resamples, sums, |sums| sums.tax),
        critical: time(resamples, sums, |sums| sums.critical),
        phases: Phase::ALL.map(|phase| (phase, time(resamples, sums, |sums| sums.phases.get(phase).time))).to_vec(),
    }
}

fn row(pair: &Pair<'_>, resamples: &Resamples, wall: Option<f64>) -> Row {
    let keys = pair.keys.concat();
    let first = keys.first();
    let arguments = first.map(|key| &key.arguments);
    let is_common = keys.iter().all(|key| Some(&key.arguments) == arguments);
    let [line_before, line_after] =
        pair.keys.each_ref().map(|keys| keys.first().and_then(|key| key.script_line.clone()));
    let (count, failed_execs) = (counts(&pair.sums, |sums| sums.count), counts(&pair.sums, |sums| sums.failed_execs));
    let times = times(resamples, &pair.sums);
    Row {
        kind: kind(&count, &failed_execs, &times, wall),
        command: first.map(|key| key.command.clone()).unwrap_or_default(),
        arguments: arguments.filter(|_| is_common).cloned(),
        parent: first.map(|key| key.parent.clone()).unwrap_or_default(),
        line_before,
        line_after,
        count,
        failed_execs,
        times,
    }
}

fn kind(count: &CountChange, failed_execs: &CountChange, times: &Times, wall: Option<f64>) -> ChangeKind {
    let critical = times.critical.value().unwrap_or_default().abs();
    let is_long = wall.is_some_and(|wall| critical >= MIN_SHARE_OF_WALL * wall);
    match (count.before.high, count.after.high) {
        (0, _) => ChangeKind::Added,
        (_, 0) => ChangeKind::Removed,
        _ if count.is_change() || failed_execs.is_change() => ChangeKind::Changed,
        _ if is_long && times.critical.is_change() == Some(true) => ChangeKind::Changed,
        _ => ChangeKind::Same,
    }
}

/// Returns the sort key: the largest change on the critical path first, then the largest change of
/// the count, then by name.
fn rank(row: &Row) -> (bool, Reverse<u64>, Reverse<u64>, Vec<u8>, Option<ScriptLine>) {
    let critical = row.times.critical.value().unwrap_or_default().abs();
    (
        row.kind == ChangeKind::Same,
        Reverse(critical as u64),
        Reverse(row.count.difference().unsigned_abs()),
        row.command.clone(),
        row.line().cloned(),
    )
}

fn differing_conditions(before: &[Run], after: &[Run]) -> Vec<Condition> {
    let (Some(old), Some(new)) = (before.first(), after.first()) else {
        return Vec::new();
    };
    let mut conditions = Vec::new();
    if old.cpus != new.cpus {
        conditions.push(Condition::Cpus(old.cpus, new.cpus));
    }
    if old.arch != new.arch {
        conditions.push(Condition::Architecture(old.arch.clone(), new.arch.clone()));
    }
    for constant in old.calibration.iter().filter(|constant| COST_CONSTANTS.contains(&constant.what)) {
        let other = new.calibration.iter().find(|other| other.what == constant.what);
        if let Some(other) = other.filter(|other| differs(constant, other)) {
            conditions.push(Condition::Constant(constant.what, constant.ns, other.ns));
        }
    }
    for (side, runs, others) in [(Side::Before, before, after), (Side::After, after, before)] {
        let [has_lines, others_have_lines] = [runs, others].map(|runs| runs.iter().any(|run| run.has_script_lines));
        if others_have_lines && !has_lines {
            conditions.push(Condition::NoLines(side));
        }
        if runs.iter().any(|run| run.wall.is_none()) {
            conditions.push(Condition::Incomplete(side));
        }
    }
    conditions
}

/// Whether a constant differs clearly: by more than `MIN_CONSTANT_CHANGE`, and without overlap of
/// the measured intervals.
fn differs(before: &Calibration, after: &Calibration) -> bool {
    let (less, more) = if before.ns < after.ns { (before, after) } else { (after, before) };
    let has_no_overlap = less.high_ns.unwrap_or(less.ns) < more.low_ns.unwrap_or(more.ns);
    less.ns > 0.0 && more.ns > (1.0 + MIN_CONSTANT_CHANGE) * less.ns && has_no_overlap
}
