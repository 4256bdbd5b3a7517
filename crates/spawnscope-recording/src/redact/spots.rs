//! The places of secrets in a byte string, and the bytes with masks instead. A mask does not reveal the length of the secret.

use std::ops::Range;

const MASK: &[u8] = b"***";

/// The places of secrets, in any order. They may overlap.
#[derive(Debug, Default)]
pub(super) struct Spots {
    found: Vec<Range<usize>>,
}

impl Spots {
    /// Adds a place. Empty ranges are ignored.
    pub(super) fn add(&mut self, place: Range<usize>) {
        if !place.is_empty() {
            self.found.push(place);
        }
    }

    /// Adds the places of another text, which begins at `by` in this one.
    pub(super) fn add_shifted(&mut self, others: &Spots, by: usize) {
        others
            .iter()
            .for_each(|place| self.add(by + place.start..by + place.end));
    }

    /// Whether there are no places.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns the places in the order in which they were added.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<usize>> {
        self.found.iter()
    }

    /// Returns the bytes with masks. Places that touch or overlap get one mask.
    pub(super) fn mask(mut self, bytes: &[u8]) -> Vec<u8> {
        self.found.sort_unstable_by_key(|place| (place.start, place.end));
        let mut masked = Vec::with_capacity(bytes.len());
        let mut done = 0;
        let mut is_masked_before = false;
        for Range { start, end } in self.found {
            if start > done || !is_masked_before {
                masked.extend_from_slice(&bytes[done.min(start)..start]);
                masked.extend_from_slice(MASK);
            }
            done = done.max(end);
            is_masked_before = true;
        }
        masked.extend_from_slice(&bytes[done..]);
        masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_or_touches_is_one_mask() {
        let mut spots = Spots::default();
        for place in [6..8, 0..2, 1..4, 4..5, 9..9] {
            spots.add(place);
        }
        assert_eq!(spots.mask(b"0123456789"), b"***5***89");
        assert_eq!(Spots::default().mask(b"01"), b"01");
    }
}
