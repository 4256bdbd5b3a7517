//! Detects whether launch tax of several launches overlaps in time.

use super::launch::Launch;
use super::phases::{Phase, pieces};
use super::tree::Forest;
use spawnscope_data::event::Nanos;

/// A child overlaps the wait of its parent slightly: an overlap below this share of the tax is normal.
const MIN_SHARE: f64 = 0.05;

/// Whether the summed tax of all launches is clearly longer than the time in which any tax occurred.
pub(super) fn tax_overlaps(forest: &Forest<'_>) -> bool {
    let launches = forest.launches.iter().filter(|launch| launch.is_launch());
    let mut spans: Vec<(Nanos, Nanos)> = launches.flat_map(|launch| tax_spans(launch, forest.end)).collect();
    spans.sort_unstable();
    let (mut sum_ns, mut covered_ns, mut latest) = (0, 0, Nanos(0));
    for (start, end) in spans {
        sum_ns += end.since(start).0;
        covered_ns += end.since(start.max(latest)).0;
        latest = latest.max(end);
    }
    (sum_ns - covered_ns) as f64 > MIN_SHARE * sum_ns as f64
}

/// Returns the intervals of a launch outside of `run`.
fn tax_spans(launch: &Launch<'_>, recording_end: Nanos) -> Vec<(Nanos, Nanos)> {
    let unfinished = launch.is_unfinished().then_some(recording_end);
    let pieces = pieces(launch.origin, &launch.instants, &launch.execs, unfinished);
    let is_tax = |piece: &&super::phases::Piece| piece.phase != Phase::Run && piece.end > piece.start;
    let mut spans: Vec<(Nanos, Nanos)> = Vec::with_capacity(2);
    for piece in pieces.iter().filter(is_tax) {
        match spans.last_mut() {
            Some((_, end)) if *end == piece.start => *end = piece.end,
            _ => spans.push((piece.start, piece.end)),
        }
    }
    spans
}
