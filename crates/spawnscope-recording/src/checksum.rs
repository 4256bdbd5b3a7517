//! The checksums of a recording's rows. `schema.sql` documents them for other programs. The writer
//! maintains the sums (`sums`), and the reader compares them.
//!
//! A row's checksum is the XXH3-64 of its rowid and its values in column order, each with one byte
//! for its type. A table's checksum is the sum of its rows' checksums modulo 2^64. The order of
//! rows does not matter, so for a changed row, the old checksum is subtracted and the new one
//! added. The sums are updated in the same transaction as the rows, so they are correct after every
//! batch.

use rusqlite::types::ValueRef;
use twox_hash::XxHash3_64;

/// Hashes rows with a reused buffer.
#[derive(Debug, Default)]
pub(super) struct RowHasher {
    bytes: Vec<u8>,
}

impl RowHasher {
    pub(super) fn hash(&mut self, rowid: i64, values: &[ValueRef<'_>]) -> u64 {
        self.bytes.clear();
        self.bytes.extend_from_slice(&rowid.to_le_bytes());
        for value in values {
            self.append(*value);
        }
        XxHash3_64::oneshot(&self.bytes)
    }

    fn append(&mut self, value: ValueRef<'_>) {
        match value {
            ValueRef::Null => self.bytes.push(0),
            ValueRef::Integer(value) => self.append_fixed(1, value.cast_unsigned()),
            ValueRef::Real(value) => self.append_fixed(2, value.to_bits()),
            ValueRef::Text(text) => self.append_bytes(3, text),
            ValueRef::Blob(blob) => self.append_bytes(4, blob),
        }
    }

    fn append_fixed(&mut self, kind: u8, bits: u64) {
        let mut value = [kind; 9];
        value[1..].copy_from_slice(&bits.to_le_bytes());
        self.bytes.extend_from_slice(&value);
    }

    fn append_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.append_fixed(kind, bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TableSum {
    pub(super) rows: u64,
    pub(super) sum: u64,
}

impl TableSum {
    pub(super) fn add(&mut self, row: u64) {
        self.rows = self.rows.wrapping_add(1);
        self.sum = self.sum.wrapping_add(row);
    }

    pub(super) fn replace(&mut self, old: u64, new: u64) {
        self.sum = self.sum.wrapping_sub(old).wrapping_add(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_rows_have_different_checksums() {
        let mut hasher = RowHasher::default();
        let rows: [(i64, &[ValueRef<'_>]); 9] = [
            (1, &[ValueRef::Integer(1), ValueRef::Null]),
            (2, &[ValueRef::Integer(1), ValueRef::Null]),
            (1, &[ValueRef::Null, ValueRef::Integer(1)]),
            (1, &[ValueRef::Real(1.0), ValueRef::Null]),
            (1, &[ValueRef::Text(b"ab"), ValueRef::Text(b"c")]),
            (1, &[ValueRef::Text(b"a"), ValueRef::Text(b"bc")]),
            (1, &[ValueRef::Blob(b"a"), ValueRef::Text(b"bc")]),
            (1, &[ValueRef::Integer(1)]),
            (1, &[]),
        ];
        let mut checksums: Vec<u64> = rows.iter().map(|(rowid, values)| hasher.hash(*rowid, values)).collect();
        checksums.sort_unstable();
        checksums.dedup();
        assert_eq!(checksums.len(), rows.len());
    }

    /// The checksums must never change, because other programs compute them, too.
    #[test]
    fn the_checksum_of_a_row_is_as_documented() {
        let mut expected = 7i64.to_le_bytes().to_vec();
        expected.extend([0, 1]);
        expected.extend((-2i64).to_le_bytes());
        expected.push(4);
        expected.extend(3u64.to_le_bytes());
        expected.extend(b"a\0b");
        let values = [ValueRef::Null, ValueRef::Integer(-2), ValueRef::Blob(b"a\0b")];
        assert_eq!(RowHasher::default().hash(7, &values), XxHash3_64::oneshot(&expected));
        assert_eq!(XxHash3_64::oneshot(b""), 0x2d06_8005_38d3_94c2, "XXH3-64 with seed 0");
    }
}
