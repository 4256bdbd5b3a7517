//! The forms of headlines, and the computation of their figures.

use crate::lab::harness::Estimate;
use crate::lab::outcome::Unit;
use crate::present::lab::values::{figure, format_estimate, mark};
use crate::units;

/// A ratio that differs from 1 by less than this is given as `about as long`.
const ALMOST_EQUAL: f64 = 0.05;

/// A sentence in three parts. The second is the figure.
#[derive(Debug, PartialEq)]
pub(in crate::present::lab) struct Headline {
    pub(in crate::present::lab) before: String,
    pub(in crate::present::lab) figure: String,
    pub(in crate::present::lab) after: String,
}

/// Formats `BEFORE 38 times as long AFTER (A against B)`. Returns `None` if both are the same case.
pub(super) fn times(before: &str, after: &str, pair: [&Estimate; 2]) -> Option<Headline> {
    let [slow, base] = pair;
    times_by(&quotient(slow, base)?, before, after, pair)
}

/// Like `times`, with a ratio that the lab has computed in each round.
pub(super) fn times_by(ratio: &Estimate, before: &str, after: &str, pair: [&Estimate; 2]) -> Option<Headline> {
    let [slow, base] = pair;
    let figure = match ratio.low <= 1.0 && ratio.high >= 1.0 {
        _ if std::ptr::eq(slow, base) => return None,
        true => "as long, within the noise,".to_owned(),
        false if (ratio.median - 1.0).abs() < ALMOST_EQUAL => "about as long".to_owned(),
        false => format!("{}{} times as long", mark(ratio), format_factor(ratio.median)),
    };
    let [slow, base] = pair.map(|estimate| format_estimate(estimate, Unit::Nanos));
    Some(Headline { before: before.to_owned(), figure, after: format!("{after} ({slow} against {base})") })
}

/// Formats `BEFORE 92 us AFTER on average (A with 0, B with 300)`: the mean cost per unit between the ends of a series.
pub(super) fn cost_per_unit(
    before: &str,
    after: &str,
    [(few, first), (many, last)]: [(f64, &Estimate); 2],
) -> Headline {
    let differences = [last.median - first.median, last.low - first.high, last.high - first.low];
    let [median, low, high] = differences.map(|difference| difference / (many - few));
    let cost = Estimate { median, low, high, rounds: first.rounds.min(last.rounds) };
    let shown = if cost.low <= 0.0 {
        "nothing beyond the noise".to_owned()
    } else {
        format!("{}{}", mark(&cost), figure(cost.median, Unit::Nanos))
    };
    let [first, last] = [first, last].map(|estimate| format_estimate(estimate, Unit::Nanos));
    Headline {
        before: before.to_owned(),
        figure: shown,
        after: format!("{after} on average ({first} with {few}, {last} with {many})"),
    }
}

/// Formats a factor with two digits or more.
fn format_factor(value: f64) -> String {
    match value {
        _ if value < 0.995 => format!("{value:.2}"),
        _ if value < 9.95 => format!("{value:.1}"),
        _ => units::count(value.round() as u64),
    }
}

/// Divides two measurements. The interval covers all quotients of their intervals. `None` if the divisor may be zero.
fn quotient(one: &Estimate, other: &Estimate) -> Option<Estimate> {
    (other.low > 0.0).then(|| Estimate {
        median: one.median / other.median,
        low: one.low / other.high,
        high: one.high / other.low,
        rounds: one.rounds.min(other.rounds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(median: f64, half: f64) -> Estimate {
        Estimate { median, low: median - half, high: median + half, rounds: 6 }
    }

    fn factor_of(slow: &Estimate, base: &Estimate) -> String {
        times("", "", [slow, base]).unwrap().figure
    }

    #[test]
    fn a_ratio_is_given_only_if_it_is_beyond_the_noise() {
        let base = estimate(1000.0, 10.0);
        for (median, half, expected) in [
            (38_000.0, 100.0, "38 times as long"),
            (2_000.0, 500.0, "~2.0 times as long"),
            (1_040.0, 5.0, "about as long"),
            (1_500.0, 600.0, "as long, within the noise,"),
            (500.0, 10.0, "0.50 times as long"),
            (1_398_000.0, 10.0, "1,398 times as long"),
        ] {
            assert_eq!(factor_of(&estimate(median, half), &base), expected);
        }
        assert_eq!(times("", "", [&base, &estimate(10.0, 10.0)]), None, "divided by zero");
        assert_eq!(times("", "", [&base, &base]), None, "compared with itself");
    }

    #[test]
    fn a_cost_per_unit_is_given_only_if_it_is_beyond_the_noise() {
        for (median, expected) in [(21_000.0, "2.00 us"), (1_100.0, "nothing beyond the noise")] {
            let ends = [(0.0, &estimate(1_000.0, 100.0)), (10.0, &estimate(median, 100.0))];
            assert_eq!(cost_per_unit("", "", ends).figure, expected);
        }
    }
}
