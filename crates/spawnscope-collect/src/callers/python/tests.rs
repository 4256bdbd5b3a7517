//! Decodes line tables created by real interpreters, and compares with the lines that these report:
//! see the head of `linetables.txt`.

use super::*;

const TABLES: &str = include_str!("linetables.txt");

struct Table {
    name: String,
    format: u32,
    first_line: u32,
    bytes: Vec<u8>,
    /// Offsets, each with the line of the code from there to the next offset. The last offset is
    /// the end of the code.
    lines: Vec<(u32, Option<u32>)>,
}

impl Table {
    fn parse(text: &str) -> Table {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let format = match fields[0] {
            "3.9" => PYTHON_LINES_STEPS,
            "3.10" => PYTHON_LINES_RANGES,
            _ => PYTHON_LINES_LOCATIONS,
        };
        Table {
            name: fields[..2].join(" "),
            format: format.into(),
            first_line: fields[2].parse().unwrap(),
            bytes: parse_hexadecimal(fields[3]),
            lines: fields[4..].iter().map(|text| parse_line(text)).collect(),
        }
    }

    /// The tables of 3.9 do not show where the code ends.
    fn shows_end_of_code(&self) -> bool {
        self.format != u32::from(PYTHON_LINES_STEPS)
    }

    fn line(&self, bytes: &[u8], offset: u32) -> Option<u32> {
        line(self.format, bytes, self.first_line, offset)
    }
}

fn parse_hexadecimal(text: &str) -> Vec<u8> {
    let digits = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    digits.map(|digits| u8::from_str_radix(digits, 16).unwrap()).collect()
}

fn parse_line(text: &str) -> (u32, Option<u32>) {
    let (offset, line) = text.split_once(':').unwrap();
    (offset.parse().unwrap(), line.parse().ok())
}

fn tables() -> impl Iterator<Item = Table> {
    TABLES.lines().filter(|text| !text.starts_with('#')).map(Table::parse)
}

#[test]
fn every_instruction_has_the_line_that_its_interpreter_reports() {
    let tables: Vec<Table> = tables().collect();
    for version in ["3.9 ", "3.10", "3.11", "3.12", "3.13", "3.14"] {
        assert!(tables.iter().any(|table| table.name.starts_with(version)), "{version}");
    }
    for table in &tables {
        for pair in table.lines.windows(2) {
            let (from, expected) = pair[0];
            for offset in (from..pair[1].0).step_by(2) {
                let found = table.line(&table.bytes, offset);
                assert_eq!(found, expected, "{} at {offset}", table.name);
            }
        }
        let end = table.lines.last().unwrap().0;
        if table.shows_end_of_code() {
            assert_eq!(table.line(&table.bytes, end), None, "{}", table.name);
        }
    }
}

#[test]
fn a_truncated_table_gives_the_right_line_or_none() {
    for table in tables().filter(Table::shows_end_of_code) {
        for length in 0..table.bytes.len() {
            for &(offset, expected) in &table.lines {
                let found = table.line(&table.bytes[..length], offset);
                assert!(found.is_none() || found == expected, "{} of {length} at {offset}", table.name);
            }
        }
    }
}

#[test]
fn an_unknown_format_gives_no_line() {
    assert_eq!(line(3, &[2, 1, 2, 1], 1, 0), None);
    assert_eq!(line(u32::MAX, &[2, 1, 2, 1], 1, 0), None);
}
