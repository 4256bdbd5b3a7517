//! The measured values of a command, for services that track benchmarks: counts, and times with
//! their confidence intervals.

use crate::diff::{Count, Run};
use spawnscope_data::event::Nanos;
use spawnscope_data::statistics::mean_interval;

/// A measured value of all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name of the metric: words joined by hyphens.
    pub slug: &'static str,
    /// The unit of the value.
    pub unit: &'static str,
    /// The median of a count, the mean of a time.
    pub value: f64,
    /// The smallest and the largest count, or the ends of a time's confidence interval. `None` if
    /// all counts are equal, or for the time of a single run.
    pub ends: Option<[f64; 2]>,
}

/// Returns the metrics of the runs, without unknown values.
#[must_use]
pub fn metrics(runs: &[Run]) -> Vec<Metric> {
    let all = [
        Some(count(runs, "launches", "launches", |run| run.all.count)),
        Some(count(runs, "forks-without-exec", "forks", |run| run.all.forks_without_exec)),
        Some(count(runs, "failed-execs", "execs", |run| run.all.failed_execs)),
        time(runs, "launch-tax", |run| run.all.tax),
        time(runs, "critical-tax", |run| run.all.critical_tax),
        time(runs, "wall", |run| run.wall),
    ];
    all.into_iter().flatten().collect()
}

fn count(runs: &[Run], slug: &'static str, unit: &'static str, count_of: fn(&Run) -> u64) -> Metric {
    let count = Count::of(runs.iter().map(count_of).collect());
    let ends = (!count.is_exact()).then_some([count.low as f64, count.high as f64]);
    Metric { slug, unit, value: count.median as f64, ends }
}

fn time(runs: &[Run], slug: &'static str, time_of: fn(&Run) -> Option<Nanos>) -> Option<Metric> {
    let times = runs.iter().map(|run| Some(time_of(run)?.0 as f64)).collect::<Option<Vec<f64>>>()?;
    let interval = mean_interval(&times);
    let value = interval.map(|interval| interval.value).or(times.first().copied())?;
    let ends = interval.map(|interval| [interval.low, interval.high]);
    Some(Metric { slug, unit: "ns", value, ends })
}
