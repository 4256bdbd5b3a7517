//! One word of a command line: an argument, or a word of a text for a shell, whose quotes are gone. It knows where its bytes came from.

use std::borrow::Cow;
use std::ops::Range;

/// A word.
#[derive(Debug)]
pub(super) struct Word<'a> {
    /// What a program would receive.
    pub(super) text: Cow<'a, [u8]>,
    places: Places,
}

/// Where the bytes of a word stand in the text around it.
#[derive(Debug)]
enum Places {
    /// One after the other, from here on.
    From(usize),
    /// Each with what quotes it.
    Each(Vec<Range<usize>>),
}

impl<'a> Word<'a> {
    /// Bytes that stand in a text as they are.
    pub(super) fn plain(text: &'a [u8], start: usize) -> Word<'a> {
        Word {
            text: Cow::Borrowed(text),
            places: Places::From(start),
        }
    }

    /// Bytes that were quoted.
    pub(super) fn quoted(text: Vec<u8>, places: Vec<Range<usize>>) -> Word<'a> {
        Word {
            text: Cow::Owned(text),
            places: Places::Each(places),
        }
    }

    /// Whether it is written with quotes or escapes, so that its bytes are others than those around it.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(self.places, Places::Each(_))
    }

    /// Where a part of it stands in the text around it.
    pub(super) fn outer(&self, part: Range<usize>) -> Range<usize> {
        match &self.places {
            Places::From(start) => start + part.start..start + part.end,
            Places::Each(places) => match (
                places.get(part.start),
                part.end.checked_sub(1).and_then(|last| places.get(last)),
            ) {
                (Some(first), Some(last)) => first.start..last.end.max(first.start),
                _ => 0..0,
            },
        }
    }
}
