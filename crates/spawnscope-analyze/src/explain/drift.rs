//! Finds parents whose launches become slower over time, and divides the launches of each into ten
//! segments. Thresholds are strict, because a missed drift is better than a false alarm. Costs are
//! made comparable before: a script that runs `cat` first and `python3` later has not become
//! slower, and a program that switches from vfork to fork has not, either. The reason may be the
//! growth of the parent's memory; otherwise it is shown by the phase that grew most.

use std::collections::HashMap;
use std::hash::Hash;

use crate::model::launch::Launch;
use crate::model::phases::Phase;
use crate::model::tree::Forest;
use spawnscope_data::event::{LaunchId, Nanos, Pid};
use spawnscope_data::statistics::{kendall_tau, median, quantile, theil_sen_slope, trend, trend_deviations};

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
/// Minimum growth of the parent's resident set. Smaller changes are normal fluctuation of the
/// allocator.
const MIN_MEMORY_GROWTH_BYTES: f64 = 4e6;
/// The phases that include the cost of page tables: `fork` copies them, and the exec or exit of the
/// child frees the copy.
const PAGE_TABLE_PHASES: [Phase; 3] = [Phase::Create, Phase::Exec, Phase::Teardown];
/// Minimum share of `create` in the growth of `PAGE_TABLE_PHASES`. Copying page tables costs about
/// as much as freeing them. If the share is smaller, something else slowed the other phases, such
/// as a permission scanner in `exec`.
const MIN_CREATE_SHARE: f64 = 0.2;

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

/// Growth of the parent's memory that made its launches more expensive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryGrowth {
    /// Growth of the launch cost, in nanoseconds per megabyte (1,000,000 bytes) of the parent's
    /// resident set.
    pub ns_per_mb: f64,
    /// The parent's resident set in the first segment.
    pub from_bytes: u64,
    /// The parent's resident set in the last segment.
    pub to_bytes: u64,
}

/// The phase that grew more than any other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rise {
    pub phase: Phase,
    /// The phase's share of the growth of the total cost. Above 1 if other phases became shorter.
    pub share: f64,
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
    let samples = comparable(&children);
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
        memory: memory_growth(&segments),
        rise: largest_rise(&segments),
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
        let spans_ns = corrected_phase(samples, phase);
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

/// A launch with a comparable cost.
struct Sample<'f> {
    launch: &'f Launch<'f>,
    /// The cost of the launch, corrected for its program and mechanism.
    cost_ns: f64,
}

/// Returns the children with a known cost. All costs are sums over the same phases.
fn comparable<'f>(children: &[&'f Launch<'f>]) -> Vec<Sample<'f>> {
    let (create, rest): (Vec<Phase>, Vec<Phase>) = COST_PHASES
        .into_iter()
        .filter(|phase| is_mostly_known(children, *phase))
        .partition(|phase| *phase == Phase::Create);
    let costed: Vec<(&Launch<'_>, f64, f64)> =
        children.iter().filter_map(|child| Some((*child, sum_ns(child, &create)?, sum_ns(child, &rest)?))).collect();
    let create = equalize_medians(costed.iter().map(|(child, create_ns, _)| (child.mechanism, Some(*create_ns))));
    let rest = equalize_medians(costed.iter().map(|(child, _, rest_ns)| (*child.command, Some(*rest_ns))));
    let costs = create.into_iter().zip(rest).zip(costed);
    costs.filter_map(|((create, rest), (launch, ..))| Some(Sample { launch, cost_ns: create? + rest? })).collect()
}

/// Whether a phase is known for at least nine of ten children.
fn is_mostly_known(children: &[&Launch<'_>], phase: Phase) -> bool {
    let known = children.iter().filter(|child| child.phases.get(phase).is_some());
    known.count() * 10 >= children.len() * 9
}

/// Returns the sum of phases. `None` when one of them is unknown.
fn sum_ns(child: &Launch<'_>, phases: &[Phase]) -> Option<f64> {
    phases.iter().map(|phase| Some(child.phases.get(*phase)?.0 as f64)).sum()
}

/// Returns the corrected duration of one phase of each sample. `None` if it is unknown.
fn corrected_phase(samples: &[Sample<'_>], phase: Phase) -> Vec<Option<f64>> {
    let spans_ns = samples.iter().map(|sample| {
        let span_ns = sample.launch.phases.get(phase).map(|span| span.0 as f64);
        (sample.launch, span_ns)
    });
    match phase {
        Phase::Create => equalize_medians(spans_ns.map(|(launch, span_ns)| (launch.mechanism, span_ns))),
        _ => equalize_medians(spans_ns.map(|(launch, span_ns)| (*launch.command, span_ns))),
    }
}

/// Shifts the values of each group so that all groups have the same median.
fn equalize_medians<Key: Eq + Hash>(values: impl Iterator<Item = (Key, Option<f64>)> + Clone) -> Vec<Option<f64>> {
    let known = values.clone().filter_map(|(key, value)| Some((key, value?)));
    let overall = median(known.clone().map(|(_, value)| value)).unwrap_or_default();
    let mut groups: HashMap<Key, Vec<f64>> = HashMap::new();
    known.for_each(|(key, value)| groups.entry(key).or_default().push(value));
    let shift = |group| overall - median(group).unwrap_or(overall);
    let shifts: HashMap<Key, f64> = groups.into_iter().map(|(key, group)| (key, shift(group))).collect();
    values.map(|(key, value)| Some(value? + shifts[&key])).collect()
}

/// Returns the memory growth if it is the cause: the memory grew, `create` grew with it, and
/// `PAGE_TABLE_PHASES` explain at least half of the growth of the cost.
fn memory_growth(segments: &[Segment]) -> Option<MemoryGrowth> {
    let (first, last) = (segments.first()?, segments.last()?);
    let (from_bytes, to_bytes) = (first.parent_rss_bytes?, last.parent_rss_bytes?);
    let grown_bytes = to_bytes as f64 - from_bytes as f64;
    let rss_bytes = values(segments, |segment| Some(segment.parent_rss_bytes? as f64))?;
    let create_ns = values(segments, |segment| span_ns(segment, Phase::Create))?;
    let cost_ns = values(segments, |segment| Some(segment.cost.0 as f64))?;
    let page_tables_ns = values(segments, |segment| {
        let spans_ns = PAGE_TABLE_PHASES.into_iter().filter_map(|phase| span_ns(segment, phase));
        Some(spans_ns.sum())
    })?;
    let create_slope = theil_sen_slope(&rss_bytes, &create_ns)?;
    let page_table_slope = theil_sen_slope(&rss_bytes, &page_tables_ns)?;
    let is_cause = grown_bytes >= MIN_MEMORY_GROWTH_BYTES
        && kendall_tau(&rss_bytes, &create_ns) >= MIN_TREND
        && create_slope >= MIN_CREATE_SHARE * page_table_slope
        && page_table_slope * grown_bytes * 2.0 >= last.cost.since(first.cost).0 as f64;
    let cost_slope = theil_sen_slope(&rss_bytes, &cost_ns)?;
    is_cause.then_some(MemoryGrowth { ns_per_mb: cost_slope * 1e6, from_bytes, to_bytes })
}

/// Returns the phase that grew most from the first to the last segment. `None` if no phase with
/// known times grew.
fn largest_rise(segments: &[Segment]) -> Option<Rise> {
    let (first, last) = (segments.first()?, segments.last()?);
    let risen = COST_PHASES.into_iter().filter_map(|phase| {
        let rise_ns = last.phase(phase)?.since(first.phase(phase)?).0;
        Some((phase, rise_ns)).filter(|_| rise_ns > 0)
    });
    let (phase, rise_ns) = risen.max_by_key(|(_, rise_ns)| *rise_ns)?;
    let total_ns = last.cost.since(first.cost).0.max(1);
    Some(Rise { phase, share: rise_ns as f64 / total_ns as f64 })
}

fn span_ns(segment: &Segment, phase: Phase) -> Option<f64> {
    segment.phase(phase).map(|span| span.0 as f64)
}

/// Returns one value per segment. `None` when any value is unknown.
fn values(segments: &[Segment], value: impl Fn(&Segment) -> Option<f64>) -> Option<Vec<f64>> {
    segments.iter().map(value).collect()
}
