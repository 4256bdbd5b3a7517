//! Finds why launches became slower: whether the parent's memory growth is the cause, and which
//! phase grew most.

use super::{COST_PHASES, MIN_TREND, Segment};
use crate::model::phases::Phase;
use spawnscope_data::statistics::{kendall_tau, theil_sen_slope};

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

/// Returns the memory growth if it is the cause: the memory grew, `create` grew with it, and
/// `PAGE_TABLE_PHASES` explain at least half of the growth of the cost.
pub(super) fn memory_growth(segments: &[Segment]) -> Option<MemoryGrowth> {
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
pub(super) fn largest_rise(segments: &[Segment]) -> Option<Rise> {
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
