//! CPython's tables of lines (`co_linetable`, since 3.11; InternalDocs/code_objects.md describes them): which line each
//! instruction comes from.
//!
//! An entry begins with the only one of its bytes whose highest bit is set: 1, then four bits of kind, then three of how
//! many code units (of two bytes) it is for, less one. The line goes on from that of the entry before.

/// Kinds 0 to 9 stay on the line, 10 to 12 are as many lines on as they are more than 10.
const SAME_LINE: std::ops::RangeInclusive<u8> = 0..=9;
const NEXT_LINES: std::ops::RangeInclusive<u8> = 10..=12;
/// A line without columns, and one with all there is: both begin with a signed difference.
const DIFFERENCE: std::ops::RangeInclusive<u8> = 13..=14;
const CODE_UNIT_BYTES: u32 = 2;

/// The line of the instruction at `code_offset`, in bytes. `None`: it has none, or the table ends before it. A table
/// may be cut anywhere.
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

/// How many lines an entry goes on; `rest` is what follows its first byte.
fn difference(kind: u8, rest: &[u8]) -> Option<i64> {
    if DIFFERENCE.contains(&kind) {
        return signed(rest);
    }
    let next_lines = NEXT_LINES.contains(&kind);
    Some(if next_lines { i64::from(kind - 10) } else { 0 })
}

/// Six bits a byte, the lowest first, with bit 6 set in all but the last; the lowest bit of all is the sign.
fn signed(bytes: &[u8]) -> Option<i64> {
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
    fn nonsense_gives_no_line() {
        assert_eq!(line(&[], 1, 0), None);
        assert_eq!(line(&[0x05, 0x41], 1, 0), None, "no entry begins");
        assert_eq!(
            line(&[0xe8, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f], 1, 0),
            None,
            "a number without end"
        );
        assert_eq!(line(&[0xe8, 0x0b], 3, 0), None, "five lines before the third");
        assert_eq!(line(&[0x87, 0x00], u32::MAX, 0), Some(u32::MAX));
    }
}
