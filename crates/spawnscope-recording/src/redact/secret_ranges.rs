//! Collects the ranges of secrets in a byte string, and replaces them with masks. A mask does not reveal the length of the secret.

use std::ops::Range;

const MASK: &[u8] = b"***";

/// The ranges of secrets, in any order. They may overlap.
#[derive(Debug, Default)]
pub(super) struct SecretRanges {
    found: Vec<Range<usize>>,
}

impl SecretRanges {
    /// Adds a range. Empty ranges are ignored.
    pub(super) fn add(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.found.push(range);
        }
    }

    /// Adds ranges that are relative to `offset`.
    pub(super) fn add_relative(&mut self, others: &SecretRanges, offset: usize) {
        others.iter().for_each(|range| self.add(offset + range.start..offset + range.end));
    }

    /// Whether there are no ranges.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the ranges in the order in which they were added.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<usize>> {
        self.found.iter()
    }

    /// Returns the bytes with masks instead of secrets. Ranges that touch or overlap get one mask.
    pub(super) fn mask(mut self, bytes: &[u8]) -> Vec<u8> {
        self.found.sort_unstable_by_key(|range| (range.start, range.end));
        let mut masked = Vec::with_capacity(bytes.len());
        let mut done = 0;
        let mut has_masked = false;
        for Range { start, end } in self.found {
            if start > done || !has_masked {
                masked.extend_from_slice(&bytes[done.min(start)..start]);
                masked.extend_from_slice(MASK);
            }
            done = done.max(end);
            has_masked = true;
        }
        masked.extend_from_slice(&bytes[done..]);
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_or_adjacent_secrets_get_one_mask() {
        let mut ranges = SecretRanges::default();
        for range in [6..8, 0..2, 1..4, 4..5, 9..9] {
            ranges.add(range);
        }
        assert_eq!(ranges.mask(b"0123456789"), b"***5***89");
        assert_eq!(SecretRanges::default().mask(b"01"), b"01");
    }
}
