//! The critical path in the timeline, at a level of detail that a screen can show.

use std::collections::HashMap;

use super::launches::Order;
use crate::analyze::path::critical_path::{Charge, Stretch};

/// Maximum number of parts of the path. A screen cannot show more.
const MAX_PARTS: u64 = 16_384;

/// A part of the path. Times are in nanoseconds since the recording began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The position of the row in the columns. `None` outside of all launches.
    pub(super) position: Option<u32>,
}

/// Returns the parts of the path in order. If there are too many, all parts in a span of time
/// become one, on the row with most of that time.
pub(super) fn parts(stretches: &[Stretch], order: &Order) -> Vec<Part> {
    let parts = stretches.iter().map(|stretch| Part {
        start: stretch.start.0,
        end: stretch.end.0,
        position: position(stretch.charge, order),
    });
    let mut parts: Vec<Part> = parts.collect();
    parts.sort_by_key(|part| part.start);
    let parts = join_adjacent(parts);
    let end = parts.last().map_or(0, |part| part.end);
    if parts.len() as u64 <= MAX_PARTS {
        return parts;
    }
    join_adjacent(merge_into_bins(&parts, end.div_ceil(MAX_PARTS)))
}

fn position(charge: Charge, order: &Order) -> Option<u32> {
    match charge {
        Charge::Phase(launch, _) | Charge::RunQueue(launch) => Some(order.position_of[launch as usize]),
        Charge::ExternalWait(_) => None,
    }
}

fn join_adjacent(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        match all.last_mut().filter(|last| last.position == part.position && last.end == part.start) {
            Some(last) => last.end = part.end,
            None => all.push(part),
        }
    }
    all
}

/// Divides the time into bins of this width, in nanoseconds. Each bin becomes a part on the row
/// with most of its time.
fn merge_into_bins(parts: &[Part], width: u64) -> Vec<Part> {
    let mut bins: Vec<Part> = Vec::new();
    let mut times: HashMap<Option<u32>, u64> = HashMap::new();
    let mut bin = 0;
    for part in parts {
        let mut at = part.start;
        while at < part.end {
            if at / width != bin {
                bins.extend(finish_bin(bin, width, &mut times));
                bin = at / width;
            }
            let until = part.end.min((bin + 1).saturating_mul(width));
            *times.entry(part.position).or_default() += until - at;
            at = until;
        }
    }
    bins.extend(finish_bin(bin, width, &mut times));
    bins
}

fn finish_bin(bin: u64, width: u64, times: &mut HashMap<Option<u32>, u64>) -> Option<Part> {
    let (position, _) = times.drain().max_by_key(|(position, time)| (*time, *position))?;
    Some(Part { start: bin * width, end: (bin + 1).saturating_mul(width), position })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, end: u64, position: u32) -> Part {
        Part { start, end, position: Some(position) }
    }

    #[test]
    fn a_bin_is_on_the_row_with_most_time_in_it() {
        let parts = [part(0, 4, 1), part(4, 6, 2), part(6, 11, 1), part(11, 30, 3)];
        assert_eq!(join_adjacent(merge_into_bins(&parts, 10)), [part(0, 10, 1), part(10, 30, 3)]);
    }
}
