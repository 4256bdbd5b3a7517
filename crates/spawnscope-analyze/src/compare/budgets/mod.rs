//! Budgets for launches: whether the recordings of a command keep them, and which script lines
//! exceed them. Counts are exact. A time exceeds a budget only if the lower end of its confidence
//! interval does, so that noise does not fail a build. `growth` compares with a baseline.

mod culprits;
mod growth;

use culprits::{CulpritSearch, removes_failed_execs, removes_launches, with_largest_counts};
use globset::GlobMatcher;

use crate::compare::diff::{Count, Key, Run};
use crate::explain::advice::AdviceList;
use crate::path::summary::Summary;
use crate::sites::select::{SelectError, glob, matches};
pub use culprits::Culprit;
pub use growth::{Grown, Tolerance, growth};
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::{Interval, mean_interval};

/// The 95 % margin of a time that was measured once, as a share of it.
const ASSUMED_MARGIN: f64 = 0.05;

/// The requested budgets; `None` for a budget that was not requested.
#[derive(Clone, Debug, Default)]
pub struct Budgets {
    pub launches: Option<u64>,
    pub forks_without_exec: Option<u64>,
    pub failed_execs: Option<u64>,
    /// Maximum launch tax on the critical path, as a share of the wall.
    pub critical_tax: Option<f64>,
    pub wall: Option<Nanos>,
    /// Maximum number of launches from any one script line.
    pub per_line: Option<u64>,
    /// Maximum number of launches of each of these programs.
    pub per_command: Vec<CommandBudget>,
}

#[derive(Clone, Debug)]
pub struct CommandBudget {
    /// The glob as given.
    pub name: String,
    pub max_launches: u64,
    glob: GlobMatcher,
}

impl CommandBudget {
    /// Creates a budget for the programs that a glob on their base name matches.
    pub fn new(name: &str, max_launches: u64) -> Result<CommandBudget, SelectError> {
        Ok(CommandBudget { name: name.to_owned(), max_launches, glob: glob(name)? })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Budget {
    Launches(u64),
    ForksWithoutExec(u64),
    FailedExecs(u64),
    Command(String, u64),
    /// Launches from the script line with the most launches.
    Line(u64),
    /// Launch tax on the critical path, as a share of the wall.
    CriticalTax(f64),
    Wall(Nanos),
    /// A number that must not grow: which one, and its limit, which is the baseline's value plus
    /// the tolerance.
    Growth(Grown, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measured {
    /// A count. Its median is compared with the budget.
    Count(Count),
    /// A time in nanoseconds, or a share. The lower end of its interval is compared with the
    /// budget.
    Interval(Interval),
}

#[derive(Clone, Debug)]
pub struct Verdict {
    pub budget: Budget,
    pub measured: Measured,
    pub is_exceeded: bool,
    /// The lines that exceed the budget, the largest count first. Empty if the budget is met.
    pub culprits: Vec<Culprit>,
}

#[derive(Clone, Debug)]
pub struct Check {
    pub command: Vec<Vec<u8>>,
    pub runs: usize,
    /// Number of lost events. If it is not zero, counts are lower limits.
    pub lost: u64,
    /// The verdicts, in the order of the options.
    pub verdicts: Vec<Verdict>,
}

impl Check {
    pub fn is_kept(&self) -> bool {
        self.verdicts.iter().all(|verdict| !verdict.is_exceeded)
    }

    pub fn exceeded(&self) -> impl Iterator<Item = &Verdict> {
        self.verdicts.iter().filter(|verdict| verdict.is_exceeded)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    #[error("--per-line needs script lines, and no launch of these recordings has one: record without --no-lines")]
    NoLines,
    /// The recorder did not finish.
    #[error("the wall time is unknown, because a recorder was killed before it finished: record again")]
    NoWall,
    #[error("--max-critical-tax needs a complete command: record one without -p or -a")]
    NoCriticalPath,
}

type MakeBudget = fn(u64) -> Budget;

type CountOf = fn(&Summary) -> u64;

/// Checks the recordings of a command, which are runs of the same version. The advice is about the
/// first recording.
pub fn check(runs: &[Run], budgets: &Budgets, advices: &AdviceList) -> Result<Check, BudgetError> {
    let search = CulpritSearch { runs, advices };
    let mut verdicts = Vec::new();
    let all: [(Option<u64>, MakeBudget, CountOf); 3] = [
        (budgets.launches, Budget::Launches, |sums| sums.count),
        (budgets.forks_without_exec, Budget::ForksWithoutExec, |sums| sums.forks_without_exec),
        (budgets.failed_execs, Budget::FailedExecs, |sums| sums.failed_execs),
    ];
    for (limit, budget, count) in all {
        verdicts.extend(limit.map(|limit| search.limit(budget(limit), limit, |_| true, count)));
    }
    for each in &budgets.per_command {
        let budget = Budget::Command(each.name.clone(), each.max_launches);
        verdicts.push(search.limit(
            budget,
            each.max_launches,
            |key| matches(&each.glob, &key.command),
            |sums| sums.count,
        ));
    }
    if let Some(max) = budgets.per_line {
        verdicts.push(per_line(&search, max)?);
    }
    if let Some(max) = budgets.critical_tax {
        verdicts.push(critical_tax(&search, max)?);
    }
    if let Some(max) = budgets.wall {
        verdicts.push(wall(&search, max)?);
    }
    Ok(Check {
        command: runs.first().map(|run| run.command.clone()).unwrap_or_default(),
        runs: runs.len(),
        lost: runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.lost)),
        verdicts,
    })
}

/// Checks the script line with the most launches. All lines above the budget are culprits.
fn per_line(search: &CulpritSearch<'_>, max: u64) -> Result<Verdict, BudgetError> {
    if !search.runs.iter().any(|run| run.has_script_lines) {
        return Err(BudgetError::NoLines);
    }
    let mut lines = search.by_line(|_| true, |sums| sums.count);
    lines.retain(|line| line.script_line.is_some());
    let largest = lines.first().map_or(0, |line| line.count);
    lines.retain(|line| line.count > max);
    Ok(Verdict {
        budget: Budget::Line(max),
        measured: Measured::Count(Count::of(vec![largest])),
        is_exceeded: !lines.is_empty(),
        culprits: search.with_advice(lines, removes_launches),
    })
}

fn critical_tax(search: &CulpritSearch<'_>, max: f64) -> Result<Verdict, BudgetError> {
    let mut shares = Vec::new();
    for run in search.runs {
        let wall = run.wall.filter(|wall| wall.0 > 0).ok_or(BudgetError::NoWall)?;
        let tax = run.all.critical_tax.ok_or(BudgetError::NoCriticalPath)?;
        shares.push(tax.0 as f64 / wall.0 as f64);
    }
    Ok(search.limit_time(Budget::CriticalTax(max), max, &shares))
}

fn wall(search: &CulpritSearch<'_>, max: Nanos) -> Result<Verdict, BudgetError> {
    let walls: Vec<f64> = search
        .runs
        .iter()
        .map(|run| run.wall.map(|wall| wall.0 as f64).ok_or(BudgetError::NoWall))
        .collect::<Result<_, _>>()?;
    Ok(search.limit_time(Budget::Wall(max), max.0 as f64, &walls))
}

impl CulpritSearch<'_> {
    fn limit(
        &self,
        budget: Budget,
        max: u64,
        is_limited: impl Fn(&Key) -> bool,
        count: impl Fn(&Summary) -> u64,
    ) -> Verdict {
        let counts = self.runs.iter().map(|run| {
            let limited = run.launches.iter().filter(|(key, _)| is_limited(key));
            limited.map(|(_, sums)| count(sums)).sum()
        });
        let total = Count::of(counts.collect());
        let is_exceeded = total.median > max;
        let lowers = match budget {
            Budget::FailedExecs(_) => removes_failed_execs,
            _ => removes_launches,
        };
        let culprits = if is_exceeded {
            self.with_advice(with_largest_counts(self.by_line(is_limited, count)), lowers)
        } else {
            Vec::new()
        };
        Verdict { budget, measured: Measured::Count(total), is_exceeded, culprits }
    }

    /// Checks a time or a share, given for each run.
    fn limit_time(&self, budget: Budget, max: f64, values: &[f64]) -> Verdict {
        let interval = interval(values);
        let is_exceeded = interval.low > max;
        let culprits = if is_exceeded {
            let lines = self.by_line(|_| true, |sums| sums.critical_tax.unwrap_or_default().0);
            self.with_advice(with_largest_counts(lines), |_| true)
        } else {
            Vec::new()
        };
        Verdict { budget, measured: Measured::Interval(interval), is_exceeded, culprits }
    }
}

/// Returns the confidence interval of the mean of several runs. For a single run, its width is the
/// drift between runs that predictions assume.
fn interval(values: &[f64]) -> Interval {
    mean_interval(values).unwrap_or_else(|| {
        let value = values.first().copied().unwrap_or_default();
        Interval { value, low: value * (1.0 - ASSUMED_MARGIN), high: value * (1.0 + ASSUMED_MARGIN) }
    })
}
