//! Savings in words: as a share of the wall time and in time, each with its interval.

use super::units;
use crate::event::Nanos;

/// Share of the wall below which the overhead of recording is not mentioned.
const MIN_OVERHEAD_SHARE: f64 = 0.005;

/// Says what savings are shares of. Without visible overhead, that is the wall time above.
pub(super) fn legend(wall: Nanos, unrecorded: Nanos) -> String {
    let of = format!("; 100 % is {}, the run without recording", units::time(unrecorded));
    let is_other = units::time(unrecorded) != units::time(wall);
    format!("predicted, with 95 % intervals{}", if is_other { &of } else { "" })
}

/// Formats a saving as a share of the wall time, and in time: `39.1 %, 76.0 ms (60.1 to 91.9)`. If
/// it may be nothing, the most is what is known.
pub fn share_and_amount(saving @ [expected, low, high]: [Nanos; 3], unrecorded: Nanos) -> String {
    let share = units::percent(expected, unrecorded);
    match saving {
        [Nanos(0), ..] => format!("up to {}, {}", units::percent(high, unrecorded), units::time(high)),
        [_, Nanos(0), _] => format!("about {share}, {} (at most {})", units::time(expected), units::time(high)),
        _ => {
            let (time, interval) = (units::time(expected), units::interval(low, high));
            // Three figures with the same unit have it once.
            let unit = time.split_once(' ').map_or("", |(_, unit)| unit);
            let figures = interval.strip_suffix(unit).map(str::trim_end);
            let interval = figures.filter(|figures| figures.matches(' ').count() == 2).unwrap_or(&interval);
            format!("{share}, {time} ({interval})")
        }
    }
}

/// Returns the name of the wall that savings are a share of: the wall without the overhead of
/// recording.
pub(super) fn wall_name(wall: Nanos, unrecorded: Nanos) -> &'static str {
    if has_visible_overhead(wall, unrecorded) { "the wall time without recording overhead" } else { "the wall time" }
}

pub(super) fn has_visible_overhead(wall: Nanos, unrecorded: Nanos) -> bool {
    wall.since(unrecorded).0 as f64 >= MIN_OVERHEAD_SHARE * wall.0 as f64
}
