//! Launches that become slower while a parent runs, and whether the parent's growing memory explains it.
//! Judges each parent on its own and prefers silence to a false alarm.

use std::collections::HashMap;
use std::hash::Hash;

use super::launch::Launch;
use super::phases::Phase;
use super::statistics::{kendall_tau, median, quantile, theil_sen_slope, trend, trend_deviations};
use super::tree::Forest;
use crate::event::{LaunchId, Nanos, Pid};

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
/// Growth below this is the allocator's breathing, not a leak.
const MIN_MEMORY_GROWTH_BYTES: f64 = 4e6;
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

/// One part of a parent's children, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Launches in it.
    pub children: u64,
    /// Median cost of a launch: its tax without `reap`, freed of what the mix of programs explains.
    pub cost: Nanos,
    /// Median of `create`.
    pub create: Option<Nanos>,
    /// Median of the parent's resident set.
    pub parent_rss_bytes: Option<u64>,
}

/// The parent's memory grew, and `create` with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryGrowth {
    /// Nanoseconds of `create` for each further megabyte (1,000,000 bytes) of the parent.
    pub ns_per_mb: f64,
    /// Resident set in the first segment.
    pub from_bytes: u64,
    /// Resident set in the last segment.
    pub to_bytes: u64,
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
    let samples = comparable_samples(&children);
    if samples.len() < MIN_CHILDREN {
        return None;
    }
    let bounds = |segment: usize| segment * samples.len() / SEGMENTS;
    let parts: Vec<&[Sample]> = (0..SEGMENTS).map(|at| &samples[bounds(at)..bounds(at + 1)]).collect();
    if !became_slower(&parts) || !is_beyond_chance(&samples) {
        return None;
    }
    let launch = &forest.launches[parent];
    let segments: Vec<Segment> = parts.iter().map(|part| segment_of(part)).collect();
    Some(Drift {
        parent: launch.id,
        pid: launch.pid,
        label: launch.command.label(),
        children: samples.len() as u64,
        memory: memory_growth(&segments),
        segments,
    })
}

/// What one child contributes.
#[derive(Clone, Copy)]
struct Sample {
    cost_ns: f64,
    create_ns: Option<f64>,
    rss_bytes: Option<f64>,
}

/// The children's costs, made comparable: over the same phases for all, `create` without the difference between
/// mechanisms and the rest without that between programs. A script that runs `cat` first and `python3` later has not
/// become slower.
fn comparable_samples(children: &[&Launch<'_>]) -> Vec<Sample> {
    let mostly_known: Vec<Phase> = COST
        .into_iter()
        .filter(|phase| {
            let known = children
                .iter()
                .filter(|child| child.phases.get(*phase).is_some())
                .count();
            known * 10 >= children.len() * 9
        })
        .collect();
    let costs_ns = |child: &Launch<'_>| {
        let cost_ns = |phase: &Phase| child.phases.get(*phase).map(|span| span.0 as f64);
        let (create, rest): (Vec<Phase>, Vec<Phase>) = mostly_known.iter().partition(|phase| **phase == Phase::Create);
        Some((
            create.iter().map(cost_ns).sum::<Option<f64>>()?,
            rest.iter().map(cost_ns).sum::<Option<f64>>()?,
        ))
    };
    let costed: Vec<(&Launch<'_>, (f64, f64))> = children
        .iter()
        .filter_map(|child| Some((*child, costs_ns(child)?)))
        .collect();
    let create_ns = level_groups(
        costed
            .iter()
            .map(|(child, (create_ns, _))| (child.mechanism, *create_ns))
            .collect(),
    );
    let rest_ns = level_groups(
        costed
            .iter()
            .map(|(child, (_, rest_ns))| (child.command, *rest_ns))
            .collect(),
    );
    let costs_ns = create_ns
        .into_iter()
        .zip(rest_ns)
        .map(|(create_ns, rest_ns)| create_ns + rest_ns);
    let sample = |((child, _), cost_ns): (&(&Launch<'_>, _), f64)| Sample {
        cost_ns,
        create_ns: child.phases.get(Phase::Create).map(|span| span.0 as f64),
        rss_bytes: child.parent_rss_bytes.map(|bytes| bytes as f64),
    };
    costed.iter().zip(costs_ns).map(sample).collect()
}

/// Shifts the values of each group so that all groups have the same median.
fn level_groups<Key: Eq + Hash + Copy>(values: Vec<(Key, f64)>) -> Vec<f64> {
    let mut groups: HashMap<Key, Vec<f64>> = HashMap::new();
    for (key, value) in &values {
        groups.entry(*key).or_default().push(*value);
    }
    let shared = median(values.iter().map(|(_, value)| *value)).unwrap_or_default();
    let shifts: HashMap<Key, f64> = groups
        .into_iter()
        .map(|(key, group)| (key, shared - median(group).unwrap_or(shared)))
        .collect();
    values.into_iter().map(|(key, value)| value + shifts[&key]).collect()
}

fn segment_of(part: &[Sample]) -> Segment {
    Segment {
        children: part.len() as u64,
        cost: Nanos(median_cost_ns(part).max(0.0) as u64),
        create: median(part.iter().filter_map(|sample| sample.create_ns)).map(|span_ns| Nanos(span_ns as u64)),
        parent_rss_bytes: median(part.iter().filter_map(|sample| sample.rss_bytes)).map(|bytes| bytes as u64),
    }
}

/// A trend over all parts, large enough to matter, and such that hardly a late launch was as cheap as an early one.
fn became_slower(parts: &[&[Sample]]) -> bool {
    let medians_ns: Vec<f64> = parts.iter().map(|part| median_cost_ns(part)).collect();
    let (first_ns, last_ns) = (medians_ns[0].max(0.0), medians_ns[SEGMENTS - 1]);
    let costs_ns = |part: &[Sample]| part.iter().map(|sample| sample.cost_ns).collect::<Vec<f64>>();
    let early_high_ns = quantile(costs_ns(parts[0]), 0.75);
    let late_low_ns = quantile(costs_ns(parts[SEGMENTS - 1]), 0.25);
    last_ns >= first_ns * MIN_RATIO
        && last_ns - first_ns >= MIN_GROWTH_NS
        && late_low_ns > early_high_ns
        && trend(&medians_ns) >= MIN_TREND
}

/// Whether launches in random order would hardly ever rise as these do.
fn is_beyond_chance(samples: &[Sample]) -> bool {
    let picked = samples.len().min(MOST_COMPARED);
    let costs_ns: Vec<f64> = (0..picked)
        .map(|at| samples[at * samples.len() / picked].cost_ns)
        .collect();
    trend_deviations(&costs_ns) >= MIN_DEVIATIONS
}

/// The parent's memory is the cause when it grew, `create` rose with it, and that rise is at least half of the whole.
fn memory_growth(segments: &[Segment]) -> Option<MemoryGrowth> {
    let points: Option<Vec<(f64, f64)>> = segments
        .iter()
        .map(|segment| Some((segment.parent_rss_bytes? as f64, segment.create?.0 as f64)))
        .collect();
    let (rss_bytes, create_ns): (Vec<f64>, Vec<f64>) = points?.into_iter().unzip();
    let (first, last) = (segments.first()?, segments.last()?);
    let grown_bytes = last.parent_rss_bytes? as f64 - first.parent_rss_bytes? as f64;
    let ns_per_byte = theil_sen_slope(&rss_bytes, &create_ns)?;
    let explained_ns = ns_per_byte * grown_bytes;
    let is_cause = grown_bytes >= MIN_MEMORY_GROWTH_BYTES
        && kendall_tau(&rss_bytes, &create_ns) >= MIN_TREND
        && explained_ns * 2.0 >= last.cost.since(first.cost).0 as f64;
    is_cause.then_some(MemoryGrowth {
        ns_per_mb: ns_per_byte * 1e6,
        from_bytes: first.parent_rss_bytes?,
        to_bytes: last.parent_rss_bytes?,
    })
}

fn median_cost_ns(part: &[Sample]) -> f64 {
    median(part.iter().map(|sample| sample.cost_ns)).unwrap_or_default()
}
