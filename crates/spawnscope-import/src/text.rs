//! Small operations on bytes that the parsers of lines need.

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
