//! Decodes CPython's line tables (`co_linetable`, since 3.11; described in
//! InternalDocs/code_objects.md): the line of each instruction.
//!
//! The first byte of an entry, and no other byte, has its highest bit set. The next four bits are
//! the kind, the last three the number of code units (of two bytes) that the entry covers, minus
//! one. The line of an entry is relative to that of the previous entry.

/// Kinds of entries on the same line as the previous entry.
const SAME_LINE: std::ops::RangeInclusive<u8> = 0..=9;
/// Kinds of entries that advance by zero to two lines: the kind minus 10.
const NEXT_LINES: std::ops::RangeInclusive<u8> = 10..=12;
/// Kinds of entries without columns (13) and with all fields (14). Both contain a signed line
/// difference after the first byte.
const DIFFERENCE: std::ops::RangeInclusive<u8> = 13..=14;
const CODE_UNIT_BYTES: u32 = 2;

/// Returns the line of the instruction at `code_offset`, in bytes; `None` if it has no line, or if
/// the table ends before it. The table may be truncated anywhere.
pub(super) fn line(table: &[u8], first_line: u32, code_offset: u32) -> Option<u32> {
    let mut line = i64::from(first_line);
    let mut end: u32 = 0;
    let starts = table.iter().enumerate().filter(|(_, byte)| **byte & 0x80 != 0);
    for (start, head) in starts {
        let kind = head >> 3 & 0x0f;
        line += difference(kind, table.get(start + 1..)?)?;
        end = end.checked_add((u32::from(head & 7) + 1) * CODE_UNIT_BYTES)?;
        if code_offset < end {
            let has_line = SAME_LINE.contains(&kind) || NEXT_LINES.contains(&kind) || DIFFERENCE.contains(&kind);
            return u32::try_from(line).ok().filter(|&line| has_line && line > 0);
        }
    }
    None
}

/// Returns the number of lines by which an entry advances. `rest` begins after the first byte of
/// the entry.
fn difference(kind: u8, rest: &[u8]) -> Option<i64> {
    if DIFFERENCE.contains(&kind) {
        return decode_signed(rest);
    }
    let next_lines = NEXT_LINES.contains(&kind);
    Some(if next_lines { i64::from(kind - 10) } else { 0 })
}

/// Decodes a signed number: six bits per byte, the lowest first, with bit 6 set in all bytes but
/// the last. The lowest bit of the value is the sign.
fn decode_signed(bytes: &[u8]) -> Option<i64> {
    let mut value: i64 = 0;
    for (byte, shift) in bytes.iter().zip((0..32).step_by(6)) {
        value |= i64::from(byte & 0x3f) << shift;
        if byte & 0x40 == 0 {
            let amount = value >> 1;
            return Some(if value & 1 == 0 { amount } else { -amount });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_tables_give_no_line() {
        assert_eq!(line(&[], 1, 0), None);
        assert_eq!(line(&[0x05, 0x41], 1, 0), None, "the first byte does not begin an entry");
        assert_eq!(line(&[0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f], 1, 0), None, "an unterminated number");
        assert_eq!(line(&[0xe8, 0x0b], 3, 0), None, "five lines before line 3");
        assert_eq!(line(&[0x87, 0x00], u32::MAX, 0), Some(u32::MAX));
    }
}
