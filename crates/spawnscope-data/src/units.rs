//! Formats numbers for sentences and tables. Values with a unit have three significant digits, with
//! two exceptions: from 1000 of the largest unit on, they have all digits, and in the smallest
//! unit, they are integers. One megabyte is 1,000,000 bytes.

use crate::event::Nanos;

/// Units of time with their length in nanoseconds, the largest first.
const TIME_UNITS: [(&str, f64); 4] = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
/// Spans of at least this length are shown in hours, so that seconds have at most four digits.
const MIN_HOURS_SPAN: Nanos = Nanos(9_999_500_000_000);
/// Units of memory with their length in bytes, the largest first.
const BYTE_UNITS: [(&str, f64); 4] = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0)];

/// Formats a span of time, such as `1.23 s`, `45.6 ms` or `2.78 h`; `-` if it is unknown.
pub fn time(span: impl Into<Option<Nanos>>) -> String {
    match span.into() {
        None => "-".to_owned(),
        Some(span) if span >= MIN_HOURS_SPAN => scaled(span.0 as f64, &[("h", 3_600e9)]),
        Some(span) => scaled(span.0 as f64, &TIME_UNITS),
    }
}

/// Formats the ends of an interval, with one unit if both have the same: `107 to 157 ms`.
pub fn interval(low: Nanos, high: Nanos) -> String {
    let (low, high) = (time(low), time(high));
    let (figure, unit) = low.rsplit_once(' ').unwrap_or((&low, ""));
    let low = if high.rsplit_once(' ').is_some_and(|(_, other)| other == unit) { figure } else { &low };
    format!("{low} to {high}")
}

/// Formats an amount of memory, such as `512 MB`.
pub fn bytes(amount: u64) -> String {
    scaled(amount as f64, &BYTE_UNITS)
}

/// Formats a part of a whole, such as `17.1 %`; `-` if either is unknown or the whole is zero.
pub fn percent(part: impl Into<Option<Nanos>>, whole: impl Into<Option<Nanos>>) -> String {
    match (part.into(), whole.into()) {
        (Some(part), Some(whole)) if whole.0 > 0 => format!("{:.1} %", 100.0 * part.0 as f64 / whole.0 as f64),
        _ => "-".to_owned(),
    }
}

/// Formats a relative difference, such as `+1.2 %`. A difference that rounds to zero is `+0.0 %`,
/// never `-0.0 %`.
pub fn signed_percent(share: f64) -> String {
    // Negative zero plus zero is zero.
    let tenths = (1000.0 * share).round() + 0.0;
    format!("{:+.1} %", tenths / 10.0)
}

pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with its noun in the singular or plural: `1 launch`, `2 launches`.
pub fn counted(number: u64, singular: &str, plural: &str) -> String {
    format!("{} {}", count(number), if number == 1 { singular } else { plural })
}

/// Formats a value in the largest unit in which it is at least 1, with the digits that the module
/// describes.
fn scaled(value: f64, units: &[(&str, f64)]) -> String {
    // 999.6 of a unit would be rounded to 1000, so it is shown as 1.00 of the next unit.
    let largest = units.iter().find(|(_, length)| value / length >= 0.9995);
    let (unit, length) = *largest.unwrap_or(&units[units.len() - 1]);
    let scaled = value / length;
    match scaled {
        _ if length == 1.0 => format!("{value} {unit}"),
        _ if scaled >= 999.5 => format!("{} {unit}", count(scaled.round() as u64)),
        _ if scaled >= 99.95 => format!("{scaled:.0} {unit}"),
        _ if scaled >= 9.995 => format!("{scaled:.1} {unit}"),
        _ => format!("{scaled:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_rounds_to_zero_has_no_minus_sign() {
        assert_eq!(signed_percent(-0.000_4), "+0.0 %");
        assert_eq!(signed_percent(-0.012), "-1.2 %");
        assert_eq!(signed_percent(0.034), "+3.4 %");
    }

    #[test]
    fn times_have_three_digits_in_the_largest_unit_that_fits() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (7_800, "7.80 us"),
            (45_600_000, "45.6 ms"),
            (999_499_999, "999 ms"),
            (999_999_999, "1.00 s"),
            (1_230_000_000, "1.23 s"),
            (99_960_000_000, "100 s"),
            (1_234_000_000_000, "1,234 s"),
            (9_999_400_000_000, "9,999 s"),
            (9_999_500_000_000, "2.78 h"),
            (4_000_000_000_000_000, "1,111 h"),
        ];
        for (span_ns, text) in cases {
            assert_eq!(time(Nanos(span_ns)), text);
        }
        assert_eq!(time(None), "-");
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_share_of_nothing_is_unknown() {
        assert_eq!(percent(Nanos(1), Nanos(0)), "-");
        assert_eq!(percent(None, Nanos(5)), "-");
        assert_eq!(percent(Nanos(171), Nanos(1000)), "17.1 %");
    }
}
