//! Launches that become slower while a parent runs: finds them, and shows their course in ten parts. Judges each parent
//! on its own and prefers silence to a false alarm. Why they did is `cause`'s affair.

mod cause;
mod samples;

use super::launch::Launch;
use super::phases::Phase;
use super::tree::Forest;
use crate::event::{LaunchId, Nanos, Pid};
use crate::statistics::{median, quantile, trend, trend_deviations};

pub use cause::{MemoryGrowth, Rise};
use samples::Sample;

/// Fewer children than this say nothing of a trend.
const MIN_CHILDREN: usize = 20;
/// Parts of equal count into which a parent's children are divided.
const SEGMENTS: usize = 10;
/// The last segment must cost this many times the first one ...
const MIN_RATIO: f64 = 1.3;
/// ... and this much more.
const MIN_GROWTH_NS: f64 = 50_000.0;
/// Kendall's tau of the ten medians: one slow stretch does not reach it, a course upwards does.
const MIN_TREND: f64 = 0.6;
/// Kendall's tau of the single launches, in standard deviations of what chance would give: 1 case in 30,000.
const MIN_DEVIATIONS: f64 = 4.0;
/// Launches whose order is compared pair by pair; of more, as many are picked at equal distances.
const MOST_COMPARED: usize = 500;
/// The phases whose sum is a launch's cost. `reap` is left out: it is the parent's habit, not the launch's cost.
const COST: [Phase; 6] = [
    Phase::Create,
    Phase::Queue,
    Phase::Setup,
    Phase::Exec,
    Phase::Load,
    Phase::Teardown,
];

/// A parent whose launches became slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// The parent.
    pub parent: LaunchId,
    /// Its pid.
    pub pid: Option<Pid>,
    /// The program it was at the end.
    pub label: Vec<u8>,
    /// Launches that were compared.
    pub children: u64,
    /// Their course, ten parts of equal count.
    pub segments: Vec<Segment>,
    /// The parent's memory as the cause.
    pub memory: Option<MemoryGrowth>,
    /// The phase that rose most.
    pub rise: Option<Rise>,
}

impl Drift {
    /// How many times dearer the last launches were than the first ones.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.segments.first(), self.segments.last()) {
            (Some(first), Some(last)) => last.cost.0 as f64 / (first.cost.0 as f64).max(1.0),
            _ => 1.0,
        }
    }
}

/// One part of a parent's children, in order of creation. Its figures are freed of what the mix of programs explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Launches in it.
    pub children: u64,
    /// Median cost of a launch: its tax without `reap`.
    pub cost: Nanos,
    /// Medians of the phases in the order of `COST`.
    phases: [Option<Nanos>; COST.len()],
    /// Median of the parent's resident set.
    pub parent_rss_bytes: Option<u64>,
}

impl Segment {
    /// Median of one phase; `None` when it is unknown, or no part of the cost.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<Nanos> {
        let position = COST.iter().position(|counted| *counted == phase)?;
        self.phases[position]
    }
}

/// All parents whose launches became slower, the one that lost most first.
#[must_use]
pub fn drifts(forest: &Forest<'_>) -> Vec<Drift> {
    let mut found: Vec<Drift> = (0..forest.launches.len())
        .filter_map(|parent| drift_of(forest, parent))
        .collect();
    let lost_ns = |drift: &Drift| {
        let first_ns = drift.segments.first().map_or(0, |segment| segment.cost.0);
        drift
            .segments
            .iter()
            .map(|segment| segment.cost.0.saturating_sub(first_ns) * segment.children)
            .sum::<u64>()
    };
    found.sort_by_key(|drift| (std::cmp::Reverse(lost_ns(drift)), drift.parent));
    found
}

fn drift_of(forest: &Forest<'_>, parent: usize) -> Option<Drift> {
    let children: Vec<&Launch<'_>> = forest
        .children(parent)
        .iter()
        .map(|index| &forest.launches[*index])
        .collect();
    if children.len() < MIN_CHILDREN {
        return None;
    }
    let samples = samples::comparable(&children);
    if samples.len() < MIN_CHILDREN || !became_slower(&samples) || !is_beyond_chance(&samples) {
        return None;
    }
    let launch = &forest.launches[parent];
    let segments = segments_of(&samples);
    Some(Drift {
        parent: launch.id,
        pid: launch.pid,
        label: launch.command.label(),
        children: samples.len() as u64,
        memory: cause::memory_growth(&segments),
        rise: cause::largest_rise(&segments),
        segments,
    })
}

/// Divides what belongs to the samples into parts of equal count.
fn parts<T>(of_samples: &[T]) -> impl Iterator<Item = &[T]> + Clone {
    let start = |segment: usize| segment * of_samples.len() / SEGMENTS;
    (0..SEGMENTS).map(move |segment| &of_samples[start(segment)..start(segment + 1)])
}

fn segments_of(samples: &[Sample<'_>]) -> Vec<Segment> {
    let rss_bytes = |part: &[Sample<'_>]| {
        median(
            part.iter()
                .filter_map(|sample| Some(sample.launch.parent_rss_bytes.get()? as f64)),
        )
    };
    let without_phases = |part: &[Sample<'_>]| Segment {
        children: part.len() as u64,
        cost: Nanos(median_cost_ns(part).max(0.0) as u64),
        phases: [None; COST.len()],
        parent_rss_bytes: rss_bytes(part).map(|bytes| bytes as u64),
    };
    let mut segments: Vec<Segment> = parts(samples).map(without_phases).collect();
    for (position, phase) in COST.into_iter().enumerate() {
        let spans_ns = samples::levelled(samples, phase);
        for (segment, part) in segments.iter_mut().zip(parts(&spans_ns)) {
            let span_ns = median(part.iter().copied().flatten());
            segment.phases[position] = span_ns.map(|span_ns| Nanos(span_ns.max(0.0) as u64));
        }
    }
    segments
}

/// A trend over all parts, large enough to matter, and such that hardly a late launch was as cheap as an early one.
fn became_slower(samples: &[Sample<'_>]) -> bool {
    let medians_ns: Vec<f64> = parts(samples).map(median_cost_ns).collect();
    let (first_ns, last_ns) = (medians_ns[0].max(0.0), medians_ns[SEGMENTS - 1]);
    let quartile_ns = |part: Option<&[Sample<'_>]>, share| {
        let costs_ns = part.unwrap_or_default().iter().map(|sample| sample.cost_ns);
        quantile(costs_ns.collect(), share)
    };
    let early_high_ns = quartile_ns(parts(samples).next(), 0.75);
    let late_low_ns = quartile_ns(parts(samples).last(), 0.25);
    last_ns >= first_ns * MIN_RATIO
        && last_ns - first_ns >= MIN_GROWTH_NS
        && late_low_ns > early_high_ns
        && trend(&medians_ns) >= MIN_TREND
}

/// Whether launches in random order would hardly ever rise as these do.
fn is_beyond_chance(samples: &[Sample<'_>]) -> bool {
    let picked = samples.len().min(MOST_COMPARED);
    let costs_ns: Vec<f64> = (0..picked)
        .map(|at| samples[at * samples.len() / picked].cost_ns)
        .collect();
    trend_deviations(&costs_ns) >= MIN_DEVIATIONS
}

fn median_cost_ns(part: &[Sample<'_>]) -> f64 {
    median(part.iter().map(|sample| sample.cost_ns)).unwrap_or_default()
}
