//! Budgets relative to a baseline: launches, forks without exec and failed execs may not grow by
//! more than a tolerance. The same holds for the wall if both sides have several runs.

use super::culprits::{Culprit, MAX_NAMED};
use super::{Budget, Measured, Verdict};
use crate::compare::diff::{CountChange, Diff, Row};

/// A number that must not grow by more than the tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grown {
    Launches,
    ForksWithoutExec,
    FailedExecs,
    /// The wall, in nanoseconds.
    Wall,
}

/// How much larger a number may be than in the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A share of the baseline's number.
    Share(f64),
    /// An absolute number. The wall must not grow at all.
    Count(u64),
}

impl Tolerance {
    /// Returns the largest value that is within the tolerance.
    fn limit(self, baseline: f64) -> f64 {
        match self {
            Tolerance::Share(share) => baseline * (1.0 + share),
            Tolerance::Count(more) => baseline + more as f64,
        }
    }

    fn share(self) -> f64 {
        match self {
            Tolerance::Share(share) => share,
            Tolerance::Count(_) => 0.0,
        }
    }
}

type RowCount = fn(&Row) -> &CountChange;

/// Checks the growth since the baseline, which is the older side of the diff.
pub fn growth(diff: &Diff, tolerance: Tolerance) -> Vec<Verdict> {
    let counts: [(Grown, &CountChange, RowCount); 3] = [
        (Grown::Launches, &diff.launches, |row| &row.count),
        (Grown::ForksWithoutExec, &diff.forks_without_exec, |row| &row.count),
        (Grown::FailedExecs, &diff.failed_execs, |row| &row.failed_execs),
    ];
    let verdicts = counts.into_iter().map(|(grown, change, count)| {
        let limit = tolerance.limit(change.before.median as f64);
        let is_exceeded = change.after.median as f64 > limit && change.after.low > change.before.high;
        Verdict {
            budget: Budget::Growth(grown, limit),
            measured: Measured::Count(change.after),
            is_exceeded,
            culprits: if is_exceeded {
                grown_rows(diff, |row| grown != Grown::ForksWithoutExec || row.command.starts_with(b"("), count)
            } else {
                Vec::new()
            },
        }
    });
    verdicts.chain(wall(diff, tolerance)).collect()
}

/// Checks the wall. `None` if a side has only one run, because a change then cannot be
/// distinguished from noise.
fn wall(diff: &Diff, tolerance: Tolerance) -> Option<Verdict> {
    let (before, difference) = (diff.wall.before?, diff.wall.difference?);
    let limit = before * (1.0 + tolerance.share());
    let mut interval = difference;
    for end in [&mut interval.value, &mut interval.low, &mut interval.high] {
        *end += before;
    }
    Some(Verdict {
        budget: Budget::Growth(Grown::Wall, limit),
        measured: Measured::Interval(interval),
        is_exceeded: interval.low > limit,
        culprits: Vec::new(),
    })
}

/// Returns the groups of launches whose counts grew the most.
fn grown_rows(diff: &Diff, is_counted: impl Fn(&&Row) -> bool, count: RowCount) -> Vec<Culprit> {
    let mut rows: Vec<&Row> = diff.rows.iter().filter(is_counted).filter(|row| count(row).difference() > 0).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(count(row).difference()));
    let culprits = rows.iter().take(MAX_NAMED).map(|row| Culprit {
        command: row.command.clone(),
        others: 0,
        script_line: row.line().cloned(),
        count: count(row).difference().unsigned_abs(),
        advice: None,
    });
    culprits.collect()
}
