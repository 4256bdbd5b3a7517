//! Decodes CPython's line tables up to 3.10. They consist of pairs: a byte with a length of code,
//! and a signed byte with a line difference (Objects/lnotab_notes.txt describes both formats).

use crate::wire::PYTHON_TABLE_BYTES;

/// The line difference that means, in a table of 3.10, that the code has no line.
const NO_LINE: i8 = i8::MIN;

fn pairs(table: &[u8]) -> impl Iterator<Item = (u32, i8)> {
    let (pairs, _) = table.as_chunks::<2>();
    pairs.iter().map(|[code, lines]| (u32::from(*code), lines.cast_signed()))
}

/// Returns the line of the instruction at `code_offset`, from a table of 3.9 (`co_lnotab`), in
/// which each pair says where the next line begins. Such a table does not show where the code ends.
/// Returns `None` if the table may have been truncated before the instruction.
pub(super) fn line_by_steps(table: &[u8], first_line: u32, code_offset: u32) -> Option<u32> {
    let (mut line, mut begin) = (i64::from(first_line), 0);
    for (code, lines) in pairs(table) {
        begin += code;
        if code_offset < begin {
            return valid_line(line);
        }
        line += i64::from(lines);
    }
    let is_complete = table.len() < PYTHON_TABLE_BYTES as usize;
    valid_line(line).filter(|_| is_complete)
}

/// Returns the line of the instruction at `code_offset`, from a table of 3.10 (`co_linetable`), in
/// which each pair describes a range of code; `None` if the code has no line, or if the table ends
/// before it.
pub(super) fn line_by_ranges(table: &[u8], first_line: u32, code_offset: u32) -> Option<u32> {
    let (mut line, mut end) = (i64::from(first_line), 0);
    for (code, lines) in pairs(table) {
        end += code;
        let has_line = lines != NO_LINE;
        line += if has_line { i64::from(lines) } else { 0 };
        if code_offset < end {
            return valid_line(line).filter(|_| has_line);
        }
    }
    None
}

fn valid_line(line: i64) -> Option<u32> {
    u32::try_from(line).ok().filter(|&line| line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_the_maximum_size_may_have_been_truncated() {
        let mut table = [2, 1].repeat(PYTHON_TABLE_BYTES as usize / 2);
        assert_eq!(line_by_steps(&table, 1, 11), Some(6));
        assert_eq!(line_by_steps(&table, 1, u32::MAX), None);
        table.truncate(table.len() - 2);
        assert_eq!(line_by_steps(&table, 1, u32::MAX), Some(PYTHON_TABLE_BYTES / 2));
    }

    #[test]
    fn code_of_one_line_has_an_empty_table_in_3_9() {
        assert_eq!(line_by_steps(&[], 7, 0), Some(7));
        assert_eq!(line_by_ranges(&[], 7, 0), None);
    }

    #[test]
    fn malformed_tables_give_no_line() {
        assert_eq!(line_by_steps(&[0, 0xf0, 10, 1], 3, 0), None, "a line below 1");
        assert_eq!(line_by_ranges(&[2, 0xf0], 3, 0), None);
        assert_eq!(line_by_ranges(&[2, 0x80, 2, 1], 3, 1), None, "code without a line");
        assert_eq!(line_by_ranges(&[2, 0x80, 2, 1], 3, 2), Some(4));
        assert_eq!(line_by_ranges(&[2], 3, 0), None, "half a pair");
    }
}
