//! One word of a command line: an argument, or a word of shell text with its quotes removed. It knows the positions of its bytes in the
//! surrounding text.

use std::borrow::Cow;
use std::ops::Range;

/// A word of a command line.
#[derive(Debug)]
pub(super) struct Word<'a> {
    /// The bytes that a program would receive.
    pub(super) text: Cow<'a, [u8]>,
    origin: Origin,
}

/// The positions of a word's bytes in the surrounding text.
#[derive(Debug)]
enum Origin {
    /// The bytes are contiguous, from this offset on.
    Contiguous(usize),
    /// Each byte has this range, which includes its quoting.
    Ranges(Vec<Range<usize>>),
}

impl<'a> Word<'a> {
    /// Creates a word that appears unchanged in a text.
    pub(super) fn plain(text: &'a [u8], start: usize) -> Word<'a> {
        Word { text: Cow::Borrowed(text), origin: Origin::Contiguous(start) }
    }

    /// Creates a word that was quoted.
    pub(super) fn quoted(text: Vec<u8>, ranges: Vec<Range<usize>>) -> Word<'a> {
        Word { text: Cow::Owned(text), origin: Origin::Ranges(ranges) }
    }

    /// Whether the word is written with quotes or escapes, so that its bytes differ from the surrounding text.
    pub(super) fn is_quoted(&self) -> bool {
        matches!(self.origin, Origin::Ranges(_))
    }

    /// Returns the range in the surrounding text of a part of the word.
    pub(super) fn outer(&self, part: Range<usize>) -> Range<usize> {
        match &self.origin {
            Origin::Contiguous(start) => start + part.start..start + part.end,
            Origin::Ranges(ranges) => {
                match (ranges.get(part.start), part.end.checked_sub(1).and_then(|last| ranges.get(last))) {
                    (Some(first), Some(last)) => first.start..last.end.max(first.start),
                    _ => 0..0,
                }
            }
        }
    }
}
