//! Compares recordings of two versions of a command: which launches were added, removed and
//! changed. Counts are exact. Times have confidence intervals if both sides have several runs.
//! `normalise` and `matching` decide which launches are the same, and `change` decides which
//! differences are noise.

mod change;
mod matching;
pub mod normalise;
mod run;

use std::cmp::Reverse;
use std::collections::BTreeSet;

pub use change::{Count, CountChange, TimeChange, Times};
use matching::{Pair, pairs};
pub use run::{Key, Run, ScriptLine};
use run::{renamed_file, with_renamed_file};
use spawnscope_data::event::{Constant, Nanos};
use spawnscope_data::statistics::{Resamples, median, significant};

use crate::model::phases::Phase;
use crate::path::summary::Summary;

/// A group's change in time is reported only if it is at least this share of the wall.
const MIN_SHARE_OF_WALL: f64 = 0.01;
/// The probability that any group is reported as changed in time although none is.
const LEVEL: f64 = 0.05;
/// The machine constants that represent the cost of a launch.
const COST_CONSTANTS: [Constant; 3] = [Constant::ForkExit, Constant::VforkExit, Constant::PageCopy];
/// Machine constants are reported if they differ by more than this share.
const MIN_CONSTANT_CHANGE: f64 = 0.2;

#[derive(Clone, Debug)]
pub struct Diff {
    pub runs: [usize; 2],
    pub commands: [Vec<Vec<u8>>; 2],
    /// Number of lost events before and after. If it is not zero, counts are lower limits.
    pub lost: [u64; 2],
    pub conditions: Vec<Condition>,
    /// The old and the new name of a renamed script, whose lines are compared.
    pub renamed: Option<[Vec<u8>; 2]>,
    pub wall: TimeChange,
    pub launches: CountChange,
    pub forks_without_exec: CountChange,
    pub failed_execs: CountChange,
    pub times: Times,
    pub critical_tax: TimeChange,
    /// Groups of launches, the largest change first.
    pub rows: Vec<Row>,
}

/// A condition that differs between the sides, and affects times in addition to the compared
/// change.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    Cpus(u32, u32),
    Architecture(String, String),
    Constant(Constant, f64, f64),
    /// Script lines are unknown on this side, and known on the other.
    NoLines(Side),
    Incomplete(Side),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Before,
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
    pub kind: ChangeKind,
    pub command: Vec<u8>,
    /// The normalised arguments. `None` if they differ within the group.
    pub arguments: Option<Vec<u8>>,
    /// Number of different normalised arguments in the group.
    pub variants: usize,
    pub parent: Vec<u8>,
    pub line_before: Option<ScriptLine>,
    pub line_after: Option<ScriptLine>,
    pub count: CountChange,
    pub failed_execs: CountChange,
    pub times: Times,
}

impl Row {
    /// Returns the call site in the newer recordings, or in the older recordings if the newer have
    /// none.
    pub fn line(&self) -> Option<&ScriptLine> {
        self.line_after.as_ref().or(self.line_before.as_ref())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Those of one program from one line, with any arguments.
    #[default]
    Lines,
    /// Those that also have the same arguments, apart from numbers and temporary names.
    Arguments,
}

pub fn compare(before: &[Run], after: &[Run], grouping: Grouping) -> Diff {
    let resamples = Resamples::draw(before.len(), after.len());
    let sides = [before, after];
    let walls = |runs: &[Run]| runs.iter().map(|run| Some(run.wall?.0 as f64)).collect::<Vec<_>>();
    let [walls_before, walls_after] = sides.map(walls);
    let wall = TimeChange::of(&resamples, &walls_before, &walls_after);
    let sums = sides.map(|runs| runs.iter().map(|run| Some(run.all.clone())).collect::<Vec<_>>());
    let renamed = renamed_file(before, after);
    let same_names = renamed.as_ref().map(|names| before.iter().map(|run| with_renamed_file(run, names)).collect());
    let same_names: &[Run] = same_names.as_ref().map_or(before, |runs: &Vec<Run>| runs);
    let mut rows: Vec<Row> = pairs(same_names, after, grouping).iter().map(|pair| row(pair, &resamples)).collect();
    if let Some([old, new]) = &renamed {
        let lines = rows.iter_mut().filter_map(|row| row.line_before.as_mut());
        lines.filter(|line| line.file == *new).for_each(|line| line.file.clone_from(old));
    }
    mark_noise(rows.iter_mut().map(|row| &mut row.times.critical), &wall);
    rows.iter_mut().for_each(|row| row.kind = kind(row, wall.before));
    rows.sort_by_cached_key(rank);
    Diff {
        runs: sides.map(<[Run]>::len),
        commands: sides.map(|runs| runs.first().map(|run| run.command.clone()).unwrap_or_default()),
        lost: sides.map(|runs| runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.lost))),
        conditions: differing_conditions(before, after),
        renamed,
        wall,
        launches: counts(&sums, |sums| sums.count),
        forks_without_exec: counts(&sums, |sums| sums.forks_without_exec),
        failed_execs: counts(&sums, |sums| sums.failed_execs),
        critical_tax: time(&resamples, &sums, |sums| sums.critical_tax),
        times: times(&resamples, &sums),
        rows,
    }
}

/// Marks the changes of times on the critical path that are noise: all of them if the wall is
/// unchanged, otherwise those that are not clear enough for one of many groups.
fn mark_noise<'c>(changes: impl Iterator<Item = &'c mut TimeChange>, wall: &TimeChange) {
    let known: Vec<(f64, &mut TimeChange)> = changes.filter_map(|change| Some((change.chance?, change))).collect();
    let chances: Vec<f64> = known.iter().map(|(chance, _)| *chance).collect();
    for ((_, change), is_clear) in known.into_iter().zip(significant(&chances, LEVEL)) {
        change.is_one_of_many = !is_clear || wall.is_change() == Some(false);
    }
}

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

fn row(pair: &Pair<'_>, resamples: &Resamples) -> Row {
    let keys = pair.keys.concat();
    let first = keys.first();
    let variants: BTreeSet<&[u8]> = keys.iter().map(|key| key.arguments.as_slice()).collect();
    let [line_before, line_after] =
        pair.keys.each_ref().map(|keys| keys.first().and_then(|key| key.script_line.clone()));
    let (count, failed_execs) = (counts(&pair.sums, |sums| sums.count), counts(&pair.sums, |sums| sums.failed_execs));
    let times = times(resamples, &pair.sums);
    Row {
        kind: ChangeKind::Same,
        command: first.map(|key| key.command.clone()).unwrap_or_default(),
        arguments: variants.first().filter(|_| variants.len() == 1).map(|arguments| arguments.to_vec()),
        variants: variants.len(),
        parent: first.map(|key| key.parent.clone()).unwrap_or_default(),
        line_before,
        line_after,
        count,
        failed_execs,
        times,
    }
}

fn kind(row: &Row, wall: Option<f64>) -> ChangeKind {
    let Row { count, failed_execs, times, .. } = row;
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
    let (Some(old), Some(new)) = (before.first(), after.first()) else { return Vec::new() };
    let mut conditions = Vec::new();
    let are_known = old.cpus > 0 && new.cpus > 0;
    if are_known && old.cpus != new.cpus {
        conditions.push(Condition::Cpus(old.cpus, new.cpus));
    }
    if old.arch != new.arch {
        conditions.push(Condition::Architecture(old.arch.clone(), new.arch.clone()));
    }
    for constant in COST_CONSTANTS {
        let speeds = [before, after].map(|runs| Speed::of(runs, constant));
        if let [Some(old), Some(new)] = speeds
            && old.differs_from(&new)
        {
            conditions.push(Condition::Constant(constant, old.median, new.median));
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

/// A constant of the machine in all runs of a side, in nanoseconds.
struct Speed {
    median: f64,
    /// The least lower quartile and the greatest upper quartile of the runs.
    range: [f64; 2],
}

impl Speed {
    fn of(runs: &[Run], what: Constant) -> Option<Speed> {
        let rows = || runs.iter().flat_map(|run| &run.calibration).filter(|row| row.what == what);
        let low = rows().map(|row| row.low_ns.unwrap_or(row.ns)).min_by(f64::total_cmp)?;
        let high = rows().map(|row| row.high_ns.unwrap_or(row.ns)).max_by(f64::total_cmp)?;
        Some(Speed { median: median(rows().map(|row| row.ns))?, range: [low, high] })
    }

    /// Whether the machines clearly differ: the medians by more than `MIN_CONSTANT_CHANGE`, and by
    /// more than the runs of each side differ.
    fn differs_from(&self, other: &Speed) -> bool {
        let (fast, slow) = if self.median < other.median { (self, other) } else { (other, self) };
        fast.median > 0.0 && slow.median > (1.0 + MIN_CONSTANT_CHANGE) * fast.median && fast.range[1] < slow.range[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a change of the mean from 100 by `shift`, which runs of 98 to 102 barely or clearly
    /// show.
    fn change(shift: f64) -> TimeChange {
        let before = [98.0, 99.0, 100.0, 101.0, 102.0];
        let [before, after] = [before, before.map(|time| time + shift)].map(|times| times.map(Some));
        TimeChange::of(&Resamples::draw(5, 5), &before, &after)
    }

    fn changed(shifts: &[f64], wall: f64) -> Vec<bool> {
        let mut changes: Vec<TimeChange> = shifts.iter().map(|shift| change(*shift)).collect();
        mark_noise(changes.iter_mut(), &change(wall));
        changes.iter().map(|change| change.is_change() == Some(true)).collect()
    }

    #[test]
    fn one_of_many_groups_must_differ_more_clearly_than_a_single_one() {
        assert_eq!(changed(&[3.0], 20.0), [true]);
        let many = [[3.0].as_slice(), &[0.2; 49]].concat();
        assert!(!changed(&many, 20.0).contains(&true), "the headline of 50 groups would be noise");
        let clear = [[12.0].as_slice(), &[0.2; 49]].concat();
        assert_eq!(changed(&clear, 20.0).iter().filter(|changed| **changed).count(), 1);
    }

    #[test]
    fn no_group_changed_in_time_if_the_wall_is_unchanged() {
        assert_eq!(changed(&[12.0], 0.1), [false]);
        assert_eq!(changed(&[12.0], -12.0), [true]);
    }
}
