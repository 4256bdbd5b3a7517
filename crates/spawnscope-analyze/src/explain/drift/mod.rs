//! Finds parents whose launches become slower over time, and divides the launches of each into ten
//! segments. Thresholds are strict, because a missed drift is better than a false alarm. `cause`
//! finds the reason.

mod cause;
mod samples;

use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_data::statistics::{median, quantile, trend, trend_deviations};

pub use cause::{MemoryGrowth, Rise};
use samples::Sample;

/// Minimum number of children for a trend.
const MIN_CHILDREN: usize = 20;
/// Number of segments with equal counts that a parent's children are divided into.
const SEGMENTS: usize = 10;
/// Minimum ratio of the cost in the last segment to the cost in the first.
const MIN_RATIO: f64 = 1.3;
/// Minimum difference between the cost in the last segment and the cost in the first.
const MIN_GROWTH_NS: f64 = 50_000.0;
/// Minimum Kendall's tau of the ten medians. A rising trend reaches it; a single slow stretch does
/// not.
const MIN_TREND: f64 = 0.6;
/// Minimum Kendall's tau of the individual launches, in standard deviations of tau for a random
/// order. Chance exceeds it in 1 of 30,000 cases.
const MIN_DEVIATIONS: f64 = 4.0;
/// Maximum number of launches that are compared pairwise. Of more launches, this many are picked at
/// equal distances.
const MAX_COMPARED: usize = 500;
/// The phases that make up the cost of a launch, without `reap`, which depends on the parent.
const COST_PHASES: [Phase; 6] = [Phase::Create, Phase::Queue, Phase::Setup, Phase::Exec, Phase::Load, Phase::Teardown];

/// A parent whose launches became slower.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    pub parent: LaunchId,
    pub pid: Option<Pid>,
    /// Display name of the parent's last program.
    pub label: Vec<u8>,
    /// Number of compared launches.
    pub children: u64,
    /// The launches in order of creation, in ten segments with equal numbers of launches.
    pub segments: Vec<Segment>,
    /// The memory growth of the parent, if it is the cause.
    pub memory: Option<MemoryGrowth>,
    /// The phase that grew most.
    pub rise: Option<Rise>,
}

impl Drift {
    /// Returns the ratio of the cost in the last segment to the cost in the first.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        match (self.segments.first(), self.segments.last()) {
            (Some(first), Some(last)) => last.cost.0 as f64 / (first.cost.0 as f64).max(1.0),
            _ => 1.0,
        }
    }
}

/// One segment of a parent's children. Its values are corrected for the mix of programs and
/// mechanisms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of launches.
    pub children: u64,
    /// Median cost of a launch: launch tax without `reap`.
    pub cost: Nanos,
    /// Medians of the phases in the order of `COST_PHASES`.
    phases: [Option<Nanos>; COST_PHASES.len()],
    /// Median of the parent's resident set.
    pub parent_rss_bytes: Option<u64>,
}

impl Segment {
    /// Returns the median of one phase. `None` if it is unknown, or the phase is not part of the
    /// cost.
    #[must_use]
    pub fn phase(&self, phase: Phase) -> Option<Nanos> {
        let position = COST_PHASES.iter().position(|each| *each == phase)?;
        self.phases[position]
    }
}

/// Returns all parents whose launches became slower, the largest loss first.
#[must_use]
pub fn drifts(forest: &Forest<'_>) -> Vec<Drift> {
    let mut found: Vec<Drift> = (0..forest.launches.len()).filter_map(|parent| drift_of(forest, parent)).collect();
    found.sort_by_key(|drift| (std::cmp::Reverse(lost_ns(drift)), drift.parent));
    found
}

fn lost_ns(drift: &Drift) -> u64 {
    let first_ns = drift.segments.first().map_or(0, |segment| segment.cost.0);
    drift.segments.iter().map(|segment| segment.cost.0.saturating_sub(first_ns) * segment.children).sum()
}

fn drift_of(forest: &Forest<'_>, parent: usize) -> Option<Drift> {
    let children: Vec<&Launch<'_>> = forest.children(parent).iter().map(|index| &forest.launches[*index]).collect();
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
        pid: launch.pid.get(),
        label: launch.command.label(),
        children: samples.len() as u64,
        memory: cause::memory_growth(&segments),
        rise: cause::largest_rise(&segments),
        segments,
    })
}

/// Divides items into segments with equal numbers of items.
fn parts<T>(items: &[T]) -> impl Iterator<Item = &[T]> + Clone {
    let count = items.len();
    (0..SEGMENTS).map(move |segment| &items[segment * count / SEGMENTS..(segment + 1) * count / SEGMENTS])
}

fn segments_of(samples: &[Sample<'_>]) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(SEGMENTS);
    for part in parts(samples) {
        let rss_bytes = part.iter().filter_map(|sample| Some(sample.launch.parent_rss_bytes.get()? as f64));
        segments.push(Segment {
            children: part.len() as u64,
            cost: Nanos(median_cost_ns(part).max(0.0) as u64),
            phases: [None; COST_PHASES.len()],
            parent_rss_bytes: median(rss_bytes).map(|bytes| bytes as u64),
        });
    }
    for (position, phase) in COST_PHASES.into_iter().enumerate() {
        let spans_ns = samples::corrected_phase(samples, phase);
        for (segment, part) in segments.iter_mut().zip(parts(&spans_ns)) {
            let span_ns = median(part.iter().copied().flatten());
            segment.phases[position] = span_ns.map(|span_ns| Nanos(span_ns.max(0.0) as u64));
        }
    }
    segments
}

/// Whether the medians rise over all segments by enough to matter, and three quarters of the last
/// launches are slower than three quarters of the first.
fn became_slower(samples: &[Sample<'_>]) -> bool {
    let medians_ns: Vec<f64> = parts(samples).map(median_cost_ns).collect();
    let (first_ns, last_ns) = (medians_ns[0].max(0.0), medians_ns[SEGMENTS - 1]);
    let costs_ns: Vec<f64> = samples.iter().map(|sample| sample.cost_ns).collect();
    let early_high_ns = quantile(parts(&costs_ns).next().unwrap_or_default().to_vec(), 0.75);
    let late_low_ns = quantile(parts(&costs_ns).last().unwrap_or_default().to_vec(), 0.25);
    last_ns >= first_ns * MIN_RATIO
        && last_ns - first_ns >= MIN_GROWTH_NS
        && late_low_ns > early_high_ns
        && trend(&medians_ns) >= MIN_TREND
}

/// Whether the rise would be very unlikely for launches in random order.
fn is_beyond_chance(samples: &[Sample<'_>]) -> bool {
    let picked = samples.len().min(MAX_COMPARED);
    let costs_ns: Vec<f64> = (0..picked).map(|at| samples[at * samples.len() / picked].cost_ns).collect();
    trend_deviations(&costs_ns) >= MIN_DEVIATIONS
}

fn median_cost_ns(part: &[Sample<'_>]) -> f64 {
    median(part.iter().map(|sample| sample.cost_ns)).unwrap_or_default()
}
