//! The data of the page: columns of numbers and strings, compressed, as text that is safe inside an
//! HTML element.
//!
//! Unpacked: the length of the header (4 bytes, little endian), the header (JSON), then the
//! columns. A column is a sequence of LEB128 numbers, and the header has its position: `"columns":
//! {NAME: [offset, length in bytes, count, is_delta]}`. In a delta column, each number is the
//! zigzag-encoded difference from the previous number. The strings are a column of lengths in bytes
//! and a column of UTF-8.

use std::collections::HashMap;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Value, json};

/// Columns under construction.
#[derive(Default)]
pub(super) struct Pack {
    columns: Map<String, Value>,
    bytes: Vec<u8>,
    texts: Texts,
}

impl Pack {
    pub(super) fn add_plain(&mut self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        let (start, mut count) = (self.bytes.len(), 0u64);
        for number in numbers {
            push_varint(&mut self.bytes, number);
            count += 1;
        }
        self.add_column(name, start, count, false);
    }

    /// Adds a column of numbers as differences. It is smaller if each number is close to the
    /// previous one.
    pub(super) fn add_deltas(&mut self, name: &str, numbers: impl IntoIterator<Item = u64>) {
        let (start, mut count, mut previous) = (self.bytes.len(), 0u64, 0u64);
        for number in numbers {
            push_varint(&mut self.bytes, zigzag(number.wrapping_sub(previous).cast_signed()));
            previous = number;
            count += 1;
        }
        self.add_column(name, start, count, true);
    }

    /// Returns the number of a string, and adds the string if it is new. The empty string has the
    /// number 0.
    pub(super) fn text(&mut self, text: &str) -> u64 {
        self.texts.number_of(text)
    }

    /// Compresses the header and the columns, and encodes them as Base64.
    pub(super) fn finish(mut self, mut header: Map<String, Value>) -> io::Result<String> {
        let texts = std::mem::take(&mut self.texts);
        self.add_plain("text_lengths", texts.lengths.iter().copied());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&texts.bytes);
        self.add_column("text_bytes", start, texts.bytes.len() as u64, false);
        header.insert("columns".into(), Value::Object(self.columns));
        let header = Value::Object(header).to_string();
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(7));
        encoder.write_all(&(header.len() as u32).to_le_bytes())?;
        encoder.write_all(header.as_bytes())?;
        encoder.write_all(&self.bytes)?;
        Ok(STANDARD.encode(encoder.finish()?))
    }

    fn add_column(&mut self, name: &str, start: usize, count: u64, is_delta: bool) {
        let entry = json!([start, self.bytes.len() - start, count, u8::from(is_delta)]);
        self.columns.insert(name.to_owned(), entry);
    }
}

struct Texts {
    numbers: HashMap<String, u64>,
    lengths: Vec<u64>,
    bytes: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts { numbers: HashMap::from([(String::new(), 0)]), lengths: vec![0], bytes: Vec::new() }
    }
}

impl Texts {
    fn number_of(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.lengths.len() as u64;
        self.lengths.push(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

pub(in crate::present) fn push_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Maps small numbers of both signs to small numbers.
pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn the_header_has_the_positions_of_columns() {
        let mut pack = Pack::default();
        pack.add_plain("counts", [0, 127, 128, u64::MAX]);
        pack.add_deltas("times", [1000, 1001, 900]);
        assert_eq!([pack.text("a"), pack.text(""), pack.text("é"), pack.text("a")], [1, 0, 2, 1]);
        let packed = pack.finish(Map::from_iter([("wall".to_owned(), json!(5))])).unwrap();
        let mut bytes = Vec::new();
        let compressed = STANDARD.decode(packed).unwrap();
        ZlibDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
        assert_eq!(header["wall"], 5);
        assert_eq!(header["columns"]["counts"], json!([0, 14, 4, 0]));
        assert_eq!(header["columns"]["times"], json!([14, 5, 3, 1]));
        let columns = &bytes[4 + length..];
        assert_eq!(columns[..4], [0, 127, 0x80, 1]);
        assert_eq!(columns[14..19], [0xd0, 0x0f, 2, 0xc9, 1]);
        assert!(columns.ends_with("aé".as_bytes()));
    }
}
