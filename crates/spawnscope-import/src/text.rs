//! Small operations on bytes that the parsers of lines need.

use spawnscope_data::event::Nanos;

pub const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;
/// A time that differs by more from the one before does not belong to the log: its line is torn.
pub const MAX_STEP_NS: u64 = 30 * DAY_NS;

/// Returns the position of `wanted`.
pub fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == first) {
        if text[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Returns what follows `wanted`.
pub fn after<'t>(text: &'t [u8], wanted: &[u8]) -> Option<&'t [u8]> {
    find(text, wanted).map(|at| &text[at + wanted.len()..])
}

pub fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| **byte == b' ').count();
    &text[spaces..]
}

/// Returns the decimal number at the beginning, and what follows. `None` if there is none, or if it
/// is too large.
pub fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..digits]
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
    (digits > 0).then_some((value, &text[digits..]))
}

/// Returns the decimal or hexadecimal number at the beginning, with its sign. Hexadecimal numbers
/// may have all 64 bits.
pub fn integer(text: &[u8]) -> Option<i64> {
    if let Some(digits) = text.strip_prefix(b"0x") {
        let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let digits = std::str::from_utf8(&digits[..length]).ok()?;
        return u64::from_str_radix(digits, 16).ok().map(u64::cast_signed);
    }
    let (digits, sign) = text.strip_prefix(b"-").map_or((text, 1), |digits| (digits, -1));
    let (value, _) = number(digits)?;
    i64::try_from(value).ok().map(|value| sign * value)
}

/// Divides a text at the first of these bytes, which is in neither part.
pub fn split_at_any<'t>(text: &'t [u8], bytes: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let at = text.iter().position(|byte| bytes.contains(byte))?;
    Some((&text[..at], &text[at + 1..]))
}

/// Returns the nanoseconds of a fraction of a second, with its point, and what follows. Without a
/// point, zero.
pub fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let Some(digits) = text.strip_prefix(b".") else {
        return Some((0, text));
    };
    let (value, after) = number(digits)?;
    let missing = 9_usize.checked_sub(digits.len() - after.len())?;
    Some((value * 10_u64.pow(missing as u32), after))
}

/// Returns the nanoseconds since 1970 of a time such as `2026-11-28T08:00:00.123456789`, and what
/// follows. `separator` is between the day and the hour.
pub fn instant(text: &[u8], separator: u8) -> Option<(Nanos, &[u8])> {
    let mut rest = text;
    let mut parts = [0_u64; 6];
    for (part, end) in parts.iter_mut().zip([&b"-"[..], b"-", &[separator], b":", b":", b""]) {
        let (value, after) = number(rest)?;
        (*part, rest) = (value, after.strip_prefix(end)?);
    }
    let [year, month, day, hour, minute, second] = parts;
    let (fraction, after) = fraction(rest)?;
    let is_valid = (1970..2262).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Years begin in March, so that a leap day is the last one.
    let (year, month) = if month < 3 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some((Nanos(seconds * 1_000_000_000 + fraction), after))
}
